"""A Gaussian mixture of rows of which only sums can be had: elsewhere, or out of core.

What `fit` does with rows in memory without what needs them there: projected rows are not kept, so that all EM steps run
over the rows themselves. Where the moments' start cannot be trusted, EM starts from a fit to a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models.gaussian_mixture.choice import is_trusted, sample_size
from odeco.models.gaussian_mixture.data import SPHERICAL, Description, Options, fits_single
from odeco.models.gaussian_mixture.fit import Fitted, check_gap, fit_source
from odeco.models.gaussian_mixture.moments import SphericalMoments
from odeco.models.gaussian_mixture.starts import Start, product_start, spherical_start
from odeco.moments.vectors import VectorMoments
from odeco.refinement.gaussian_mixture import Points, floored, refine_gaussian_mixture
from odeco.refinement.loop import StoppingRule
from odeco.sources.dense import OutOfCoreRows, as_dense_source

Floats = NDArray[np.float64]


def fit_sums(source: OutOfCoreRows, options: Options, description: Description, rng: np.random.Generator) -> Fitted:
    """Fit to a source of which sums are taken."""
    if options.route == "views" or options.refine == "one-step":
        asked = "route='views'" if options.route == "views" else "refine='one-step'"
        raise ValueError(f"{asked} needs the rows in memory: these are elsewhere or out of core. Use the defaults.")
    advice: tuple[str, ...] = ()
    start, why = None, ""
    try:
        start = _moment_start(source, options, description, rng)
    except MomentError as error:
        if options.refine is None:
            raise
        why = str(error)
    alone = options.refine is None or options.route != "auto" or options.effort == "quick"
    if start is None or not (alone or is_trusted(start, options, small=False)):
        start, advice = _sample_start(source, options, description, rng, why)
    parameters, trace = start.parameters, None
    if options.refine is not None:
        points = Points(source, description.mean, np.dtype(np.float64), description.dimension)
        scales = description.column_variances
        if options.covariance_type in SPHERICAL:
            scales = np.full(1, scales.mean())
        total = description.covariance if options.covariance_type == "tied" else None
        done = refine_gaussian_mixture(
            points, parameters, options.rule, scales=scales, floor=options.floor, total=total
        )
        parameters, trace = done.parameters, done.trace
    report = _report(options, description, start, trace, advice)
    traces = () if trace is None else (trace,)
    return Fitted(parameters.shifted(description.mean).ordered(), report, traces)


def _moment_start(source: OutOfCoreRows, options: Options, description: Description, rng: np.random.Generator) -> Start:
    k, d, kind = options.n_components, description.dimension, options.covariance_type
    if kind == "diag":
        return product_start(source, description.mean, k, rng, options.method)
    if d < k:
        raise MomentError(f"n_features={d} is less than n_components={k}: there is no noise space.")
    single = description.dtype == np.float32 and fits_single(float(description.variances.mean()))
    directions = np.ascontiguousarray(description.directions[:, : k - 1])
    basis = directions.astype(np.float32 if single else np.float64)
    sums = VectorMoments(basis, description.mean, cross=False).update_all(source)
    variance = float(description.variances.sum())
    moments = SphericalMoments(description.eigenvalues, sums.third, sums.radial, variance, d, description.weight)
    check_gap(moments)
    start = spherical_start(moments, directions, kind, rng, options.method, pure=options.refine is None)
    if kind != "tied" or description.covariance is None:
        return start
    found = start.parameters  # one covariance for all: what the means leave of the data's
    floor = options.floor * description.column_variances
    within = floored(description.covariance - (found.means.T * found.weights) @ found.means, floor)
    return replace(start, parameters=replace(found, covariances=within))


def _sample_start(
    source: OutOfCoreRows, options: Options, description: Description, rng: np.random.Generator, why: str
) -> tuple[Start, tuple[str, ...]]:
    """The fit to a sample: the best of the candidates there."""
    rows = source.sample(sample_size(options.n_components))
    found = fit_source(as_dense_source([rows]), replace(options, rule=StoppingRule(50, options.rule.tol)), rng)
    report = found.diagnostics
    details = {**report.details, **({"moments": why} if why else {})}
    start = Start(
        f"{report.method} on {len(rows)} rows",
        found.parameters.shifted(-description.mean),
        residual=report.residual,
        spectrum=report.spectrum,
        gap=report.gap,
        suggested=report.suggested_components,
        details=details,
    )
    return start, report.advice


def _report(
    options: Options, description: Description, start: Start, trace: Any, advice: tuple[str, ...]
) -> Diagnostics:
    k = options.n_components
    spectrum = np.asarray(description.eigenvalues if start.spectrum is None else start.spectrum)
    leading = spectrum[: k - 1]
    good = leading.size == k - 1 and leading[-1] > 0
    return Diagnostics(
        n_components=k,
        spectrum=spectrum,
        gap=start.gap,
        condition=float(leading[0] / leading[-1]) if good else float("inf"),
        residual=start.residual,
        method=start.name if trace is None else f"{start.name}, then {trace.n_iter} EM steps",
        n_passes=2,
        suggested_components=start.suggested,
        advice=advice,
        details={**start.details, "refinement": () if trace is None else (trace,)},
    )
