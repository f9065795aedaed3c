"""What a fit says of itself: spectrum, gap, condition, residual, clipped mass, and advice in plain words."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentWarning

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """A report on one fit; every estimator keeps one as ``diagnostics_``.

    Attributes
    ----------
    n_components : int
        What was asked for. It is never changed silently.
    spectrum : (m,) array
        Leading eigenvalues of the second moment that was whitened, largest first.
    gap : float
        1 - (first discarded eigenvalue) / (last kept one): 1 for a clean rank, about 0 where there is no gap.
    condition : float
        First kept eigenvalue over the last: errors of the moments are multiplied by up to its 3/2th power.
    residual : float
        ||T - sum|| / ||T|| of the decomposed tensor.
    clipped_mass : float
        Largest share of a component that was negative before it was put on the simplex; 0 where nothing is clipped.
    suggested_components : int or None
        Number of components that the data themselves suggest, where the model can tell.
    method : str
        How the answer was reached, fallbacks and refinement included.
    n_passes : int
        How often the data were read, refinement not counted.
    advice : tuple of str
        What should not be trusted and what to change. Each was also raised as a `MomentWarning`.
    details : mapping
        What only this model reports: curves, traces, certificates.
    """

    n_components: int
    spectrum: Floats = field(repr=False)
    gap: float
    condition: float
    residual: float
    clipped_mass: float = 0.0
    suggested_components: int | None = None
    method: str = "moments"
    n_passes: int = 1
    advice: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        """Whether nothing was found that should be changed."""
        return not self.advice

    def __str__(self) -> str:
        suggested = "" if self.suggested_components is None else f" (the data suggest {self.suggested_components})"
        lines = [
            f"components     {self.n_components}{suggested}",
            f"method         {self.method}",
            f"spectrum       {_shorten(self.spectrum[: self.n_components + 3])}",
            f"gap            {self.gap:.3g} (1: clean, 0: none)",
            f"condition      {self.condition:.3g}",
            f"residual       {self.residual:.3g} of the tensor's norm",
            f"clipped mass   {self.clipped_mass:.3g}",
            *(f"advice         {text}" for text in self.advice),
        ]
        return "\n".join(lines)


def warn_all(diagnostics: Diagnostics) -> Diagnostics:
    """Raise every advice as a `MomentWarning` that points to the caller's line; returns the diagnostics."""
    level = _levels_of_our_own()
    for text in diagnostics.advice:
        warnings.warn(text, MomentWarning, stacklevel=level)
    return diagnostics


def _levels_of_our_own() -> int:
    """Frames from our caller up to the first outside of the library, as `stacklevel` counts them."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    return level


def _shorten(values: Floats) -> str:
    shown = [f"{value:.3g}" for value in values]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:3], "...", *shown[-4:]]) or "none"
