"""Figures that every model has: the spectrum with its gap, and how the refinement converged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.models.cards import known_card
from odeco.plots.names import check_model
from odeco.refinement.loop import Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the pair moments, largest first.

    Attributes
    ----------
    values : (m,) array
    kept : int
        How many of them the model uses: k, or k - 1 where moments are taken about the mean.
    gap : float
        As in `Diagnostics`.
    noise : float or None
        Up to here sampling alone explains an eigenvalue, where the model knows it.
    """

    values: Floats = field(repr=False)
    kept: int
    gap: float
    noise: float | None


@dataclass(frozen=True, eq=False)
class Convergence:
    """What the monitor of the refinement saw.

    Attributes
    ----------
    steps, values : (m,) arrays
        Steps taken and value (larger is better) at each look; both are empty where nothing was looked at.
    starts : tuple of int
        Where in these arrays another stage of the refinement begins.
    objective : str
        What the values are.
    n_iter : int
    converged : bool
    words : str
        How it ended, in a sentence.
    """

    steps: Floats = field(repr=False)
    values: Floats = field(repr=False)
    starts: tuple[int, ...]
    objective: str
    n_iter: int
    converged: bool
    words: str


def spectrum(model: Any) -> Spectrum:
    """The spectrum of a fitted model, and where it was cut."""
    report = check_model(model)
    values, k = np.asarray(report.spectrum, dtype=np.float64), report.n_components
    if "singular_values" in report.details:  # of the pairs of views: what was cut, unlike the pivot's own spectrum
        values = np.asarray(report.details["singular_values"], dtype=np.float64)
    kept = k - 1 if known_card(model).centred and values.size >= k > 1 else k
    noise = report.details.get("noise")
    known = isinstance(noise, (int, float, np.number)) and np.isfinite(noise) and noise > 0
    return Spectrum(values, min(kept, values.size), report.gap, float(noise) if known and noise is not None else None)


def convergence(model: Any) -> Convergence:
    """The trace of a fitted model's refinement, all its stages in a row."""
    report = check_model(model)
    traces = report.traces
    objective = known_card(model).objective
    if not traces:
        return Convergence(np.empty(0), np.empty(0), (), objective, 0, True, _no_trace(model))
    records = [
        (before + record.iteration, record.value) for before, trace in _shifted(traces) for record in trace.records
    ]
    steps, values = np.array(records, dtype=np.float64).reshape(-1, 2).T
    starts = tuple(int(n) for n in np.cumsum([len(trace.records) for trace in traces])[:-1])
    n_iter, last = sum(trace.n_iter for trace in traces), traces[-1]
    plural = "" if n_iter == 1 else "s"
    return Convergence(
        steps, values, starts, objective, n_iter, last.converged, f"{n_iter} step{plural}. {last.reason.value}"
    )


def _shifted(traces: tuple[Trace, ...]) -> list[tuple[int, Trace]]:
    before = np.cumsum([0, *(trace.n_iter for trace in traces)])
    return [(int(n), trace) for n, trace in zip(before, traces, strict=False)]


def _no_trace(model: Any) -> str:
    if getattr(model, "refine", None) is None:
        return "The moment estimate was not refined: nothing had to converge."
    steps = int(getattr(model, "n_iter_", 0) or 0)
    if steps:
        return f"{steps} iterations in all; this estimator keeps no value for each of them."
    return "The moment estimate was kept: there were no likelihood steps."
