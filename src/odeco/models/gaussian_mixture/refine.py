"""Likelihood steps of a Gaussian mixture: choose where EM starts, run it, say what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.fitting.candidates import Found as Searched
from odeco.fitting.candidates import finish, is_any_dead, said_of
from odeco.fitting.free import FINER
from odeco.models.gaussian_mixture.choice import Sample, are_round, is_trusted, sample_size, search_start, trial_size
from odeco.models.gaussian_mixture.passes import SPHERICAL, Description, GaussianMoments, Options, gaussian_passes
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.models.gaussian_mixture.theorem import Start, estimate, lifted
from odeco.moments.cumulants import SecondMoments
from odeco.moments.passes import fill, run_passes
from odeco.moments.vectors import ColumnMoments
from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Kept,
    Points,
    Refinement,
    n_parameters,
    refine_gaussian_mixture,
    single_is_enough,
)
from odeco.refinement.gaussian_scoring import gaussian_step
from odeco.refinement.loop import StoppingRule, Trace
from odeco.sources.dense import DenseBatch, DenseSource, as_dense_source, batches_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Refined:
    """Parameters about the mean after likelihood steps, and what is to be said of the way there."""

    parameters: GaussianParameters
    start: Start
    traces: tuple[Trace, ...] = field(default=(), repr=False)
    advice: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict, repr=False)


def refine(
    source: DenseSource,
    moments: GaussianMoments,
    start: Start | None,
    error: MomentError | None,
    options: Options,
    rng: np.random.Generator,
) -> Refined:
    """EM, or one scoring step, from the theorem's estimate where it can be trusted or was asked for.

    Elsewhere EM starts from the best of several candidates.
    """
    problem, why = Problem(source, options, moments, start, rng), "" if error is None else str(error)
    alone = options.refine == "one-step" or options.route != "auto" or options.effort == "quick"
    if start is None and alone:
        text = (
            f"the moments could not be relied on ({why}) EM started from PCA and k-means++ instead: it may end in a "
            "local optimum, so compare several random_state, or use effort='auto'."
        )
        return replace(_climbed(problem, _clusters(problem)), advice=(text,))
    if start is None or not (alone or _is_trusted(problem, start)):
        return _searched(problem, start, why)
    done = _climbed(problem, start)
    weights, k = done.parameters.weights, options.n_components
    if not alone and is_any_dead(weights):
        return _searched(problem, replace(start, parameters=done.parameters))
    if not alone and start.shown != k:  # of components too light to stand out the spectrum knows nothing
        return replace(done, start=replace(start, suggested=None))
    return done


@dataclass(frozen=True, eq=False)
class Problem:
    """All that the steps of a fit share."""

    source: DenseSource
    options: Options
    moments: GaussianMoments
    start: Start | None
    rng: np.random.Generator
    kept: dict[str, Kept] = field(default_factory=dict)
    read: dict[int, DenseBatch] = field(default_factory=dict)

    @property
    def description(self) -> Description:
        """First and second moments of all rows."""
        assert self.moments.description is not None
        return self.moments.description

    @cached_property
    def is_small(self) -> bool:
        """Whether a search costs next to nothing."""
        d, options = self.description.dimension, self.options
        per_row = options.n_components * d * (d if options.covariance_type == "full" else 1)
        return self.description.n * per_row <= POLICY.small

    @property
    def sample_size(self) -> int:
        """Rows that candidates are compared on."""
        return sample_size(self.options, self.description.dimension)

    def some_rows(self, size: int) -> DenseBatch:
        """Some rows, evenly spaced, read once."""
        if size not in self.read:
            self.read[size] = self.source.sample(size)
        return self.read[size]

    def sample(self, size: int) -> Sample:
        """Some rows to compare candidates on."""
        return self.samples(size, 1)[0]

    def samples(self, size: int, n: int, dtype: Any = np.float64, directions: Floats | None = None) -> list[Sample]:
        """Several that have no row in common; `dtype` is that of the products of EM on them."""
        batch = self.some_rows(n * size)
        weights = batch.weights
        parts = [DenseBatch(batch.rows[i::n], None if weights is None else weights[i::n]) for i in range(n)]
        return [Sample.of(part, self.description, self.options, self.rng, dtype, directions) for part in parts]

    def limits(self, parameters: GaussianParameters) -> dict[str, Any]:
        """What keeps variances up, and the covariance that a shared one is read from."""
        scales = self.description.column_variances
        total = self.description.covariance if parameters.covariance_type == "tied" else None
        if parameters.covariance_type in SPHERICAL:
            scales = np.full(1, scales.mean())
        return {"scales": scales, "floor": self.options.floor, "total": total}

    def projected(self) -> Points:
        """The projected rows, for EM on spheres."""
        rows, d = self.moments.rows, self.description.dimension
        assert rows is not None
        batches = list(batches_of(rows.z, rows.weights, POLICY.batch))
        return Points(batches, None, rows.z.dtype, d, rows.rest, Kept(len(rows.z)))

    @cached_property
    def near(self) -> Refinement | None:
        """Where EM on the projected rows brings the theorem's spheres, if there are any and more than one step."""
        start, rule = self.start, self.options.rule
        if start is None or start.reduced is None or self.moments.rows is None or rule.max_iter == 1:
            return None
        rule = replace(rule, max_iter=rule.max_iter - 1)
        return refine_gaussian_mixture(self.projected(), start.reduced, rule, **self.limits(start.reduced))

    def whole(self, parameters: GaussianParameters) -> Points:
        """The rows themselves about their mean, in single precision where that is enough for these parameters."""
        description, rows = self.description, self.moments.rows
        if rows is None:
            return Points(self.source, description.mean, np.dtype(np.float64), description.dimension)
        enough = rows.z.dtype == np.float32 and single_is_enough(
            parameters, float(rows.squares.max()), description.column_variances
        )
        dtype = np.dtype(np.float32 if enough else np.float64)
        fits = description.n * (description.dimension + 2) * dtype.itemsize <= POLICY.kept_bytes
        kept = self.kept.setdefault(dtype.name, Kept(description.n)) if fits else None
        return Points(self.source, description.mean, dtype, description.dimension, kept=kept)


def climbed(source: DenseSource, begin: GaussianParameters, options: Options) -> GaussianParameters:
    """EM on other rows from where a fit ended, and nothing else."""
    origin = begin.weights @ begin.means
    columns = fill(ColumnMoments(source.n_features, origin), source)
    total = None
    if begin.covariance_type == "tied":
        second = fill(SecondMoments(source.n_features, origin), source)
        offset = second.mean - origin
        total = second.covariance + np.outer(offset, offset)
    scales = np.full(1, columns.variances.mean()) if begin.covariance_type in SPHERICAL else columns.variances
    points = Points(source, origin, np.dtype(np.float64), source.n_features)
    rule = replace(options.rule, tol=options.rule.tol / FINER)
    limits: dict[str, Any] = {"scales": scales, "floor": options.floor, "total": total}
    return refine_gaussian_mixture(points, begin.shifted(-origin), rule, **limits).parameters.shifted(origin)


def _is_trusted(problem: Problem, start: Start) -> bool:
    # Spheres differ in the span of their means alone: on the directions of all rows few of them tell who is ahead.
    directions = problem.moments.lift if problem.options.covariance_type in SPHERICAL else None
    size = trial_size(problem.options, problem.description.dimension if directions is None else directions.shape[1])
    # A short look, in the precision in which EM goes on from this start.
    samples = partial(problem.samples, size, 2, problem.whole(start.parameters).dtype, directions)
    return is_trusted(start, problem.options, partial(_is_fitted, problem), samples, small=problem.is_small)


def _is_fitted(problem: Problem) -> bool:
    """Whether components are spheres, and round where EM on the projected rows has brought them."""
    rows, near = problem.moments.rows, problem.near
    if problem.options.covariance_type not in SPHERICAL or rows is None or near is None:
        return False
    return are_round(rows, near.parameters, problem.description.dimension)


def _clusters(problem: Problem) -> Start:
    """Clusters of k-means alone."""
    k = problem.options.n_components
    sample = problem.sample(problem.sample_size)
    found = sample.clusters(k, int(problem.rng.integers(2**31 - 1)))
    return Start("k-means++", sample.lift(found), doubtful=True)


def _climbed(problem: Problem, start: Start) -> Refined:
    """EM from one start: on the projected rows where components are spheres, then on the rows; or one scoring step."""
    if problem.options.refine == "one-step":
        stepped, done = gaussian_step(problem.whole(start.parameters), start.parameters)
        return Refined(stepped, start, details={"step_share": done.share})
    em, parameters = _Em(problem), start.parameters
    if start.reduced is not None and problem.near is not None:
        em.count(problem.near.trace)
        assert problem.moments.lift is not None
        parameters = lifted(problem.near.parameters, problem.moments.lift, problem.options.covariance_type)
    n_projected = sum(trace.n_iter for trace in em.traces)
    parameters = em(problem.whole(parameters), parameters, em.left)
    return Refined(parameters, start, tuple(em.traces), details={"projected_steps": n_projected})


def _searched(problem: Problem, start: Start | None, why: str = "") -> Refined:
    """EM from the best of several candidates on a part of the rows, or on all where they are few.

    Finalists that were found on a part are compared on all rows where these are at hand.
    """
    options, em = problem.options, _Em(problem)
    sample = problem.sample(problem.sample_size)
    found = search_start(sample, start, partial(_larger, problem), options, problem.rng)
    lift: Callable[[GaussianParameters], GaussianParameters] = sample.lift
    if len(sample.landscape.rows) < problem.description.n:
        if problem.source.holds_rows:
            whole = _Whole(problem, lift)
            found, lift = _recounted(finish(found, whole, POLICY.final_steps), whole), _as_it_is
            em.left = max(em.left - POLICY.final_steps, 1)
        elif found.fewer:  # passes over rows elsewhere are dear, and a part of them shows fewer by its size alone
            found = replace(found, suggested=None, idle=0)
    best = lift(found.best.state)
    tol = options.rule.tol / (100 if problem.is_small and problem.source.holds_rows else 1)
    parameters = em(problem.whole(best), best, em.left, tol)
    named = _named(start or Start("", best), found, why)
    if not problem.source.holds_rows:
        named.details["searched_rows"] = len(sample.landscape.rows)
    return Refined(parameters, named, tuple(em.traces), said_of(found, options.n_components), {"projected_steps": 0})


def _recounted(found: Searched[GaussianParameters], whole: _Whole) -> Searched[GaussianParameters]:
    """Fewer components are suggested only where all rows say so, too: a part of them shows fewer by its size alone."""
    if not found.fewer:
        return found
    options, description = whole.problem.options, whole.problem.description

    def criterion(size: int, value: float) -> float:
        """BIC of all rows, in nats: larger is better."""
        n_free = n_parameters(options.covariance_type, size, description.dimension)
        return value * description.weight - n_free * float(np.log(description.weight)) / 2

    k, in_vain = options.n_components, 0
    best, highest = k, criterion(k, found.best.value)
    for size in sorted(found.fewer, reverse=True):
        reached = criterion(size, whole.climb(found.fewer[size], POLICY.final_steps, 0.0)[1])
        best, highest, in_vain = (size, reached, 0) if reached > highest else (best, highest, in_vain + 1)
        if in_vain == POLICY.in_vain:
            break
    return replace(found, suggested=best, idle=min(found.idle, k - best))


def _named(start: Start, found: Searched[GaussianParameters], why: str) -> Start:
    """The start that won, with what the theorem's own tells of the data."""
    details = {**start.details, **({"moments": why} if why else {}), **found.details()}
    return replace(start, name=found.best.name, reduced=None, suggested=found.suggested, details=details)


def _larger(problem: Problem, n_components: int) -> GaussianParameters:
    """The theorem's estimate of another number of components, from the rows that candidates are compared on."""
    rows = problem.some_rows(problem.sample_size)
    options = replace(problem.options, n_components=n_components)
    source = as_dense_source([rows])
    moments = run_passes(gaussian_passes(source, options, problem.rng), source)
    found = estimate(moments, options, problem.rng, check=False)
    return found.parameters.shifted(moments.mean - problem.moments.mean)


class _Em:
    """EM steps that are counted, and their traces."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.left = problem, problem.options.rule.max_iter
        self.traces: list[Trace] = []

    def __call__(
        self, points: Points, begin: GaussianParameters, most: int, tol: float | None = None
    ) -> GaussianParameters:
        rule = self.problem.options.rule
        steps = replace(rule, max_iter=most, tol=rule.tol if tol is None else tol)
        done = refine_gaussian_mixture(points, begin, steps, **self.problem.limits(begin))
        self.count(done.trace)
        return done.parameters

    def count(self, trace: Trace) -> None:
        self.left -= trace.n_iter
        self.traces.append(trace.by(self.problem.options.rule.tol))


@dataclass(frozen=True, eq=False)
class _Whole:
    """All rows, to be climbed."""

    problem: Problem
    lift: Callable[[GaussianParameters], GaussianParameters]

    def climb(self, state: GaussianParameters, n_steps: int, tol: float) -> tuple[GaussianParameters, float]:
        begin = self.lift(state)
        rule = StoppingRule(n_steps, tol)
        done = refine_gaussian_mixture(self.problem.whole(begin), begin, rule, **self.problem.limits(begin))
        return done.parameters, float(done.trace.best)


def _as_it_is(state: GaussianParameters) -> GaussianParameters:
    return state


def describe(moments: GaussianMoments, refined: Refined, options: Options, advice: tuple[str, ...] = ()) -> Diagnostics:
    """The report of a fit, or of the moments of a stream."""
    k, start, description = options.n_components, refined.start, moments.description
    spectrum = start.spectrum
    if spectrum is None:
        spectrum = np.empty(0) if description is None else description.eigenvalues
    leading = spectrum[: k - 1]
    good = leading.size == k - 1 and (k == 1 or leading[-1] > 0)
    counted = {"n_samples": moments.n} if description is None else {"refinement": refined.traces}
    return Diagnostics(
        n_components=k,
        spectrum=np.asarray(spectrum),
        gap=start.gap,
        condition=1.0 if k == 1 else float(leading[0] / leading[-1]) if good else float("inf"),
        residual=start.residual,
        method=_method(moments, refined, options),
        n_passes=1 if description is None or k == 1 else int(start.details.get("n_passes", 0)) + 2,
        suggested_components=None if description is None else start.suggested,
        advice=refined.advice + advice,
        details={**start.details, **counted, **refined.details},
    )


def _method(moments: GaussianMoments, refined: Refined, options: Options) -> str:
    """How the parameters were found, in words."""
    start, traces = refined.start, refined.traces
    if moments.description is None:
        return f"{start.name}, one pass, no likelihood steps"
    starts = start.details.get("starts", ())
    method = start.name if len(starts) <= 1 else f"{start.name}, the best of {len(starts)} starts"
    if "searched_rows" in start.details:
        method += f" on {start.details['searched_rows']} rows"
    if "step_share" in refined.details:
        return f"{method}, then one scoring step"
    if not traces:
        return method
    method += f", then {sum(trace.n_iter for trace in traces)} EM steps"
    projected = refined.details["projected_steps"]
    return f"{method} ({projected} of them on {options.n_components - 1} dimensions)" if projected else method
