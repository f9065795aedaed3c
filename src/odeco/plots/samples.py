"""Figures of samples: how surely they belong to their components, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.columns import Profile, emission_deviations
from odeco.plots.names import batches_without_names, check_model, rows_of, suits
from odeco.sources.dense import DenseBatch, is_matrix
from odeco.sources.views import ViewBatch, is_views

Floats = NDArray[np.float64]

_MOST_ROWS = 5_000  # that are looked at


@dataclass(frozen=True, eq=False)
class Membership:
    """How samples belong to the components.

    Attributes
    ----------
    n_samples : int
        Samples looked at.
    counts : (k,)
        Samples of which each component is the most probable.
    certainty : (k,)
        Mean posterior probability of the component among those; NaN where there are none.
    score : float
        Mean log-likelihood per sample.
    """

    n_samples: int
    counts: NDArray[np.intp]
    certainty: Floats
    score: float


@dataclass(frozen=True, eq=False)
class Scatter:
    """Samples on the two columns that tell the components best apart.

    Attributes
    ----------
    points : (n, 2)
    labels : (n,)
    centres, deviations : (k, 2)
    correlations : (k,)
        Of the two columns within each component: the tilt of its ellipse.
    columns : (int, int)
    names : (str, str)
    """

    points: Floats = field(repr=False)
    labels: NDArray[np.intp] = field(repr=False)
    centres: Floats
    deviations: Floats
    correlations: Floats
    columns: tuple[int, int]
    names: tuple[str, str]


def membership(model: Any, rows: Any) -> Membership:
    """How the given samples belong to the components of a fitted mixture."""
    check_model(model)
    with batches_without_names():
        shares, score = np.asarray(model.predict_proba(rows)), float(model.score(rows))
    labels, k = shares.argmax(axis=1), shares.shape[1]
    counts = np.bincount(labels, minlength=k)
    with np.errstate(invalid="ignore"):
        certainty = np.bincount(labels, weights=shares.max(axis=1), minlength=k) / np.where(counts, counts, np.nan)
    return Membership(len(shares), counts, certainty, score)


def scatter(model: Any, rows: Any, profiles: Iterable[Profile], most: int = 800) -> Scatter | None:
    """Samples, coloured by component, on the two most telling columns of numbers; None where there are not two."""
    numbers = sorted((p for p in profiles if p.kind in ("number", "rate")), key=lambda p: -p.telling)
    if len(numbers) < 2 or not suits(model, "scatter"):
        return None
    first, second = numbers[:2]
    columns = [first.column, second.column]
    every = max(-(-_length(rows) // most), 1)
    chosen = _take(rows, slice(None, None, every))
    table = chosen.iloc[:, columns] if hasattr(chosen, "iloc") else np.asarray(chosen)[:, columns]
    points = np.asarray(table, dtype=np.float64)
    seen = np.isfinite(points).all(axis=1)
    with batches_without_names():
        labels = np.asarray(model.predict_proba(chosen)).argmax(axis=1)
    deviations = emission_deviations(model)[:, columns]
    return Scatter(
        points[seen],
        labels[seen],
        np.asarray(model.means_)[:, columns],
        deviations,
        _correlations(model, columns, deviations),
        (columns[0], columns[1]),
        (first.name, second.name),
    )


def some_rows(model: Any, data: Any) -> Any:
    """Some rows of whatever a mixture is fitted to: evenly chosen from a matrix, the first ones of batches."""
    if rows_of(model) == "views":
        views = data if is_views(data) else next(iter(data() if callable(data) else data))
        blocks = views.blocks if isinstance(views, ViewBatch) else views
        return [_take(block, slice(_MOST_ROWS)) for block in blocks]
    if is_matrix(data):
        return _take(data, slice(None, None, max(-(-_length(data) // _MOST_ROWS), 1)))
    batch = next(iter(data() if callable(data) else data))
    if isinstance(batch, DenseBatch):
        batch = batch.rows
    elif isinstance(batch, tuple) and len(batch) == 2:  # rows and their weights
        batch = batch[0]
    return _take(batch, slice(_MOST_ROWS))


def _correlations(model: Any, columns: list[int], deviations: Floats) -> Floats:
    k = len(deviations)
    if getattr(model, "covariance_type", "") not in ("full", "tied"):
        return np.zeros(k)
    covariances = np.broadcast_to(np.asarray(model.covariances_)[..., columns[0], columns[1]], (k,))
    return np.asarray(covariances / np.maximum(deviations.prod(axis=1), 1e-300))


def _length(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _take(rows: Any, part: slice) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[part]
    return rows.tocsr()[part] if hasattr(rows, "tocsr") else rows[part]
