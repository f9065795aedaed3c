"""What a fit says of itself: spectrum, gap, condition, residual, clipped mass, advice; and how far to trust it.

One rule decides on trust, `Diagnostics.verdict`: the guide, the report, the terminal and the warnings repeat it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentWarning
from odeco.refinement.loop import StopReason, Trace

Floats = NDArray[np.float64]


class Trust(Enum):
    """How far to trust a fit; the value is what is said of it everywhere."""

    FINE = "Fine: nothing was found that should be changed."
    DOUBT = "In doubt: read why before you rely on it."
    DISTRUST = "Do not trust it: the data do not support this model."


@dataclass(frozen=True)
class Reason:
    """Why a fit is not to be trusted as it is: the field of `Diagnostics` that says so, and a sentence with advice."""

    field: str
    text: str
    trust: Trust = Trust.DOUBT


@dataclass(frozen=True)
class Verdict:
    """How far to trust a fit, and why not further; no reasons where all is fine."""

    trust: Trust
    reasons: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.trust.value, *(f"- {reason.text}" for reason in self.reasons)])


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
        What the model itself found that should not be trusted, and what to change. Each was also raised as a
        `MomentWarning`.
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
        return self.verdict.trust is Trust.FINE

    @property
    def verdict(self) -> Verdict:
        """How far to trust the fit, by the numbers (`WORRY` says which) and by its advice."""
        reasons = [Reason("advice", text) for text in self.advice]
        rules = _RULES_OF_A_SEARCH if "replicated" in self.details else _RULES
        reasons += [reason for rule in rules if (reason := rule(self)) is not None]
        for trust in (Trust.DISTRUST, Trust.DOUBT):
            if any(reason.trust is trust for reason in reasons):
                return Verdict(trust, tuple(reasons))
        return Verdict(Trust.FINE)

    @property
    def warned(self) -> tuple[str, ...]:
        """What is raised as a `MomentWarning`: every advice, and a fit that is not to be trusted in any case.

        Other doubts that come of the numbers alone are no warnings: real data have some more often than not.
        """
        worst = (reason.text for reason in self.verdict.reasons if reason.trust is Trust.DISTRUST)
        return self.advice or tuple(worst)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces of the refinement, one for each of its stages; none where nothing was refined."""
        found = self.details.get("refinement")
        stages = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(trace for trace in stages if isinstance(trace, Trace) and trace.n_iter > 0)

    def __str__(self) -> str:
        return "\n".join(f"{name:<15}{text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        rows = (
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._lines()
        )
        return f"<table><tbody>{''.join(rows)}</tbody></table>"

    def _lines(self) -> list[tuple[str, str]]:
        suggested = "" if self.suggested_components is None else f" (the data suggest {self.suggested_components})"
        verdict = self.verdict
        return [
            ("verdict", verdict.trust.value),
            ("components", f"{self.n_components}{suggested}"),
            ("method", self.method),
            ("spectrum", _shorten(self.spectrum[: self.n_components + 3])),
            ("gap", f"{self.gap:.3g} (1: clean, 0: none)"),
            ("condition", f"{self.condition:.3g}"),
            ("residual", f"{self.residual:.3g} of the tensor's norm"),
            ("clipped mass", f"{self.clipped_mass:.3g}"),
            *(("because", reason.text) for reason in verdict.reasons),
        ]


# Directions that are left out are weaker than the last one used by this share at least, or there is no step at all.
_NO_STEP = 0.1
# By this share, and the step is clear whatever else is known. Measured on draws of every model with the true number of
# components: 0.8 and more; on a few hundred samples 0.2 and more, and the number that the data suggest vouches for it.
_CLEAR_STEP = 0.5
# A certificate accepts a component up to this residual; on draws of every model with the true number it was below 0.32.
_LARGE_RESIDUAL = 0.5
# Topics of few documents lose up to 0.13 at the true number (30 documents for each topic); real text, 0.4 and more.
_LARGE_CLIPPED_MASS = 0.2
# The 3/2th power, by which errors of the moments may grow, is beyond what 10^8 samples make up for.
_LARGE_CONDITION = 1000.0
# Nats per sample by which the next best start of a search may be behind before the answer hangs on luck.
_FAR_BEHIND = 0.01

# Field, and when it is a reason for doubt: the words of the guide.
WORRY = {
    "gap": f"below {_NO_STEP:g}; below {_CLEAR_STEP:g} where the data do not suggest just this number of components",
    "suggested_components": "smaller than what you asked for; below half of it: do not trust the fit",
    "condition": f"above {_LARGE_CONDITION:g}: some components are weak or nearly dependent",
    "residual": f"above {_LARGE_RESIDUAL:g}: the model does not describe the data, or k is wrong",
    "clipped_mass": f"above {_LARGE_CLIPPED_MASS:g}: too little data for the weakest components",
    "details": f"the refinement ended at `max_iter`; one start alone found the best optimum, by {_FAR_BEHIND:g} nats",
    "advice": "it is not empty",
}


def _counted(n: int) -> str:
    return f"{n} component{'' if n == 1 else 's'}"


def _gap(report: Diagnostics) -> Reason | None:
    k, suggested = report.n_components, report.suggested_components
    if not report.gap < (_NO_STEP if suggested == k else _CLEAR_STEP):
        return None
    found = f"gap {report.gap:.2g}" + ("" if suggested in (None, k) else f", the data suggest {suggested}")
    text = (
        f"the spectrum has no clear step after {_counted(k)} ({found}): one more or less may do as well. Compare them"
    )
    return Reason("gap", f"{text} by held-out data.")


def _suggested(report: Diagnostics) -> Reason | None:
    k, suggested = report.n_components, report.suggested_components
    if suggested is None or suggested >= k:
        return None
    trust = Trust.DISTRUST if 2 * suggested < k else Trust.DOUBT
    text = f"{suggested} of {_counted(k)} stand out from the sampling noise. Lower n_components, or use more data."
    return Reason("suggested_components", text, trust)


def _condition(report: Diagnostics) -> Reason | None:
    if not _LARGE_CONDITION < report.condition < np.inf:
        return None
    text = f"the strongest direction is {report.condition:.2g} times the weakest: components that rest on it are known "
    return Reason("condition", text + "poorly. Lower n_components, or use more data.")


def _residual(report: Diagnostics) -> Reason | None:
    if not report.residual > _LARGE_RESIDUAL:
        return None
    text = f"the components leave {100 * report.residual:.0f} % of the norm of the moment tensor unexplained: the data "
    return Reason("residual", text + "do not follow the model, or the moments are mostly noise.")


def _clipped(report: Diagnostics) -> Reason | None:
    if not report.clipped_mass > _LARGE_CLIPPED_MASS:
        return None
    text = (
        f"the moments made a component negative by {report.clipped_mass:.2g} (its mass is 1), which was cut off: too "
    )
    return Reason("clipped_mass", text + "few data for the weakest components, or data that do not follow the model.")


def _unfinished(report: Diagnostics) -> Reason | None:
    last = report.traces[-1] if report.traces else None
    if last is None or last.reason is not StopReason.MAX_ITER or last.n_iter == 1:  # a single step was asked for
        return None
    text = f"the refinement has not converged: {StopReason.MAX_ITER.value}"
    return None if any(StopReason.MAX_ITER.value in each for each in report.advice) else Reason("details", text)


def _luck(report: Diagnostics) -> Reason | None:
    spread, replicated = report.details.get("spread", 0.0), report.details.get("replicated", 0)
    if not (spread > _FAR_BEHIND and replicated == 1) or any("another seed" in text for text in report.advice):
        return None
    text = (
        f"one start alone ended at the best optimum, and the next is {spread:.2g} nats per sample behind: another seed "
    )
    return Reason("details", text + "may end elsewhere. Use effort='thorough'.")


# Where several starts were compared, how well the moments' own estimate was known no longer matters.
_RULES_OF_A_SEARCH: tuple[Callable[[Diagnostics], Reason | None], ...] = (_gap, _suggested, _unfinished, _luck)
_RULES: tuple[Callable[[Diagnostics], Reason | None], ...] = (
    _gap,
    _suggested,
    _condition,
    _residual,
    _clipped,
    _unfinished,
)


def without_moments(n_components: int, method: str, advice: tuple[str, ...], details: Mapping[str, Any]) -> Diagnostics:
    """The report on a fit that could not use the moments."""
    nothing = float("nan")
    return Diagnostics(
        n_components, np.empty(0), nothing, nothing, nothing, method=method, advice=advice, details=details
    )


def warn_all(diagnostics: Diagnostics) -> Diagnostics:
    """Raise what is worth a `MomentWarning`, pointing to the caller's line; returns the diagnostics."""
    level = _levels_of_our_own()
    for text in diagnostics.warned:
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
