"""Profiles: what each column looks like in each component, for mixtures, views and the emissions of states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.names import check_suits, column_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profile:
    """One column in all components.

    Attributes
    ----------
    name : str
    column : int
    kind : str
        "number", "rate", "probability" or "categories".
    means : (k,)
    deviations : (k,)
        Standard deviations within the components.
    telling : float
        Share of the column's variance that lies between the components, 0 to 1 (of its indicators for categories).
    categories : tuple of str
        Names of the categories; empty for numbers.
    table : (k, categories)
        Probabilities of the categories; empty for numbers.
    item : int or None
        Which of the model's tables that is, or which view the column is of.
    """

    name: str
    column: int
    kind: str
    means: Floats
    deviations: Floats
    telling: float
    categories: tuple[str, ...] = ()
    table: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    item: int | None = None


def profiles(model: Any, feature_names: Iterable[Any] | None = None, most: int | None = None) -> list[Profile]:
    """Profiles of the columns, in their order; with `most` only of those that tell the components best apart."""
    check_suits(model, "profiles")
    means, deviations = np.asarray(emission_means(model)), emission_deviations(model)
    names = column_names(model, feature_names, means.shape[1], what="column", argument="feature_names")
    found = _numbers(names, means, deviations, component_weights(model), _kinds(model, means.shape[1]))
    if hasattr(model, "probabilities_"):
        _add_categories(model, found)
    return most_telling(found, most)


def view_profiles(
    model: Any, feature_names: Sequence[Any] | None = None, most: int | None = None
) -> list[list[Profile]]:
    """Profiles of every view of a `MultiViewMixture`; names for each view, or for all columns in a row."""
    check_suits(model, "view_profiles")
    names, views = view_names(model, feature_names), []
    weights = np.asarray(model.weights_)
    for t, mean in enumerate(model.means_):
        kind = {"gaussian": "number", "bernoulli": "probability"}.get(model.likelihoods_[t], "rate")
        variance = model.variances_[t]
        if variance is None:
            variance = mean * (1 - mean) if kind == "probability" else mean
        deviations = np.sqrt(np.maximum(variance, 0))
        found = _numbers(names[t], np.asarray(mean), deviations, weights, [kind] * mean.shape[1])
        views.append(most_telling([replace(profile, item=t) for profile in found], most))
    return views


def view_names(model: Any, given: Sequence[Any] | None) -> list[list[str]]:
    """Names of the columns of every view."""
    widths = [int(mean.shape[1]) for mean in model.means_]
    if given is not None:
        given = list(given)
        nested = all(not isinstance(part, str) and isinstance(part, Iterable) for part in given)
        parts = [list(part) for part in given] if nested else _split(given, widths)
        if [len(part) for part in parts] == widths:
            return [[str(name) for name in part] for part in parts]
        raise ValueError(
            f"feature_names must hold a list of names for each view, {widths} of them (or all in a row), got "
            f"{[len(part) for part in parts]}."
        )
    return [[f"column {j}" for j in range(width)] for width in widths]


def most_telling(found: list[Profile], most: int | None) -> list[Profile]:
    """At most `most` profiles, those whose column differs most between the components, in the order of the columns."""
    if most is None or len(found) <= most:
        return found
    best = sorted(found, key=lambda profile: -profile.telling)[:most]
    return sorted(best, key=lambda profile: profile.column)


def component_weights(model: Any) -> Floats:
    """Shares of the components; of states, in the long run."""
    if hasattr(model, "weights_"):
        return np.asarray(model.weights_, dtype=np.float64)
    return np.asarray(model.get_stationary_distribution(), dtype=np.float64)


def emission_means(model: Any) -> Floats:
    """Means of the columns in each component (k, d)."""
    return np.asarray(model.lambdas_ if hasattr(model, "lambdas_") else model.means_, dtype=np.float64)


def emission_deviations(model: Any) -> Floats:
    """Standard deviations of the columns in each component (k, d)."""
    means = emission_means(model)
    if hasattr(model, "variances_"):
        variances = np.asarray(model.variances_)
    elif hasattr(model, "lambdas_"):
        variances = means
    elif hasattr(model, "covariance_matrices"):
        variances = np.diagonal(model.covariance_matrices(), axis1=1, axis2=2)
    else:
        covariances = np.asarray(model.covariances_, dtype=np.float64)
        if model.covariance_type in ("full", "tied"):
            covariances = np.diagonal(covariances, axis1=-2, axis2=-1)
        elif model.covariance_type == "spherical":
            covariances = covariances[:, None]
        variances = np.broadcast_to(covariances, means.shape)
    return np.asarray(np.sqrt(np.maximum(variances, 0)))


def _kinds(model: Any, width: int) -> list[str]:
    if hasattr(model, "lambdas_"):
        return ["rate"] * width
    known = {"bernoulli": "probability", "poisson": "rate", "gaussian": "number", "categorical": "number"}
    return [known[family] for family in getattr(model, "families_", ["gaussian"] * width)]


def _numbers(
    names: Sequence[str], means: Floats, deviations: Floats, weights: Floats, kinds: Sequence[str]
) -> list[Profile]:
    between = weights @ (means - weights @ means) ** 2
    total = between + weights @ deviations**2
    telling = between / np.where(total > 0, total, 1.0)
    return [
        Profile(names[j], j, kinds[j], means[:, j], deviations[:, j], float(telling[j])) for j in range(means.shape[1])
    ]


def _add_categories(model: Any, found: list[Profile]) -> None:
    """Put the tables of categorical columns in the place of the means of their codes."""
    columns = [j for j, family in enumerate(model.families_) if family == "categorical"]
    weights = np.asarray(model.weights_)
    tables = zip(columns, model.probabilities_, model.categories_, strict=True)
    for item, (j, table, categories) in enumerate(tables):
        overall = weights @ table
        spread = float(overall @ (1 - overall))
        telling = float((weights @ (table - overall) ** 2).sum() / spread) if spread > 0 else 0.0
        labels = tuple(str(value) for value in np.asarray(categories).tolist())
        old = found[j]
        found[j] = replace(
            old, kind="categories", telling=telling, categories=labels, table=np.asarray(table), item=item
        )


def _split(names: list[Any], widths: list[int]) -> list[list[Any]]:
    ends = np.cumsum(widths)
    if len(names) != ends[-1]:
        return [names]
    return [names[end - width : end] for end, width in zip(ends, widths, strict=True)]
