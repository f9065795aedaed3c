"""Chains and signals on matplotlib: transitions, emissions, a decoded sequence, mixing, sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from odeco.plots.canvas import axes, colour, heat, plain
from odeco.plots.chains import decoded_sequence, transitions
from odeco.plots.columns import profiles
from odeco.plots.draw_components import plot_profiles
from odeco.plots.errors import ends_of, error_bars
from odeco.plots.names import check_suits, column_names, rows_of
from odeco.plots.signals import mixing, source_series
from odeco.plots.topics import relevance, top_words

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals

_FAINTEST = 0.01  # probability below which an arrow is left out


def plot_transitions(model: Any, *, intervals: Intervals | None = None, ax: Any = None) -> Any:
    """States around a circle, as large as the time spent in them, and arrows as strong as their probabilities.

    With `intervals` of the model, how often a state stays is written with its interval.
    """
    if intervals is not None:
        intervals.check_model(model)
    found, ax = transitions(model), axes(ax)
    k = len(found.stationary)
    sizes = np.maximum(3000 * found.stationary / found.stationary.max(), 250)
    for i in range(k):
        for j in range(k):
            if i != j and found.matrix[i, j] >= _FAINTEST:
                arrow = {
                    "arrowstyle": "-|>",
                    "color": colour(i),
                    "linewidth": 0.6 + 5 * found.matrix[i, j],
                    "connectionstyle": "arc3,rad=0.18",
                    "shrinkA": float(np.sqrt(sizes[i]) / 2),
                    "shrinkB": float(np.sqrt(sizes[j]) / 2),
                    "alpha": 0.7,
                }
                ax.annotate("", found.positions[j], found.positions[i], arrowprops=arrow)
    ax.scatter(*found.positions.T, s=sizes, c=[colour(i) for i in range(k)], zorder=3)
    for i, (x, y) in enumerate(found.positions):
        ax.annotate(str(i), (x, y), ha="center", va="center", color="white", weight="bold", zorder=4)
        ax.annotate(
            f"stays {found.matrix[i, i]:.0%}{_between(intervals, i)}",
            (1.5 * x, 1.38 * y + (0.4 if k == 1 else 0)),
            ha="center",
            fontsize=8,
        )
    ax.set(xlim=(-1.75, 1.75), ylim=(-1.6, 1.6), xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    return ax


def _between(intervals: Intervals | None, i: int) -> str:
    """The interval of staying in a state, in words."""
    if intervals is None:
        return ""
    low, high = error_bars(intervals, "transmat_")
    value = intervals.value["transmat_"][i, i]
    return f" ({value - low[i, i]:.0%} to {value + high[i, i]:.0%})"


def plot_emissions(
    model: Any,
    *,
    vocabulary: Iterable[Any] | None = None,
    feature_names: Iterable[Any] | None = None,
    intervals: Intervals | None = None,
    ax: Any = None,
) -> Any:
    """What states emit: probabilities of symbols (the most relevant of many), or profiles of the columns.

    Profiles, and the cells of symbols, show `intervals` of the model, where they are given.
    """
    check_suits(model, "transitions")
    if rows_of(model) != "symbols":
        return plot_profiles(model, feature_names=feature_names, intervals=intervals, ax=ax)
    table = np.asarray(model.emissionprob_)
    names = column_names(model, vocabulary, table.shape[1], what="", argument="vocabulary")
    symbols = np.arange(table.shape[1])
    if symbols.size > 30:
        best = top_words(relevance(table, model.get_stationary_distribution() @ table), max(30 // len(table), 1))
        symbols = np.unique(np.concatenate(best))
    ax = axes(ax)
    ax.set(xlabel="state")
    ends = ends_of(intervals, model, "emissionprob_", (slice(None), symbols))
    turned = None if ends is None else (ends[0].T, ends[1].T)
    return heat(ax, table[:, symbols].T, [names[s] for s in symbols], [str(i) for i in range(len(table))], ends=turned)


def plot_sequence(
    model: Any, data: Any = None, *, n_steps: int = 300, feature_names: Iterable[Any] | None = None, ax: Any = None
) -> Any:
    """The first steps of a sequence, coloured by their most probable states.

    Parameters
    ----------
    model : a fitted hidden Markov model
    data : X, a list of sequences or (X, lengths); drawn from the model if left out
    n_steps : int
    feature_names : names of the columns, optional
    ax : matplotlib axes, optional
        Symbols are drawn by their numbers; of several columns the one that tells the states best apart is.
    """
    found, ax = decoded_sequence(model, data, n_steps), axes(ax)
    values, name = found.observations, "symbol"
    if values.ndim == 2:
        best = max(profiles(model, feature_names), key=lambda profile: profile.telling)
        values, name = values[:, best.column], best.name
    steps = np.arange(len(values))
    ax.plot(steps, values, color="0.8", linewidth=0.8, zorder=1)
    for i in np.unique(found.states):
        mine = found.states == i
        ax.scatter(steps[mine], values[mine], s=10, color=colour(int(i)), label=str(i), zorder=2)
    ax.set(xlabel="step", ylabel=name, title="drawn from the model" if found.drawn else "")
    ax.legend(frameon=False, title="state")
    return plain(ax)


def plot_mixing(
    model: Any, *, feature_names: Iterable[Any] | None = None, intervals: Intervals | None = None, ax: Any = None
) -> Any:
    """How strongly each source reaches each channel, sign included; with `intervals` of the model where given."""
    found, ax = mixing(model, feature_names), axes(ax)
    ax.set(xlabel="source", ylabel="channel")
    sources = [str(i) for i in range(len(found.kurtosis))]
    ends = ends_of(intervals, model, "mixing_")
    return heat(ax, found.matrix, list(found.channels), sources, signed=True, ends=ends)


def plot_sources(model: Any, data: Any, *, ax: Any = None) -> Any:
    """The sources of the first samples, one above the other, in the order of the model."""
    found, ax = source_series(model, data), axes(ax)
    m, k = found.low.shape
    time = np.linspace(0, found.n_samples, m, endpoint=False)
    for i in range(k):
        scale = float(np.abs([found.low[:, i], found.high[:, i]]).max()) or 1.0
        ax.fill_between(
            time,
            found.low[:, i] / scale * 0.45 + i,
            found.high[:, i] / scale * 0.45 + i,
            color=colour(i),
            linewidth=0.6,
        )
    ax.set(xlabel="sample", ylabel="source", yticks=range(k))
    ax.invert_yaxis()
    return plain(ax)
