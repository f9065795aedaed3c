"""The sequence of a Gaussian mixture's fit: describe, project, start, choose among starts, refine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.fitting.candidates import DEAD, EFFORTS, Found, finish, said_of
from odeco.models.gaussian_mixture.choice import Sample, is_trusted, sample_size, search_start
from odeco.models.gaussian_mixture.data import (
    Description,
    Options,
    Problem,
    describe_rows,
    limits,
    project,
    reduced_points,
    some_rows,
    spherical_moments,
    whole_points,
)
from odeco.models.gaussian_mixture.moments import SphericalMoments
from odeco.models.gaussian_mixture.starts import Start, lifted, product_start, spherical_start, view_start
from odeco.models.mixture_base import check_enough
from odeco.refinement.gaussian_mixture import GaussianParameters, Points, floored, refine_gaussian_mixture
from odeco.refinement.loop import StoppingRule, Trace
from odeco.sources.dense import DenseSource, OutOfCoreRows, as_dense_source
from odeco.sources.scale import check_columns

Floats = NDArray[np.float64]

# Up to this many numbers in the posteriors, times columns, several starts cost less than a second.
_SMALL = 300_000
# One in so many components may be too light for its direction to stand out.
_LIGHT = 10
# Steps on all rows after which finalists of a search on some are compared.
_FINAL_STEPS = 5


@dataclass(frozen=True, eq=False)
class Fitted:
    """Parameters about the origin, in canonical order, and the report."""

    parameters: GaussianParameters
    diagnostics: Diagnostics
    traces: tuple[Trace, ...] = field(default=(), repr=False)


def fit_source(source: DenseSource, options: Options, rng: np.random.Generator) -> Fitted:
    """Fit to a source that can be read again and again."""
    if not source.reiterable:
        raise ValueError(
            "several passes over the data are needed, but an iterator can be read only once: pass a function that "
            "returns a new iterator at each call (or a list of batches), or use partial_fit."
        )
    k = options.n_components
    exact = k == 1 or options.covariance_type in ("full", "tied")
    description = describe_rows(source, k, rng, exact=exact)
    check_enough(description.n, k)
    check_columns(np.abs(description.mean) + np.sqrt(description.variances))
    if k == 1:
        return _one_component(description, options)
    if isinstance(source, OutOfCoreRows):
        from odeco.models.gaussian_mixture.sums import fit_sums

        return fit_sums(source, options, description, rng)
    d = description.dimension
    rows = project(source, description, min(d, k - 1))
    problem = Problem(source, options, description, rows, description.directions[:, : min(d, k - 1)], rng)
    chosen, fitted, traces, done = _refine(problem, _choose(problem))
    return Fitted(fitted.shifted(description.mean).ordered(), _report(problem, chosen, traces, done), traces)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Where EM starts, and what is to be said of it; several states are still compared where rows are many."""

    start: Start
    found: Found[GaussianParameters] | None = field(default=None, repr=False)
    sample: Sample | None = field(default=None, repr=False)
    advice: tuple[str, ...] = ()


def _choose(problem: Problem) -> Chosen:
    """The theorem's estimate where it can be trusted, or where it was asked for; the best of a search elsewhere."""
    options = problem.options
    start, why = None, ""
    try:
        start = _moment_start(problem)
    except MomentError as error:
        if options.refine is None:
            raise
        why = str(error)
    alone = options.refine in (None, "one-step") or options.route != "auto" or options.effort == "quick"
    if start is not None and (alone or is_trusted(start, options, small=_is_small(problem))):
        return Chosen(start)
    if alone:
        text = (
            f"the moments could not be relied on ({why}) EM started from PCA and k-means++ instead: it may end in a "
            "local optimum, so compare several random_state, or use effort='auto'."
        )
        return Chosen(_clusters(problem), advice=(text,))
    return _searched(problem, start, why)


def _clusters(problem: Problem) -> Start:
    """Clusters of k-means alone."""
    sample = _sample(problem)
    found = sample.clusters(problem.options.n_components, int(problem.rng.integers(2**31 - 1)))
    return Start("k-means++", sample.lift(found), doubtful=True)


def _sample(problem: Problem) -> Sample:
    rows = some_rows(problem, sample_size(problem.options.n_components))
    return Sample.of(rows, problem.description, problem.options, problem.rng)


def _searched(problem: Problem, start: Start | None, why: str = "") -> Chosen:
    """The best of several candidates on a part of the rows, or on all where they are few."""
    options, sample = problem.options, _sample(problem)
    effort = EFFORTS[options.effort]
    found = search_start(sample, start, partial(_larger, problem), options, effort, problem.rng)
    details = {**({} if start is None else start.details), **({"moments": why} if why else {})}
    blank = Start("", sample.lift(found.best.state)) if start is None else start
    return Chosen(replace(blank, reduced=None, details=details), found, sample)


def _larger(problem: Problem, n_components: int) -> GaussianParameters:
    """The theorem's estimate of another number of components, from the rows that candidates are compared on."""
    rows = some_rows(problem, sample_size(problem.options.n_components))
    options = replace(problem.options, n_components=n_components)
    source = as_dense_source([rows])
    description = describe_rows(source, n_components, problem.rng)
    width = min(description.dimension, n_components - 1)
    other = Problem(
        source,
        options,
        description,
        project(source, description, width),
        description.directions[:, :width],
        problem.rng,
    )
    found = _moment_start(other, check=False)
    return found.parameters.shifted(description.mean - problem.description.mean)


def _moment_start(problem: Problem, *, check: bool = True) -> Start:
    options, description = problem.options, problem.description
    k, kind = options.n_components, options.covariance_type
    if kind == "diag" and options.route != "views":
        return product_start(problem.source, description.mean, k, problem.rng, options.method)
    if description.dimension < k:
        raise MomentError(
            f"n_features={description.dimension} is less than n_components={k}: there is no noise space to read the "
            "variance from."
        )
    moments = spherical_moments(problem.rows, description)
    if options.route == "views":
        return view_start(
            problem.source, description, k, kind, moments, problem.rng, options.method, pure=options.refine is None
        )
    if check:
        check_gap(moments)
    start = spherical_start(moments, problem.directions, kind, problem.rng, options.method, pure=options.refine is None)
    return _pooled(problem, start)


def check_gap(moments: SphericalMoments) -> None:
    """Raise where the means do not stand out from the noise in k - 1 dimensions.

    One in ten components may be too light to stand out: EM finds these once it has the others.
    """
    k, edge = moments.n_components, moments.noise_edge
    above = int(np.count_nonzero(moments.eigenvalues[: k - 1] > edge))
    if k - 1 - above > k // _LIGHT:
        raise MomentError(
            f"eigenvalue {above + 1} of the covariance, {moments.eigenvalues[above]:.4g}, is within the noise (up to "
            f"{edge:.4g}): the means are collinear or nearly so, or there are fewer than {k} components; {above + 1} "
            "would stand out."
        )


def _is_small(problem: Problem) -> bool:
    d = problem.description.dimension
    per_row = problem.options.n_components * d * (d if problem.options.covariance_type == "full" else 1)
    return problem.description.n * per_row <= _SMALL


def _pooled(problem: Problem, start: Start) -> Start:
    """One covariance for all: what the means leave of the data's, rather than a sphere."""
    parameters, total = start.parameters, problem.description.covariance
    if parameters.covariance_type != "tied" or total is None:
        return start
    floor = problem.options.floor * problem.description.column_variances
    within = floored(total - (parameters.means.T * parameters.weights) @ parameters.means, floor)
    return replace(start, parameters=replace(parameters, covariances=within))


def _refine(problem: Problem, chosen: Chosen) -> tuple[Chosen, GaussianParameters, tuple[Trace, ...], dict[str, Any]]:
    """EM on the projected rows where components are spheres, then on the rows themselves; traces; what was done."""
    options, start = problem.options, chosen.start
    if options.refine is None:
        return chosen, start.parameters, (), {}
    if options.refine == "one-step":
        from odeco.refinement.one_step import scoring_step

        stepped, share = scoring_step(whole_points(problem, start.parameters), start.parameters)
        return chosen, stepped, (), {"step_share": share}
    if chosen.found is not None:
        return _refine_found(problem, chosen)
    em = _Em(problem)
    parameters = start.parameters
    if start.reduced is not None and em.left > 1:
        state = em(reduced_points(problem), start.reduced, em.left - 1)
        parameters = lifted(state, problem.directions, options.covariance_type)
    n_reduced = sum(trace.n_iter for trace in em.traces)
    parameters = em(whole_points(problem, parameters), parameters, em.left)
    if (
        options.route == "auto"
        and options.effort != "quick"
        and (parameters.weights < DEAD / parameters.weights.size).any()
    ):
        return _refine_found(problem, _searched(problem, replace(start, parameters=parameters)))
    return chosen, parameters, tuple(em.traces), {"projected_steps": n_reduced}


def _refine_found(
    problem: Problem, chosen: Chosen
) -> tuple[Chosen, GaussianParameters, tuple[Trace, ...], dict[str, Any]]:
    """EM from the best of a search; finalists that were found on a part of the rows are compared on all of them."""
    found, sample, em = chosen.found, chosen.sample, _Em(problem)
    assert found is not None
    assert sample is not None
    lift: Callable[[GaussianParameters], GaussianParameters] = sample.lift
    if len(sample.landscape.rows) < problem.description.n:
        on_all = finish(found, _Whole(problem, lift), _FINAL_STEPS)
        em.left = max(em.left - _FINAL_STEPS, 1)
        found, lift = on_all, _as_it_is
    best = lift(found.best.state)
    tol = problem.options.rule.tol / (100 if _is_small(problem) else 1)
    parameters = em(whole_points(problem, best), best, em.left, tol)
    advice = said_of(found, problem.options.n_components)
    named = replace(
        chosen.start,
        name=found.best.name,
        suggested=found.suggested,
        details={**chosen.start.details, **found.details()},
    )
    return replace(chosen, start=named, advice=advice), parameters, tuple(em.traces), {"projected_steps": 0}


def _as_it_is(state: GaussianParameters) -> GaussianParameters:
    return state


class _Em:
    """EM steps that are counted, and their traces."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.left = problem, problem.options.rule.max_iter
        self.traces: list[Trace] = []

    def __call__(
        self, points: Points, begin: GaussianParameters, most: int, tol: float | None = None
    ) -> GaussianParameters:
        rule = self.problem.options.rule
        done = refine_gaussian_mixture(
            points,
            begin,
            replace(rule, max_iter=most, tol=rule.tol if tol is None else tol),
            **limits(self.problem, begin),
        )
        self.left -= done.trace.n_iter
        self.traces.append(done.trace.by(rule.tol))
        return done.parameters


@dataclass(frozen=True, eq=False)
class _Whole:
    """All rows, to be climbed."""

    problem: Problem
    lift: Callable[[GaussianParameters], GaussianParameters]

    def climb(self, state: GaussianParameters, n_steps: int, tol: float) -> tuple[GaussianParameters, float]:
        begin = self.lift(state)
        points = whole_points(self.problem, begin)
        done = refine_gaussian_mixture(points, begin, StoppingRule(n_steps, tol), **limits(self.problem, begin))
        return done.parameters, float(done.trace.best)


def _one_component(description: Description, options: Options) -> Fitted:
    """One Gaussian has its maximum of the likelihood in closed form."""
    floor = options.floor * description.column_variances
    covariance, d = description.covariance, description.dimension
    assert covariance is not None
    variances = np.maximum(np.diag(covariance), floor)
    spherical = max(float(np.trace(covariance)) / d, float(floor.mean()))
    covariances: Any = {
        "spherical": np.array([spherical]),
        "tied_spherical": spherical,
        "diag": variances[None],
    }.get(options.covariance_type)
    if covariances is None:
        whole = floored(covariance, floor)
        covariances = whole if options.covariance_type == "tied" else whole[None]
    parameters = GaussianParameters(np.ones(1), description.mean[None], covariances, options.covariance_type)
    report = Diagnostics(1, description.eigenvalues, 1.0, 1.0, 0.0, method="mean and covariance, one component")
    return Fitted(parameters, report)


def _report(problem: Problem, chosen: Chosen, traces: tuple[Trace, ...], done: dict[str, Any]) -> Diagnostics:
    start, advice, k = chosen.start, chosen.advice, problem.options.n_components
    spectrum = problem.description.eigenvalues if start.spectrum is None else start.spectrum
    leading = spectrum[: k - 1]
    condition = float(leading[0] / leading[-1]) if leading.size == k - 1 and leading[-1] > 0 else float("inf")
    starts = start.details.get("starts", ())
    method = start.name if len(starts) <= 1 else f"{start.name}, the best of {len(starts)} starts"
    if problem.options.refine == "one-step":
        method += ", then one scoring step"
    elif traces:
        method += f", then {sum(trace.n_iter for trace in traces)} EM steps"
        if done["projected_steps"]:
            method += f" ({done['projected_steps']} of them on {problem.rows.z.shape[1]} dimensions)"
    return Diagnostics(
        n_components=k,
        spectrum=np.asarray(spectrum),
        gap=start.gap,
        condition=condition,
        residual=start.residual,
        method=method,
        n_passes=int(start.details.get("n_passes", 0)) + 2,
        suggested_components=start.suggested,
        advice=advice,
        details={**start.details, "refinement": traces, **done},
    )
