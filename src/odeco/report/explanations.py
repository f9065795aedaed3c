"""Diagnostics in words: what each number of a fit means, and whether it should worry anyone."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """What the diagnostics of a fitted model say, one sentence for each number that is known.

    A number is doubtful where the verdict on the fit says so, in the verdict's words.
    """
    report = check_model(model)
    found = {
        "gap": _gap(spectrum(model)),
        "suggested_components": _suggested(report.n_components, report.suggested_components),
        "condition": _condition(report.condition),
        "residual": _residual(report.residual),
        "clipped_mass": _clipped(report.clipped_mass),
        "details": _converged(model),
    }
    doubts = {reason.field: reason.text[:1].upper() + reason.text[1:] for reason in report.verdict.reasons}
    return [
        replace(finding, words=doubts[field], level=DOUBTFUL) if field in doubts else finding
        for field, finding in found.items()
        if finding is not None
    ]


def _gap(found: Spectrum) -> Finding | None:
    gap = found.gap
    if not np.isfinite(gap) or found.values.size <= found.kept:  # nothing was left out
        return None
    if gap >= 0.5:
        text, level = "The first direction left out is far weaker than the last one used: a clear step.", GOOD
    else:
        text, level = "The directions left out are weaker than those used, by no wide margin.", FAIR
    return Finding("Gap", percent(max(gap, 0.0)), text, level)


def _suggested(k: int, suggested: int | None) -> Finding | None:
    if suggested is None:
        return None
    if suggested == k:
        text, level = "As many components stand out from the sampling noise as were asked for.", GOOD
    else:
        text, level = f"More components stand out from the sampling noise than the {k} asked for.", FAIR
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
    return Finding("Residual", percent(residual), f"{text}: sampling noise and what the model leaves out.", FAIR)


def _clipped(mass: float) -> Finding | None:
    if not mass > 5e-4:
        return None
    text = "Largest share of a component that the moments made negative, before it was put right."
    return Finding("Clipped mass", percent(mass), text, GOOD)


def _converged(model: Any) -> Finding | None:
    found = convergence(model)
    if found.n_iter == 0:
        steps = int(getattr(model, "n_iter_", 0) or 0)
        return Finding("Refinement", f"{steps} iterations" if steps else "none", found.words, GOOD)
    return Finding(
        "Refinement", f"{found.n_iter} steps", found.words.split(". ", 1)[-1], GOOD if found.converged else FAIR
    )
