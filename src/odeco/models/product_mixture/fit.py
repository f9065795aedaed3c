"""The fit of a product mixture, in order: moments, a start (or several), EM, the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models.product_mixture.identified import not_identified
from odeco.models.product_mixture.lift import PairLift, needs_lift
from odeco.models.product_mixture.moments import first_look, product_start, summarize
from odeco.models.product_mixture.solve import ProductStart
from odeco.models.product_mixture.starts import Chosen, affordable_starts, as_parameters, best_start, random_starts
from odeco.models.product_mixture.views import views_start
from odeco.moments.products import FeatureMap, ProductMarginals
from odeco.refinement.families import Families
from odeco.refinement.loop import Trace
from odeco.refinement.product_mixture import (
    BaseSum,
    Data,
    Parameters,
    data_elsewhere,
    expect,
    read_data,
    refine_products,
)
from odeco.refinement.product_scoring import scoring_step
from odeco.sources.dense import DenseBatch, DenseSource, OutOfCoreRows
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

# Statistics of all samples are kept in memory up to this size, and computed at every step beyond.
_MOST_BYTES = 2**30
# Rows on which starts are compared where all rows are too many, and how many starts.
_SUBSAMPLE = 3_000
_SUBSAMPLE_STARTS = 10
# How far the moment estimate stays from impossible values, as a start and by itself.
_START_FLOOR, _PURE_FLOOR = 1e-3, 1e-6


@dataclass(frozen=True)
class Options:
    """What the estimator was asked for."""

    n_components: int
    method: Decomposer
    route: str
    refine: str | None
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class ProductFit:
    """Parameters in the order of their weights, and the report."""

    families: Families
    weights: Floats
    table: Floats = field(repr=False)
    n_iter: int
    converged: bool
    log_likelihood: float
    diagnostics: Diagnostics


@dataclass(eq=False)
class _Report:
    """What is found along the way."""

    steps: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    start: ProductStart | None = None
    clipped: float = 0.0


def fit_products(
    source: DenseSource, schema: Schema, options: Options, rng: np.random.Generator, distinct: bool
) -> ProductFit:
    """Fit to values of a table. `distinct`: rows are few or joined, so that several starts may be tried."""
    report = _Report()
    k = options.n_components
    if isinstance(source, OutOfCoreRows) and (options.route == "views" or options.refine == "one-step"):
        asked = "route='views'" if options.route == "views" else "refine='one-step'"
        raise ValueError(f"{asked} needs the rows in memory: these are elsewhere or out of core. Use the defaults.")
    features, start = _moments(source, schema, options, rng, report)
    families = Families.of(schema, features.centre, features.scale)
    if isinstance(source, OutOfCoreRows):
        data = data_elsewhere(families, source)
    else:
        data = read_data(families, lambda: _values(source), _MOST_BYTES)
    if options.refine is None:
        if start is None:
            raise MomentError(report.advice[0])
        parameters, report.clipped = (
            as_parameters(families, report.start, _PURE_FLOOR) if report.start else (start, 0.0)
        )
        return _finish(schema, families, parameters, options, report, None, _likelihood(data, source, parameters))
    if start is not None and report.start is not None and k > 1:
        start, report.clipped = as_parameters(families, report.start, _START_FLOOR)
    if k > 1:
        start = _choose(data, source, schema, start, options, rng, report, distinct)
    assert start is not None
    if options.refine == "one-step":
        report.steps.append("one scoring step")
        moved = scoring_step(data, start)
        likelihood = _likelihood(data, source, moved)
        return _finish(schema, families, moved, options, report, None, likelihood, n_iter=1)
    tol = min(options.tol, 1e-8) if "starts" in report.details and distinct else options.tol
    refined = refine_products(data, start, max_iter=options.max_iter, tol=tol)
    report.steps.append(f"{refined.trace.n_iter} EM steps")
    report.details["refinement"] = refined.trace
    likelihood = float(refined.log_likelihood[0]) + _base(data, source)
    return _finish(schema, families, refined.parameters, options, report, refined.trace, likelihood)


def fit_stream(start: ProductStart, schema: Schema, options: Options) -> ProductFit:
    """The moment estimate of rows that are gone."""
    families = Families.of(schema, start.features.centre, start.features.scale)
    report = _Report(["completed moments, one pass (EM would need the rows again)"], start=start)
    parameters, report.clipped = as_parameters(families, start, _PURE_FLOOR)
    return _finish(schema, families, parameters, replace(options, refine=None), report, None, float("nan"))


def wait_for_rows(source: DenseSource, schema: Schema, options: Options, reason: str) -> ProductFit:
    """All components alike, until there are rows to tell them apart."""
    one = product_start(source, schema, 1, np.random.default_rng(0))
    families = Families.of(schema, one.features.centre, one.features.scale)
    same, _ = as_parameters(families, one, _START_FLOOR)
    k = options.n_components
    report = _Report(["waiting for more rows"], [f"the rows so far do not determine the components ({reason})"])
    parameters = Parameters(np.full((1, k), 1.0 / k), np.repeat(same.table, k, axis=0))
    return _finish(schema, families, parameters, options, report, None, float("nan"))


def _moments(
    source: DenseSource, schema: Schema, options: Options, rng: np.random.Generator, report: _Report
) -> tuple[FeatureMap, Parameters | None]:
    """The moment estimate where there is one; where there is none, the reason goes into the report."""
    k = options.n_components
    try:
        if needs_lift(schema, k) and options.route != "views":
            return _lifted(source, schema, options, rng, report)
        if options.route == "views" and k > 1:
            start, found = views_start(source, schema, k, rng, method=options.method, polish=options.refine is not None)
            report.details.update(found)
            report.steps.append("three views")
        else:
            start = product_start(source, schema, k, rng, method=options.method)
            report.steps.append("completed moments" if k > 1 else "means")
    except MomentError as error:
        report.advice.append(f"the moments could not be used: {error}")
        marginals = ProductMarginals(first_look(source, schema)).update_all(source)
        return summarize(marginals, marginals.variance).features, None
    report.start = start
    families = Families.of(schema, start.features.centre, start.features.scale)
    return start.features, as_parameters(families, start, _START_FLOOR)[0]


def _lifted(
    source: DenseSource, schema: Schema, options: Options, rng: np.random.Generator, report: _Report
) -> tuple[FeatureMap, Parameters]:
    """The estimate from pairs of columns, marginalized."""
    lift = PairLift(schema)

    def read() -> Iterator[DenseBatch]:
        return (DenseBatch(lift.values(values), weights) for values, weights in _values(source))

    pairs_of = source.map(partial(_lift_rows, lift)) if isinstance(source, OutOfCoreRows) else DenseSource(read)
    start = product_start(pairs_of, lift.schema, options.n_components, rng, method=options.method)
    pairs = Families.of(lift.schema, start.features.centre, start.features.scale)
    parameters, report.clipped = as_parameters(pairs, start, _START_FLOOR)
    features = first_look(source, schema)
    families = Families.of(schema, features.centre, features.scale)
    table = lift.marginal(pairs, parameters.table, families)
    report.steps.append("completed moments of pairs of columns")
    report.details["lifted"] = tuple(column.name for column in lift.schema.columns)
    report.details["lifted_start"] = start
    return features, Parameters(parameters.weights, table)


def _choose(
    data: Data,
    source: DenseSource,
    schema: Schema,
    start: Parameters | None,
    options: Options,
    rng: np.random.Generator,
    report: _Report,
    distinct: bool,
) -> Parameters:
    """The moment start; on small tables the best of it and many others; without a trusted one, of some on a sample."""
    k = options.n_components
    doubt = _doubt(report, k)
    first, weights = next(iter(data.batches))
    mass = np.ones(len(first)) if weights is None else weights
    n_starts = affordable_starts(len(first), data.families.n_statistics, k) if distinct else 0
    moments = [] if start is None else [start]
    if options.refine == "one-step" and start is not None:
        return start
    if n_starts:
        others = random_starts(data.families, data.overall, first, mass, n_starts - len(moments), k, rng)
        chosen = best_start(data, [*moments, others], len(moments))
        report.advice.clear()
        _announce(report, chosen, f"the best of {chosen.n_starts} starts")
        return chosen.parameters
    if start is not None and not doubt:
        return start
    rows = rng.choice(len(first), size=min(_SUBSAMPLE, len(first)), replace=False)
    sample = Data(data.families, [(first[rows], mass[rows])], float(mass[rows].sum()), data.overall)
    others = random_starts(data.families, data.overall, first[rows], mass[rows], _SUBSAMPLE_STARTS, k, rng)
    chosen = best_start(sample, [*moments, others], len(moments))
    text = f"the best of {chosen.n_starts} starts on {len(rows)} rows"
    _announce(report, chosen, text)
    if doubt:
        report.advice.append(doubt)
    report.advice[-1] += f" EM started from {text}: try other seeds."
    return chosen.parameters


def _announce(report: _Report, chosen: Chosen, text: str) -> None:
    reached = "was" if chosen.from_moments else "was not"
    report.steps.append(f"{text} ({chosen.replicated} ended there; it {reached} reached from the moments)")
    report.details["starts"] = chosen.n_starts
    report.details["replicated"] = chosen.replicated
    report.details["start_values"] = chosen.values


def _doubt(report: _Report, k: int) -> str:
    start = report.start
    if start is None or k < 2 or start.spectrum.size < k - 1:
        return ""
    last = start.spectrum[k - 2]
    if last <= start.noise:
        count = int(np.sum(start.spectrum > start.noise)) + 1
        return (
            f"eigenvalue {k - 1} of the pair moments, {last:.3g}, is within the noise ({start.noise:.3g}): the means "
            f"tell about {count} components apart. Lower n_components, or use more rows or columns."
        )
    return ""


def _finish(
    schema: Schema,
    families: Families,
    parameters: Parameters,
    options: Options,
    report: _Report,
    trace: Trace | None,
    likelihood: float,
    *,
    n_iter: int = 0,
) -> ProductFit:
    order = np.argsort(-parameters.weights[0], kind="stable")
    weights, table = parameters.weights[0][order], parameters.table[order]
    start, k = report.start, options.n_components
    if start is None:
        start = report.details.pop("lifted_start", None)
    refined = options.refine is not None
    if not refined:
        doubt = _doubt(report, k)
        report.advice.extend([doubt] if doubt else [])
        if start is not None and start.decomposition is not None and not start.decomposition.status.ok:
            report.advice.append(f"the tensor's decomposition is {start.decomposition.status}")
    if trace is not None and not trace.converged:
        report.advice.append(f"EM has not converged: {trace.reason.value}")
    report.advice.extend(schema.notes)
    doubt = not_identified(schema, k)
    report.advice.extend([doubt] if doubt else [])
    nothing = float("nan")
    diagnostics = Diagnostics(
        n_components=k,
        spectrum=np.empty(0) if start is None else start.spectrum,
        gap=nothing if start is None else start.gap,
        condition=nothing if start is None else start.condition,
        residual=nothing if start is None else start.residual,
        clipped_mass=report.clipped,
        suggested_components=None if start is None else int(np.sum(start.spectrum > start.noise)) + 1,
        method=", then ".join(report.steps),
        n_passes=0 if start is None else start.n_passes,
        advice=tuple(report.advice),
        details={"noise": None if start is None else start.noise, **report.details},
    )
    converged = trace is not None and trace.converged
    n_iter = n_iter if trace is None else trace.n_iter
    return ProductFit(families, weights, table, n_iter, converged, likelihood, diagnostics)


def _likelihood(data: Data, source: DenseSource, parameters: Parameters) -> float:
    """Mean log-likelihood per sample."""
    return float(expect(data, parameters).log_likelihood[0]) / data.weight + _base(data, source)


def _base(data: Data, source: DenseSource) -> float:
    """The part of the mean log-likelihood that no parameter enters."""
    if not data.families.poisson.size and not data.families.gaussian.size:
        return 0.0
    return BaseSum(data.families).update_all(source).total / data.weight


def _lift_rows(lift: PairLift, batch: DenseBatch) -> DenseBatch:
    return DenseBatch(lift.values(np.asarray(batch.rows, dtype=np.float64)), batch.weights)


def _values(source: DenseSource) -> Iterator[tuple[Floats, Floats | None]]:
    return ((np.asarray(batch.rows, dtype=np.float64), batch.weights) for batch in source)
