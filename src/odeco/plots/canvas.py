"""Axes to draw on, and the colours of components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The colours of the HTML report on white.
COLOURS = (
    "#2b6ca3",
    "#c8434f",
    "#2f7d4f",
    "#a8660a",
    "#7a55a8",
    "#00807a",
    "#a44f2b",
    "#b0468c",
    "#5f6b7a",
    "#6f7414",
)
ACCENT, QUIET = "#0f5f7a", "#b5b1a8"


def axes(ax: Any = None) -> Any:
    """The given axes, or new ones."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'odeco[plots]'") from error
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax


def colour(component: int) -> str:
    """The colour of a component; they repeat after ten, numbers tell the rest."""
    return COLOURS[component % len(COLOURS)]


def plain(ax: Any) -> Any:
    """Axes without the frame that nobody reads."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def number_rows(ax: Any, labels: list[str]) -> Any:
    """Rows from top to bottom with these labels."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    return plain(ax)


def heat(
    ax: Any,
    values: NDArray[np.float64],
    rows: list[str],
    columns: list[str],
    *,
    signed: bool = False,
    ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> Any:
    """A matrix as coloured cells with their numbers, and below these the `ends` of their intervals, where given."""
    largest = float(np.abs(values).max()) or 1.0
    limits = (-largest, largest) if signed else (0.0, largest)
    ax.imshow(values, cmap="RdBu_r" if signed else "Blues", vmin=limits[0], vmax=limits[1], aspect="auto")
    if values.size <= 400:
        for (i, j), value in np.ndenumerate(values):
            dark = abs(value) > 0.6 * largest
            text = f"{value:.2g}" if ends is None else f"{value:.2g}\n{ends[0][i, j]:.2g} to {ends[1][i, j]:.2g}"
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
