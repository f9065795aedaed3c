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
from odeco.fitting.candidates import EFFORTS
from odeco.models.product_mixture.identified import not_identified
from odeco.models.product_mixture.lift import PairLift, needs_lift
from odeco.models.product_mixture.moments import first_look, product_start, summarize
from odeco.models.product_mixture.search import Table, beats_random_rows, find_start, random_states
from odeco.models.product_mixture.solve import ProductStart
from odeco.models.product_mixture.starts import START_FLOOR, as_parameters
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
# How far the moment estimate stays from impossible values by itself.
_PURE_FLOOR = 1e-6
# Data that need a search creep to their optimum: gain of a step at which EM ends there, on few rows and on many.
_SMALL_TOL, _LARGE_TOL = 1e-8, 1e-7


@dataclass(frozen=True)
class Options:
    """What the estimator was asked for."""

    n_components: int
    method: Decomposer
    route: str
    refine: str | None
    effort: str
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
    tol: float = np.inf


def fit_products(source: DenseSource, schema: Schema, options: Options, rng: np.random.Generator) -> ProductFit:
    """Fit to values of a table."""
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
        start, report.clipped = as_parameters(families, report.start, START_FLOOR)
    base = _base(data, source)
    if k > 1:
        start = _choose(Table.of(source, schema, data, base), start, options, rng, report)
    assert start is not None
    if options.refine == "one-step":
        report.steps.append("one scoring step")
        moved = scoring_step(data, start)
        likelihood = _likelihood(data, source, moved)
        return _finish(schema, families, moved, options, report, None, likelihood, n_iter=1)
    refined = refine_products(data, start, max_iter=options.max_iter, tol=min(options.tol, report.tol))
    report.steps.append(f"{refined.trace.n_iter} EM steps")
    report.details["refinement"] = refined.trace
    likelihood = float(refined.log_likelihood[0]) + base
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
    same, _ = as_parameters(families, one, START_FLOOR)
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
    return start.features, as_parameters(families, start, START_FLOOR)[0]


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
    parameters, report.clipped = as_parameters(pairs, start, START_FLOOR)
    features = first_look(source, schema)
    families = Families.of(schema, features.centre, features.scale)
    table = lift.marginal(pairs, parameters.table, families)
    report.steps.append("completed moments of pairs of columns")
    report.details["lifted"] = tuple(column.name for column in lift.schema.columns)
    report.details["lifted_start"] = start
    return features, Parameters(parameters.weights, table)


def _choose(
    table: Table, moments: Parameters | None, options: Options, rng: np.random.Generator, report: _Report
) -> Parameters:
    """The moment estimate where it is asked for or trusted, else the best of several candidates."""
    k, doubt = options.n_components, _doubt(report, options.n_components)
    alone = options.effort == "quick" or options.refine == "one-step"
    if moments is not None and (
        alone or (options.effort == "auto" and _trusted(table, moments, report.start, options, rng))
    ):
        report.advice.extend([doubt] if doubt else [])
        return moments
    if alone:
        report.steps.append("random rows")
        return random_states(table.landscape(), k, 1, rng)[0]
    found = find_start(table, moments, k, options.method, EFFORTS[options.effort], rng)
    report.steps.append(str(found) if table.is_whole else f"{found} on {len(table.rows)} rows")
    report.details.update(found.details())
    if table.is_whole:
        report.advice.clear()  # all is compared on all rows: what the moments lack is made up for
    elif doubt or moments is None:
        report.advice.extend([doubt] if doubt else [])
        report.advice[-1] += f" EM started from the best of {len(found.outcomes)} starts: try other seeds."
    report.tol = _SMALL_TOL if table.is_whole else _LARGE_TOL
    return found.best.state


def _trusted(
    table: Table, moments: Parameters, start: ProductStart | None, options: Options, rng: np.random.Generator
) -> bool:
    """Whether the data show just k components, the tensor has as many, and random rows lead no further."""
    if start is None or start.decomposition is None or not start.decomposition.status.ok:
        return False
    return start.n_distinct == options.n_components and beats_random_rows(table, moments, rng)


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
        suggested_components=None if start is None else start.suggested,
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
