"""The sequence of a Gaussian mixture's fit: describe, project, start, choose among starts, refine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models.gaussian_mixture.data import (
    SPHERICAL,
    Description,
    Options,
    Problem,
    describe_rows,
    limits,
    project,
    project_on,
    reduced_points,
    some_points,
    spherical_moments,
    whole_points,
)
from odeco.models.gaussian_mixture.moments import SphericalMoments
from odeco.models.gaussian_mixture.repair import Repaired, repair
from odeco.models.gaussian_mixture.starts import (
    Start,
    cluster_start,
    lifted,
    product_start,
    spherical_start,
    view_start,
)
from odeco.models.mixture_base import check_enough
from odeco.refinement.gaussian_mixture import GaussianParameters, Points, floored, refine_gaussian_mixture
from odeco.refinement.loop import StoppingRule, Trace
from odeco.sources.dense import DenseSource, OutOfCoreRows
from odeco.sources.scale import check_columns

Floats = NDArray[np.float64]

# Up to this many numbers in the posteriors, times columns, several starts cost less than a second.
_SMALL = 300_000
_CLUSTER_STARTS = 5
# Steps after which starts are compared, on small data too, and rows they are compared on.
_TRIAL_STEPS, _SMALL_STEPS, _TRIAL_ROWS = 10, 50, 5000
# One in so many components may be too light for its direction to stand out.
_LIGHT = 10
# Full EM steps before components are judged.
_FIRST_STEPS = 3


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
    start, advice = _choose_start(problem)
    fitted, traces, done = _refine(problem, start)
    return Fitted(fitted.shifted(description.mean).ordered(), _report(problem, start, advice, traces, done), traces)


def _choose_start(problem: Problem) -> tuple[Start, tuple[str, ...]]:
    """The moment estimate where the data support it; the best of several on small data, or where it is doubtful."""
    options = problem.options
    try:
        start = _moment_start(problem)
    except MomentError as error:
        if options.refine is None:
            raise
        text = (
            f"the moments could not be relied on ({error}) EM started from PCA and k-means++ instead: it may end in a "
            "local optimum, so compare several random_state."
        )
        best = _best(problem, [*_clusters(problem), *_anyway(problem)])
        return replace(best, doubtful=True), (text,)
    small = _is_small(problem)
    # Doubtful spheres are judged and exchanged one by one later on, which does better than other starts.
    doubtful = start.doubtful and options.covariance_type not in SPHERICAL
    if options.refine in ("auto", "em") and options.route == "auto" and (small or doubtful):
        best = _best(problem, [start, *_clusters(problem)])
        if best.name != start.name and not small:
            text = (
                f"the moment estimate was doubtful (residual {start.residual:.2g}); a start of k-means++ was likelier."
            )
            return replace(best, spectrum=start.spectrum, gap=start.gap, residual=start.residual), (text,)
        return replace(best, spectrum=start.spectrum, gap=start.gap, residual=start.residual), ()
    return start, ()


def _moment_start(problem: Problem) -> Start:
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
    check_gap(moments)
    start = spherical_start(moments, problem.directions, kind, problem.rng, options.method, pure=options.refine is None)
    return _pooled(problem, start)


def _anyway(problem: Problem) -> list[Start]:
    """The moments' start although they do not support it, where there is one: a start like others."""
    kind, k = problem.options.covariance_type, problem.options.n_components
    if kind == "diag" or problem.options.route == "views" or problem.description.dimension < k:
        return []
    try:
        moments = spherical_moments(problem.rows, problem.description)
        return [
            _pooled(problem, spherical_start(moments, problem.directions, kind, problem.rng, problem.options.method))
        ]
    except MomentError:
        return []


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


def _clusters(problem: Problem) -> list[Start]:
    """Several starts by k-means++: on principal components where columns are many, on all columns otherwise."""
    options, d = problem.options, problem.description.dimension
    k, kind = options.n_components, options.covariance_type
    rows, directions = problem.rows, problem.directions
    if d <= 2 * k:
        directions = np.eye(d)
        rows = project_on(problem, directions)
    starts = [cluster_start(rows, directions, d, k, kind, problem.rng) for _ in range(_CLUSTER_STARTS)]
    return [_pooled(problem, start) for start in starts]


def _pooled(problem: Problem, start: Start) -> Start:
    """One covariance for all: what the means leave of the data's, rather than a sphere."""
    parameters, total = start.parameters, problem.description.covariance
    if parameters.covariance_type != "tied" or total is None:
        return start
    floor = problem.options.floor * problem.description.column_variances
    within = floored(total - (parameters.means.T * parameters.weights) @ parameters.means, floor)
    return replace(start, parameters=replace(parameters, covariances=within))


def _best(problem: Problem, starts: list[Start]) -> Start:
    """The start that is likeliest after a few steps; on a part of the rows where there are many."""
    options = problem.options
    points = some_points(problem, -(-problem.description.n // _TRIAL_ROWS))
    rule = StoppingRule(_SMALL_STEPS if _is_small(problem) else _TRIAL_STEPS, options.rule.tol / 10)
    tried = [refine_gaussian_mixture(points, s.parameters, rule, **limits(problem, s.parameters)) for s in starts]
    values = [float(done.trace.values[-1]) for done in tried]
    best = int(np.argmax(values))
    if values[best] - values[0] <= options.rule.tol:  # the first is the moments' where there are any
        best = 0
    chosen, parameters = starts[best], tried[best].parameters
    reduced = None
    if options.covariance_type in SPHERICAL and not _is_small(problem):
        reduced = replace(parameters, means=parameters.means @ problem.directions)
    details = {"starts": [(start.name, value) for start, value in zip(starts, values, strict=True)]}
    return replace(chosen, parameters=parameters, reduced=reduced, details={**chosen.details, **details})


def _refine(problem: Problem, start: Start) -> tuple[GaussianParameters, tuple[Trace, ...], dict[str, Any]]:
    """EM on the projected rows where components are spheres, then on the rows themselves; traces; what was done."""
    options = problem.options
    if options.refine is None:
        return start.parameters, (), {}
    if options.refine == "one-step":
        from odeco.refinement.one_step import scoring_step

        stepped, share = scoring_step(whole_points(problem, start.parameters), start.parameters)
        return stepped, (), {"step_share": share}
    parameters, traces, n_exchanges, n_reduced = start.parameters, [], 0, 0
    repaired = Repaired(parameters)
    left = options.rule.max_iter

    def em(points: Points, begin: GaussianParameters, most: int) -> GaussianParameters:
        nonlocal left
        done = refine_gaussian_mixture(points, begin, replace(options.rule, max_iter=most), **limits(problem, begin))
        left -= done.trace.n_iter
        traces.append(done.trace)
        return done.parameters

    if options.covariance_type in SPHERICAL:
        if start.reduced is not None and left > 1:
            state = em(reduced_points(problem), start.reduced, left - 1)
            parameters = lifted(state, problem.directions, options.covariance_type)
            n_reduced = traces[0].n_iter
        if left > _FIRST_STEPS:
            parameters = em(whole_points(problem, parameters), parameters, _FIRST_STEPS)
            repaired = repair(problem, parameters)
            parameters, n_exchanges = repaired.parameters, repaired.n_exchanges
    finished = len(traces) > (n_reduced > 0) and traces[-1].converged and n_exchanges == 0
    if left > 0 and not finished:
        parameters = em(whole_points(problem, parameters), parameters, left)
    said = {"exchanges": n_exchanges, "projected_steps": n_reduced, "useless_components": repaired.n_useless}
    return parameters, tuple(traces), said


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


def _report(
    problem: Problem, start: Start, advice: tuple[str, ...], traces: tuple[Trace, ...], done: dict[str, Any]
) -> Diagnostics:
    k = problem.options.n_components
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
        if done["exchanges"]:
            method += f", {done['exchanges']} times exchanging a component that explained nothing"
    if done.get("useless_components"):
        m = done["useless_components"]
        advice += (
            f"{m} of {k} components explain next to nothing: the likelihood loses less by leaving one out than chance "
            f"gains. Lower n_components to {k - m}, or use more samples.",
        )
    return Diagnostics(
        n_components=k,
        spectrum=np.asarray(spectrum),
        gap=start.gap,
        condition=condition,
        residual=start.residual,
        method=method,
        n_passes=int(start.details.get("n_passes", 0)) + 2,
        advice=advice,
        details={**start.details, "refinement": traces, **done},
    )
