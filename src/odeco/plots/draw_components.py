"""Classes and annotators on matplotlib: profiles, samples, confusions, reliability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odeco.plots.canvas import axes, colour, heat, number_rows, plain
from odeco.plots.columns import Profile, profiles, view_profiles
from odeco.plots.crowds import annotators
from odeco.plots.errors import ends_of, error_bars
from odeco.plots.names import check_suits, suits
from odeco.plots.samples import scatter, some_rows

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


def plot_profiles(
    model: Any,
    *,
    feature_names: Iterable[Any] | None = None,
    n_columns: int = 30,
    intervals: Intervals | None = None,
    ax: Any = None,
) -> Any:
    """Means of the columns in each component, with one standard deviation, columns in units of their own spread.

    Parameters
    ----------
    model : a fitted `GaussianMixture`, `ProductMixture`, `MultiViewMixture`, `GaussianHMM` or `PoissonHMM`
        Categorical columns are shown by the numbers of their categories, counted from 0.
    feature_names : names of the columns, optional
        Of views a list for each.
    n_columns : int
        Columns at most, those that tell the components best apart.
    intervals : Intervals, optional
        Of the model (`odeco.intervals`): bars are then the intervals of the means, not deviations within components.
    ax : matplotlib axes, optional
    """
    if intervals is not None:
        intervals.check_model(model)
    found, ax = _shown(model, feature_names, n_columns), axes(ax)
    k = len(found[0].means)
    for i in range(k):
        places, means, spreads = [], [], []
        for row, profile in enumerate(found):
            scale = float(np.sqrt(np.mean(profile.deviations**2) + np.var(profile.means))) or 1.0
            places.append(row + (i - (k - 1) / 2) * 0.7 / max(k, 2))
            means.append((profile.means[i] - profile.means.mean()) / scale)
            spreads.append(_reach(profile, i, intervals) / scale)
        ax.errorbar(
            means, places, xerr=np.array(spreads).T, fmt="o", markersize=5, color=colour(i), label=str(i), alpha=0.9
        )
    ax.axvline(0, color="0.85", zorder=0)
    ax.set(xlabel="difference from the mean of the components, in standard deviations")
    ax.legend(frameon=False, title="component")
    return number_rows(ax, [profile.name for profile in found])


def _shown(model: Any, feature_names: Iterable[Any] | None, n_columns: int) -> list[Profile]:
    """The columns that tell most, of all views where there are several."""
    if not suits(model, "view_profiles"):
        return profiles(model, feature_names, most=n_columns)
    views = view_profiles(model, None if feature_names is None else list(feature_names))
    found = [replace(each, name=f"view {each.item}: {each.name}") for view in views for each in view]
    best = sorted(range(len(found)), key=lambda place: -found[place].telling)[:n_columns]
    return [found[place] for place in sorted(best)]


def _reach(profile: Profile, i: int, intervals: Intervals | None) -> Any:
    """How far bars reach to the left and to the right of a mean."""
    if intervals is None:
        return np.full(2, profile.deviations[i])
    name = "lambdas_" if "lambdas_" in intervals.value else "means_"
    low, high = error_bars(intervals, name, profile.item if isinstance(intervals.value[name], list) else None)
    return np.array([low[i, profile.column], high[i, profile.column]])


def plot_samples(model: Any, data: Any, *, feature_names: Iterable[Any] | None = None, ax: Any = None) -> Any:
    """Samples, coloured by component, on the two columns that tell the components best apart."""
    check_suits(model, "scatter")
    found = scatter(model, some_rows(model, data), profiles(model, feature_names), most=3000)
    if found is None:
        raise ValueError("two columns of numbers are needed: this model has fewer.")
    ax, turn = axes(ax), np.linspace(0, 2 * np.pi, 65)
    for i, centre in enumerate(found.centres):
        mine = found.points[found.labels == i]
        ax.scatter(mine[:, 0], mine[:, 1], s=8, color=colour(i), alpha=0.5, label=str(i))
        size, tilt = 2 * found.deviations[i], float(found.correlations[i])
        second = tilt * np.cos(turn) + np.sqrt(max(1 - tilt**2, 0.0)) * np.sin(turn)
        ax.plot(centre[0] + size[0] * np.cos(turn), centre[1] + size[1] * second, color=colour(i))
    ax.set(xlabel=found.names[0], ylabel=found.names[1])
    ax.legend(frameon=False, title="component")
    return plain(ax)


def plot_confusion(model: Any, annotator: Any = None, *, intervals: Intervals | None = None, ax: Any = None) -> Any:
    """Confusion of one annotator (by name), or of the average one: true classes in rows, labels in columns.

    `intervals` of the model are written into the cells of one annotator; the average has none.
    """
    found, ax, ends = annotators(model), axes(ax), None
    if annotator is None:
        if intervals is not None:
            raise ValueError("intervals are those of each annotator: name one as annotator, or leave them out.")
        confusion, title = found.confusion.mean(axis=0), "average annotator"
    elif str(annotator) in found.names:
        place = found.names.index(str(annotator))
        confusion, title = found.confusion[place], f"annotator {annotator}"
        ends = ends_of(intervals, model, "confusion_", int(found.order[place]))
    else:
        raise ValueError(f"annotator must be one of annotators_, got {annotator!r}.")
    ax.set(title=title, xlabel="label given", ylabel="true class")
    rows, columns = ([str(c) for c in np.asarray(a).tolist()] for a in (model.classes_, model.given_labels_))
    return heat(ax, confusion, rows, columns, ends=ends)


def plot_reliability(model: Any, *, n_annotators: int = 40, ax: Any = None) -> Any:
    """Probability that a label is right, for every annotator, the most reliable first."""
    found, ax = annotators(model), axes(ax)
    n = min(n_annotators, len(found.names))
    ax.barh(range(n), found.reliability[:n], color=colour(0))
    ax.set(xlabel="probability that a label is right", xlim=(0, 1))
    return number_rows(ax, list(found.names[:n]))
