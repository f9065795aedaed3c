"""The sequence of a Gaussian mixture's fit: describe, project, start, choose among starts, refine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models._gaussian_data import Description, describe_rows, project, spherical_moments
from odeco.models._gaussian_moments import SphericalMoments
from odeco.models._gaussian_start import Start, cluster_start, lifted, product_start, spherical_start, view_start
from odeco.models.mixture_base import check_enough
from odeco.moments.vectors import ProjectedRows
from odeco.refinement.gaussian_mixture import GaussianParameters, Points, refine_gaussian_mixture, single_is_enough
from odeco.refinement.loop import StoppingRule, Trace
from odeco.sources.dense import DenseBatch, DenseSource

Floats = NDArray[np.float64]

SPHERICAL = ("spherical", "tied_spherical")
# Up to this many numbers in the posteriors, times columns, several starts cost less than a second.
_SMALL = 300_000
_CLUSTER_STARTS = 5
# Steps after which starts are compared, and rows they are compared on.
_TRIAL_STEPS, _TRIAL_ROWS = 10, 10_000


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked."""

    n_components: int
    covariance_type: str
    method: str
    refine: str | None
    rule: StoppingRule
    floor: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """Parameters about the origin, in canonical order, and the report."""

    parameters: GaussianParameters
    diagnostics: Diagnostics
    traces: tuple[Trace, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Problem:
    """All that the steps of a fit share."""

    source: DenseSource
    options: Options
    description: Description
    rows: ProjectedRows
    rng: np.random.Generator

    @property
    def directions(self) -> Floats:
        """(d, r): what rows were projected on."""
        return self.description.directions[:, : self.rows.z.shape[1]]


def fit_source(source: DenseSource, options: Options, rng: np.random.Generator) -> Fitted:
    """Fit to a source that can be read again and again."""
    if not source.reiterable:
        raise ValueError(
            "several passes over the data are needed, but an iterator can be read only once: pass a function that "
            "returns a new iterator at each call (or a list of batches), or use partial_fit."
        )
    k = options.n_components
    description = describe_rows(source, k)
    check_enough(description.n, k)
    if k == 1:
        return _one_component(description, options)
    d = description.dimension
    rows = project(source, description, min(d, k - 1))
    problem = Problem(source, options, description, rows, rng)
    start, advice = _choose_start(problem)
    fitted, traces = _refine(problem, start)
    return Fitted(fitted.shifted(description.mean).ordered(), _report(problem, start, advice, traces), traces)


def _choose_start(problem: Problem) -> tuple[Start, tuple[str, ...]]:
    """The moment estimate where the data support it; the best of several on small data, or where it is doubtful."""
    options = problem.options
    try:
        start = _moment_start(problem)
    except MomentError as error:
        if options.refine is None:
            raise
        text = (
            f"the moments could not be used ({error}) EM started from PCA and k-means++ instead: it may end in a local "
            "optimum, so compare several random_state."
        )
        return _best(problem, _clusters(problem)), (text,)
    small = options.method == "auto" and _is_small(problem)
    if options.refine in ("auto", "em") and options.method == "auto" and (small or start.doubtful):
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
    if kind == "diag" and options.method != "multiview":
        return product_start(problem.source, description.mean, k, problem.rng)
    if description.dimension < k:
        raise MomentError(
            f"n_features={description.dimension} is less than n_components={k}: there is no noise space to read the "
            "variance from."
        )
    moments = spherical_moments(problem.rows, description)
    if options.method == "multiview":
        return view_start(problem.source, description, k, kind, moments, problem.rng)
    _check_gap(moments)
    return spherical_start(moments, problem.directions, kind, problem.rng)


def _check_gap(moments: SphericalMoments) -> None:
    """Raise where the means do not stand out from the noise in k - 1 dimensions."""
    k = moments.n_components
    last, edge = float(moments.eigenvalues[k - 2]), moments.noise_edge
    if last <= edge:
        raise MomentError(
            f"eigenvalue {k - 1} of the covariance, {last:.4g}, is within the noise (up to {edge:.4g}): the means are "
            f"collinear or nearly so, or there are fewer than {k} components; the data support about "
            f"{suggested_components(moments)}."
        )


def suggested_components(moments: SphericalMoments) -> int:
    """One more than there are eigenvalues above the noise."""
    return 1 + int(np.count_nonzero(moments.eigenvalues[: moments.n_components] > moments.noise_edge))


def _is_small(problem: Problem) -> bool:
    d = problem.description.dimension
    per_row = problem.options.n_components * d * (d if problem.options.covariance_type == "full" else 1)
    return problem.description.n * per_row <= _SMALL


def _clusters(problem: Problem) -> list[Start]:
    description, options = problem.description, problem.options
    rows, directions = problem.rows, problem.directions
    return [
        cluster_start(
            rows, directions, description.dimension, options.n_components, options.covariance_type, problem.rng
        )
        for _ in range(_CLUSTER_STARTS)
    ]


def _best(problem: Problem, starts: list[Start]) -> Start:
    """The start that is likeliest after a few steps; on a part of the rows where there are many."""
    options = problem.options
    step = -(-problem.description.n // _TRIAL_ROWS)
    rule = StoppingRule(_TRIAL_STEPS, 0.0)
    reduced = options.covariance_type in SPHERICAL or not _is_small(problem)
    values, moved = [], []
    for start in starts:
        begin = start.reduced if reduced and start.reduced is not None else start.parameters
        points = _reduced_points(problem, step) if begin is start.reduced else _whole_points(problem, start.parameters)
        done = refine_gaussian_mixture(points, begin, rule, **_limits(problem, begin))
        values.append(float(done.trace.values[-1]))
        moved.append(done.parameters)
    best = int(np.argmax(values))
    details = {"starts": [(start.name, value) for start, value in zip(starts, values, strict=True)]}
    chosen = starts[best]
    if chosen.reduced is not None and reduced:
        parameters = lifted(moved[best], problem.directions, options.covariance_type)
        return replace(chosen, parameters=parameters, reduced=moved[best], details={**chosen.details, **details})
    return replace(chosen, parameters=moved[best], details={**chosen.details, **details})


def _refine(problem: Problem, start: Start) -> tuple[GaussianParameters, tuple[Trace, ...]]:
    """EM on the projected rows where components are spheres, then on the rows themselves."""
    options = problem.options
    if options.refine is None:
        return start.parameters, ()
    if options.refine == "one-step":
        from odeco.refinement.one_step import scoring_step

        parameters = start.parameters
        return scoring_step(_whole_points(problem, parameters), parameters)[0], ()
    parameters, traces, left = start.parameters, [], options.rule.max_iter
    if options.covariance_type in SPHERICAL and start.reduced is not None:
        points = _reduced_points(problem)
        rule = replace(options.rule, max_iter=max(left - 1, 1))
        done = refine_gaussian_mixture(points, start.reduced, rule, **_limits(problem, start.reduced))
        parameters = lifted(done.parameters, problem.directions, options.covariance_type)
        left -= done.trace.n_iter
        traces.append(done.trace)
    if left > 0:
        points = _whole_points(problem, parameters)
        done = refine_gaussian_mixture(
            points, parameters, replace(options.rule, max_iter=left), **_limits(problem, parameters)
        )
        parameters = done.parameters
        traces.append(done.trace)
    return parameters, tuple(traces)


def _limits(problem: Problem, parameters: GaussianParameters) -> dict[str, Any]:
    """What keeps variances up, and the covariance that a shared one is read from."""
    scales = problem.description.column_variances
    total = problem.description.covariance if parameters.covariance_type == "tied" else None
    if parameters.covariance_type in SPHERICAL:
        scales = np.full(1, scales.mean())
    return {"scales": scales, "floor": problem.options.floor, "total": total}


def _reduced_points(problem: Problem, step: int = 1) -> Points:
    rows = problem.rows
    z, weights = rows.z[::step], None if rows.weights is None else rows.weights[::step]
    rest = np.maximum(rows.squares[::step] - np.einsum("ij,ij->i", z, z), 0)
    size = 16_384
    batches = [
        DenseBatch(z[low : low + size], None if weights is None else weights[low : low + size])
        for low in range(0, len(z), size)
    ]
    return Points(batches, None, z.dtype, problem.description.dimension, rest)


def _whole_points(problem: Problem, parameters: GaussianParameters) -> Points:
    description = problem.description
    enough = problem.rows.z.dtype == np.float32 and single_is_enough(
        parameters, float(problem.rows.squares.max()), description.column_variances
    )
    dtype = np.float32 if enough else np.float64
    return Points(problem.source, description.mean, dtype, description.dimension)


def _one_component(description: Description, options: Options) -> Fitted:
    """One Gaussian has its maximum of the likelihood in closed form."""
    floor = options.floor * description.column_variances
    covariance, d = description.covariance, description.dimension
    variances = np.maximum(np.diag(covariance), floor)
    spherical = max(float(np.trace(covariance)) / d, float(floor.mean()))
    from odeco.refinement.gaussian_mixture import floored

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


def _report(problem: Problem, start: Start, advice: tuple[str, ...], traces: tuple[Trace, ...]) -> Diagnostics:
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
        if len(traces) == 2:
            method += f" ({traces[0].n_iter} of them on {problem.rows.z.shape[1]} dimensions)"
    return Diagnostics(
        n_components=k,
        spectrum=np.asarray(spectrum),
        gap=start.gap,
        condition=condition,
        residual=start.residual,
        method=method,
        n_passes=int(start.details.get("n_passes", 0)) + 2,
        advice=advice,
        details={**start.details, "refinement": traces},
    )
