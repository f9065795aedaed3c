"""Diagnostics in words: what each number of a fit means, and whether it should worry anyone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from odeco.plots.fit import Spectrum, convergence, spectrum
from odeco.plots.names import check_model
from odeco.report.svg import number, percent

GOOD, FAIR, DOUBTFUL = "good", "fair", "doubtful"


@dataclass(frozen=True)
class Finding:
    """One number of a fit: what it is called, its value, a sentence on it, and "good", "fair" or "doubtful"."""

    name: str
    value: str
    words: str
    level: str


def findings(model: Any) -> list[Finding]:
    """What the diagnostics of a fitted model say, one sentence for each number that is known."""
    report = check_model(model)
    found = [
        _gap(spectrum(model)),
        _suggested(report.n_components, report.suggested_components),
        _condition(report.condition),
        _residual(report.residual),
        _clipped(report.clipped_mass),
        _converged(model),
    ]
    return [finding for finding in found if finding is not None]


def verdict(model: Any) -> str:
    """One sentence on the whole fit."""
    advice = check_model(model).advice
    if not advice:
        return "No warnings: nothing was found that should be changed."
    return "One warning:" if len(advice) == 1 else f"{len(advice)} warnings:"


def _gap(found: Spectrum) -> Finding | None:
    gap = found.gap
    if not np.isfinite(gap) or found.values.size <= found.kept:  # nothing was left out
        return None
    if gap >= 0.5:
        text, level = (
            "The first direction left out is far weaker than the last one used: a clear step.",
            GOOD,
        )
    elif gap >= 0.1:
        text, level = "The directions left out are weaker than those used, by no wide margin.", FAIR
    else:
        text, level = (
            "The spectrum goes on without a step: the data do not single out this number of components, and one "
            "more or less would do about as well.",
            FAIR,
        )
    return Finding("Gap", percent(max(gap, 0.0)), text, level)


def _suggested(k: int, suggested: int | None) -> Finding | None:
    if suggested is None:
        return None
    if suggested == k:
        text, level = "As many components stand out from the sampling noise as were asked for.", GOOD
    elif suggested > k:
        text, level = f"More components stand out from the sampling noise than the {k} asked for.", GOOD
    else:
        text, level = f"Fewer components stand out from the sampling noise than the {k} asked for.", DOUBTFUL
    return Finding("Components the data support", str(suggested), text, level)


def _condition(condition: float) -> Finding | None:
    if not np.isfinite(condition):
        return None
    worst = number(condition**1.5)
    text = f"Strongest over weakest direction used. Errors of the moments grow by up to its 3/2th power, {worst}."
    return Finding("Condition", number(condition), text, GOOD if condition < 30 else FAIR)


def _residual(residual: float) -> Finding | None:
    if not np.isfinite(residual):
        return None
    text = f"The decomposition leaves {percent(residual)} of the norm of the moment tensor unexplained"
    if residual < 0.1:
        return Finding("Residual", percent(residual), f"{text}: the data look like the model.", GOOD)
    if residual < 0.6:
        return Finding("Residual", percent(residual), f"{text}: sampling noise and what the model leaves out.", FAIR)
    return Finding("Residual", percent(residual), f"{text}: the moments are mostly noise.", DOUBTFUL)


def _clipped(mass: float) -> Finding | None:
    if not mass > 5e-4:
        return None
    text = "Largest share of a component that the moments made negative, before it was put right."
    return Finding("Clipped mass", percent(mass), text, GOOD if mass < 0.2 else FAIR)


def _converged(model: Any) -> Finding | None:
    found = convergence(model)
    if found.n_iter == 0:
        steps = int(getattr(model, "n_iter_", 0) or 0)
        return Finding("Refinement", f"{steps} iterations" if steps else "none", found.words, GOOD)
    return Finding(
        "Refinement", f"{found.n_iter} steps", found.words.split(". ", 1)[-1], GOOD if found.converged else FAIR
    )
