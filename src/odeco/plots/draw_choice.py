"""The evidence for each number of components, on matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from odeco.fitting.choice.record import Choice
from odeco.plots.canvas import ACCENT, QUIET, axes, plain

_LABELS = {
    "bic": "BIC (smaller is better)",
    "icl": "ICL (smaller is better)",
    "marginal": "-2 log marginal likelihood (smaller is better)",
    "held_out": "held-out log-likelihood",
    "replication": "least agreement of two halves",
    "spectrum": "eigenvalue",
}
_FIELDS = {"spectrum": "eigenvalue"}


def plot_choice(choice: Choice, *, ax: Any = None) -> Any:
    """What decided, against the number of components; the best is marked, those that it is not told from are shaded.

    Parameters
    ----------
    choice : Choice
    ax : matplotlib axes, optional
    """
    ax, name = axes(ax), _FIELDS.get(choice.criterion, choice.criterion)
    numbers = np.array([row.n_components for row in choice.table])
    values = np.array([getattr(row, name) for row in choice.table], dtype=np.float64)
    known = np.isfinite(values)
    errors = None
    if name == "held_out":
        errors = np.array([row.held_out_error for row in choice.table])[known]
    ax.errorbar(numbers[known], values[known], errors, color=QUIET, marker="o", markersize=4, markerfacecolor="gray")
    if len(choice.plausible) > 1:
        ax.axvspan(choice.plausible[0] - 0.3, choice.plausible[-1] + 0.3, color="0.94", zorder=0)
    ax.scatter(numbers[numbers == choice.best], values[numbers == choice.best], color=ACCENT, zorder=3, s=60)
    ax.set(xlabel="number of components", ylabel=_LABELS[choice.criterion])
    ax.set_title(choice.reason, fontsize=9, wrap=True)
    return plain(ax)
