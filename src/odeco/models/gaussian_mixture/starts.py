"""The theorem's estimate of each covariance type, as a start for EM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.models.gaussian_mixture.data import Description
from odeco.models.gaussian_mixture.moments import SphericalMoments, spherical_estimate, variance_moment
from odeco.models.product_mixture.solve import ProductStart
from odeco.refinement.gaussian_mixture import GaussianParameters
from odeco.sources.dense import DenseSource

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """Parameters about the mean of the data, and what is to be said of how they were found.

    ``reduced`` are the same parameters on the principal directions of the projected rows, where components are spheres.
    """

    name: str
    parameters: GaussianParameters = field(repr=False)
    reduced: GaussianParameters | None = field(default=None, repr=False)
    residual: float = float("nan")
    spectrum: Floats | None = field(default=None, repr=False)
    gap: float = float("nan")
    doubtful: bool = False
    suggested: int | None = None
    details: dict[str, Any] = field(default_factory=dict, repr=False)


def spherical_start(
    moments: SphericalMoments,
    directions: Floats,
    covariance_type: str,
    rng: np.random.Generator,
    method: Decomposer = AUTO,
    *,
    pure: bool = False,
) -> Start:
    """Theorems 3.2 and 3.3; other covariance types take the spheres for a start."""
    tied, shaped = covariance_type == "tied_spherical", covariance_type in ("spherical", "tied_spherical")
    found = spherical_estimate(moments, tied, rng, method, pure=pure)
    kind = "tied_spherical" if tied else "spherical"
    covariances = moments.noise_variance if tied else found.variances
    reduced = GaussianParameters(found.weights, found.means, covariances, kind)
    k = moments.n_components
    signal = moments.eigenvalues[:k] - moments.noise_variance
    decomposition = found.decomposition
    return Start(
        "moments" if shaped else "spherical moments",
        lifted(reduced, directions, covariance_type),
        reduced,
        decomposition.residual,
        moments.eigenvalues - moments.noise_variance,
        float(1 - max(signal[k - 1], 0.0) / signal[k - 2]) if k > 1 else 1.0,
        not decomposition.status.ok or bool(found.clipped or found.weak.any()),
        int(np.count_nonzero(moments.eigenvalues > moments.noise_edge)) + 1 if shaped else None,
        {
            "noise_variance": moments.noise_variance,
            "noise_edge": moments.noise_edge,
            "decomposition": decomposition.status,
            "clipped_variances": found.clipped,
            "weak_components": int(found.weak.sum()),
        },
    )


def product_start(
    source: DenseSource, mean: Floats, n_components: int, rng: np.random.Generator, method: Decomposer = AUTO
) -> Start:
    """Axis-aligned Gaussians are product mixtures: completed moments."""
    from odeco.models.product_mixture.moments import gaussian_start

    return product_estimate(gaussian_start(source, n_components, rng=rng, method=method), mean, n_components)


def product_estimate(found: ProductStart, mean: Floats, n_components: int) -> Start:
    """Completed moments read as Gaussians about `mean`; `MomentError` where they are within the noise."""
    if n_components > 1 and not found.spectrum[n_components - 2] > found.noise:
        raise MomentError(
            f"eigenvalue {n_components - 1} of the completed moments, {found.spectrum[n_components - 2]:.3g}, is "
            f"within the noise ({found.noise:.3g})."
        )
    parameters = GaussianParameters(found.weights, found.means - mean, found.variances, "diag")
    doubtful = found.decomposition is not None and not found.decomposition.status.ok
    suggested = int(np.sum(found.spectrum > found.noise)) + 1
    return Start("completed moments", parameters, None, found.residual, found.spectrum, found.gap, doubtful, suggested)


def view_start(
    source: DenseSource,
    description: Description,
    n_components: int,
    covariance_type: str,
    moments: SphericalMoments,
    rng: np.random.Generator,
    method: Decomposer = AUTO,
    *,
    pure: bool = False,
) -> Start:
    """Three views by a random rotation (section 3.3.2, Proposition 3.3), then Theorem 3.6.

    Variances follow from the means and Theorem 3.3: sum_i w_i sigma_i^2 (mu_i, 1) is known, k equations for k numbers.
    """
    from odeco.models.multiview.moments import solve_views
    from odeco.theory import coherence

    d = description.dimension
    if d < 3 * n_components:
        raise MomentError(
            f"three views by rotation need n_features >= 3 n_components (Proposition 3.3), got {d} and {n_components}."
        )
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    views = np.array_split(rotation, 3, axis=1)

    def read() -> Any:
        for batch in source:
            blocks = [(batch.rows - description.mean.astype(batch.rows.dtype)) @ view for view in views]
            yield blocks if batch.weights is None else (blocks, batch.weights)

    found = solve_views(read, n_components, rng, method=method, polish=not pure)
    means = np.hstack(found.means) @ rotation.T
    noise = moments.noise_variance
    variances: Any = noise
    if covariance_type != "tied_spherical":
        on_directions = means @ description.directions[:, : n_components - 1]
        system = np.hstack([on_directions, np.ones((n_components, 1))]) * found.weights[:, None]
        variances = np.linalg.lstsq(system.T, np.append(variance_moment(moments), noise))[0]
        if pure and not (variances > 0).all():
            raise MomentError(f"the moments give variances {variances.round(3).tolist()}: use more samples.")
        variances = variances if pure else np.clip(variances, 0.05 * noise, 20 * noise)
    kind = "tied_spherical" if covariance_type == "tied_spherical" else "spherical"
    spheres = GaussianParameters(found.weights, means, variances, kind)
    singular = np.asarray(found.search.singular_values)
    return Start(
        "three rotated views",
        converted(spheres, covariance_type),
        None,
        found.components.residual,
        singular,
        float("nan"),
        details={"coherence": coherence(means), "noise_variance": noise, "n_passes": found.n_passes},
    )


def lifted(reduced: GaussianParameters, directions: Floats, covariance_type: str) -> GaussianParameters:
    """Spheres of the projected space in all d dimensions, as the covariance type has them."""
    means = reduced.means @ directions.T
    spheres = GaussianParameters(reduced.weights, means, reduced.covariances, reduced.covariance_type)
    return converted(spheres, covariance_type)


def converted(spheres: GaussianParameters, covariance_type: str) -> GaussianParameters:
    """The same spheres with covariances in the form of another type."""
    if covariance_type == spheres.covariance_type:
        return spheres
    k, d = spheres.means.shape
    variances = np.broadcast_to(np.asarray(spheres.covariances), (k,))
    covariances: Any
    if covariance_type == "diag":
        covariances = np.repeat(variances[:, None], d, axis=1)
    elif covariance_type == "tied":
        covariances = float(spheres.weights @ variances) * np.eye(d)
    else:
        covariances = variances[:, None, None] * np.eye(d)
    return GaussianParameters(spheres.weights, spheres.means, covariances, covariance_type)
