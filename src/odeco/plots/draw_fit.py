"""Spectrum and convergence of any fitted model, on matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from odeco.plots.canvas import ACCENT, QUIET, axes, plain
from odeco.plots.fit import convergence, spectrum


def plot_spectrum(model: Any, *, n_values: int = 60, ax: Any = None) -> Any:
    """Eigenvalues of the second moment, those used filled, and the gap at which the model stops.

    Parameters
    ----------
    model : a fitted estimator
    n_values : int
        Eigenvalues to show at most, besides those that the model uses.
    ax : matplotlib axes, optional
    """
    found, ax = spectrum(model), axes(ax)
    values = found.values[: found.kept + n_values]
    places, k = np.arange(1, values.size + 1), found.kept
    lowest = min(0.0, float(values.min(initial=0.0)))
    ax.plot(places, values, color=QUIET, zorder=1)
    ax.scatter(places[:k], values[:k], color=ACCENT, zorder=2, label="used")
    ax.scatter(places[k:], values[k:], facecolor="white", edgecolor="gray", zorder=2, label="not used")
    if found.kept < values.size:
        ax.axvline(found.kept + 0.5, color=ACCENT, linestyle="--", label=f"gap {found.gap:.0%}")
    positive = values[values > 0]
    if positive.size > 1 and positive.max() > 50 * positive.min():
        ax.set_yscale("log", nonpositive="mask")
        lowest = float(positive.min()) / 2
    if found.noise is not None:
        ax.axhspan(lowest, found.noise, color="0.94", zorder=0, label="sampling noise")
    ax.set(xlabel="component", ylabel="eigenvalue", title="Spectrum")
    ax.legend(frameon=False)
    return plain(ax)


def plot_convergence(model: Any, *, ax: Any = None) -> Any:
    """What the monitor of the refinement saw; the title says how it ended."""
    found, ax = convergence(model), axes(ax)
    ax.plot(found.steps, found.values, color=ACCENT, marker="o", markersize=4)
    for start in found.starts:
        if start < found.steps.size:
            ax.axvline(found.steps[start], color=QUIET, linestyle=":")
    ax.set(xlabel="step", ylabel=found.objective)
    ax.set_title(found.words, fontsize=9, wrap=True)
    return plain(ax)
