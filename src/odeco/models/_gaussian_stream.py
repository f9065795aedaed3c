"""What `GaussianMixture.partial_fit` makes of its sums: moment estimates of rows that are gone.

Spheres have their own moments. Axis-aligned Gaussians are product mixtures and use theirs. Shared and full covariances
have no moment estimate: they are given the spheres', and it is said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models._gaussian_data import SPHERICAL, Options, Stream, stream_moments
from odeco.models._gaussian_fit import Fitted
from odeco.models._gaussian_start import Start, converted, product_estimate, spherical_start
from odeco.models._product_moments import gaussian_start
from odeco.models._product_stream import ProductStream
from odeco.models.mixture_base import check_enough
from odeco.refinement.gaussian_mixture import GaussianParameters
from odeco.sources.dense import DenseBatch, DenseSource
from odeco.sources.scale import check_columns

Floats = NDArray[np.float64]

# Rows of numbers that a stream of axis-aligned Gaussians holds and learns its directions from.
_HELD = 5000


def open_stream(n_features: int, options: Options, seed: int) -> Stream | ProductStream:
    """Sums for rows of so many columns."""
    if options.covariance_type == "diag":
        return ProductStream(options.n_components, "gaussian", _HELD, None, seed)
    if n_features < options.n_components:
        raise ValueError(
            f"n_components={options.n_components} is larger than n_features={n_features}: the moments have no noise "
            "space. Use fit, which falls back on EM."
        )
    return Stream(n_features, options.n_components)


def check_stream(stream: Stream | ProductStream, options: Options) -> None:
    """Raise where the sums were begun for other options."""
    diagonal = options.covariance_type == "diag"
    if isinstance(stream, ProductStream) != diagonal or stream.n_components != options.n_components:
        kept = "one variance per column" if isinstance(stream, ProductStream) else "spheres"
        raise ValueError(
            f"n_components={options.n_components}, covariance_type={options.covariance_type!r} do not go with the "
            f"moments kept so far, of {stream.n_components} components with {kept}: start a new estimator."
        )


def add_rows(stream: Stream | ProductStream, batch: DenseBatch) -> None:
    """Add a chunk."""
    if isinstance(stream, ProductStream):
        stream.update(np.asarray(batch.rows, dtype=np.float64), batch.weights)
    else:
        stream.update(batch)


def read_stream(stream: Stream | ProductStream, options: Options, rng: np.random.Generator) -> tuple[Fitted, bool]:
    """The estimate from all rows so far, and whether they are enough for its advice to be worth a warning."""
    n = stream.n_rows if isinstance(stream, ProductStream) else stream.n
    check_enough(n, options.n_components)
    if isinstance(stream, ProductStream):
        mean, variance, find, started = _diagonal(stream, options, rng)
    else:
        mean, variance, find, started = _spheres(stream, options, rng)
    try:
        start, advice = find()
    except MomentError as error:
        if started:
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
        details={**start.details, "n_samples": n},
    )
    return Fitted(start.parameters.shifted(mean).ordered(), report), started


def _spheres(stream: Stream, options: Options, rng: np.random.Generator) -> tuple[Floats, float, Any, bool]:
    sums, k, kind = stream.read(), options.n_components, options.covariance_type
    check_columns(np.abs(sums.mean) + np.sqrt(max(sums.total_variance, 0.0)))
    moments, lift = stream_moments(sums, k)

    def find() -> tuple[Start, tuple[str, ...]]:
        start = spherical_start(moments, lift, kind, rng)
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


def _diagonal(stream: ProductStream, options: Options, rng: np.random.Generator) -> tuple[Floats, float, Any, bool]:
    k = options.n_components
    held: DenseSource | None = stream.table()[1] if stream.complete else None
    mean, variance = np.zeros(stream.n_features), 1.0
    if held is not None:
        (batch,) = held
        weights = batch.weights if batch.weights is None or batch.weights.any() else None
        mean = np.average(batch.rows, axis=0, weights=weights)
        variance = float(np.average((batch.rows - mean) ** 2, axis=0, weights=weights).mean())

    def find() -> tuple[Start, tuple[str, ...]]:
        found = stream.start(rng) if held is None else gaussian_start(held, k, rng=rng)
        return product_estimate(found, mean, k), ()

    return mean, variance, find, held is None


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
