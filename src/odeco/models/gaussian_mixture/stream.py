"""What `GaussianMixture.partial_fit` makes of its sums: moment estimates of rows that are gone.

Spheres have their own moments. Axis-aligned Gaussians are product mixtures and use theirs. Shared and full covariances
have no moment estimate: they are given the spheres', and it is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.fitting.stream import MomentStream, StreamPlan
from odeco.models.gaussian_mixture.data import SPHERICAL, Options, stream_moments, vector_plan
from odeco.models.gaussian_mixture.fit import Fitted
from odeco.models.gaussian_mixture.starts import Start, converted, product_estimate, spherical_start
from odeco.models.mixture_base import check_enough
from odeco.models.product_mixture.moments import gaussian_start
from odeco.models.product_mixture.stream import read_table, table_plan
from odeco.refinement.gaussian_mixture import GaussianParameters
from odeco.sources.dense import DenseSource
from odeco.sources.scale import check_columns

Floats = NDArray[np.float64]

# Rows of numbers that a stream of axis-aligned Gaussians learns its directions from.
_HELD = 5000


def gaussian_plan(n_features: int, options: Options) -> StreamPlan[Any, Any]:
    """How rows in chunks are summed: axis-aligned Gaussians are product mixtures."""
    if options.covariance_type == "diag":
        return table_plan(options.n_components, "gaussian", None, _HELD)
    if n_features < options.n_components:
        raise ValueError(
            f"n_components={options.n_components} is larger than n_features={n_features}: the moments have no noise "
            "space. Use fit, which falls back on EM."
        )
    return vector_plan(n_features, options.n_components)


def read_stream(
    stream: MomentStream[Any, Any], plan: StreamPlan[Any, Any], options: Options, rng: np.random.Generator
) -> tuple[Fitted, bool]:
    """The estimate from all rows so far, and whether they are enough for its advice to be worth a warning."""
    check_enough(stream.n, options.n_components)
    read = _diagonal if options.covariance_type == "diag" else _spheres
    mean, variance, find, enough = read(stream, plan, options, rng)
    try:
        start, advice = find()
    except MomentError as error:
        if enough:
            raise
        return _nothing_yet(mean, variance, options, str(error)), False
    k, spectrum = options.n_components, np.asarray(start.spectrum)
    report = Diagnostics(
        n_components=k,
        spectrum=spectrum,
        gap=start.gap,
        condition=float(spectrum[0] / spectrum[k - 2]) if k > 1 else 1.0,
        residual=start.residual,
        method=f"{start.name}, one pass, no likelihood steps",
        advice=advice,
        details={**start.details, "n_samples": stream.n},
    )
    return Fitted(start.parameters.shifted(mean).ordered(), report), enough


Found = tuple[Floats, float, Callable[[], tuple[Start, tuple[str, ...]]], bool]


def _spheres(
    stream: MomentStream[Any, Any], plan: StreamPlan[Any, Any], options: Options, rng: np.random.Generator
) -> Found:
    sums, k, kind = stream.read(plan), options.n_components, options.covariance_type
    check_columns(np.abs(sums.mean) + np.sqrt(max(sums.total_variance, 0.0)))
    moments, lift = stream_moments(sums, k)

    def find() -> tuple[Start, tuple[str, ...]]:
        start = spherical_start(moments, lift, kind, rng, options.method, pure=options.refine is None)
        advice: tuple[str, ...] = ()
        if k > 1 and moments.eigenvalues[k - 2] <= moments.noise_edge:
            advice = (
                f"eigenvalue {k - 1} of the covariance, {moments.eigenvalues[k - 2]:.4g}, is within the noise (up to "
                f"{moments.noise_edge:.4g}): add samples or lower n_components.",
            )
        if kind not in SPHERICAL:
            advice += (
                f"covariance_type={kind!r} has no moment estimate: these are the spheres of the moments. Use fit, "
                "whose EM starts from them, for covariances of any shape.",
            )
        return start, advice

    return sums.mean, moments.noise_variance, find, stream.started


def _diagonal(
    stream: MomentStream[Any, Any], plan: StreamPlan[Any, Any], options: Options, rng: np.random.Generator
) -> Found:
    k = options.n_components
    sums = stream.read(plan) if stream.started else None
    if sums is not None and sums.distinct is None:
        zero = np.zeros(len(sums.schema))
        return zero, 1.0, lambda: (product_estimate(sums.start(k, rng, options.method), zero, k), ()), True
    held = read_table(stream.held(plan), "gaussian", None)[1] if sums is None else sums.distinct.batch()
    weights = held.weights if held.weights is None or held.weights.any() else None
    mean = np.average(held.rows, axis=0, weights=weights)
    variance = float(np.average((held.rows - mean) ** 2, axis=0, weights=weights).mean())
    source = DenseSource(lambda: [held], max(len(held), 1))
    return (
        mean,
        variance,
        lambda: (product_estimate(gaussian_start(source, k, rng=rng, method=options.method), mean, k), ()),
        False,
    )


def _nothing_yet(mean: Floats, variance: float, options: Options, error: str) -> Fitted:
    """Components that differ in nothing, until the stream has enough samples."""
    k, kind = options.n_components, options.covariance_type
    variance = variance if variance > 0 else 1.0
    tied = kind == "tied_spherical"
    spheres = GaussianParameters(
        np.full(k, 1 / k),
        np.repeat(mean[None], k, axis=0),
        variance if tied else np.full(k, variance),
        "tied_spherical" if tied else "spherical",
    )
    report = Diagnostics(k, np.empty(0), np.nan, np.nan, np.nan, method="waiting for more samples", advice=(error,))
    return Fitted(converted(spheres, kind), report)
