"""What the theorems make of the moments, for each covariance type: the paper's estimate, and where EM starts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.families.gaussian import floored
from odeco.models.gaussian_mixture.moments import SphericalMoments, spherical_estimate, variance_moment
from odeco.models.gaussian_mixture.passes import SPHERICAL, Description, GaussianMoments, Options
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.models.multiview.moments import read_views
from odeco.models.product_mixture.solve import CompletedMoments
from odeco.refinement.gaussian_mixture import GaussianParameters
from odeco.theory import coherence

Floats = NDArray[np.float64]

_SPHERES = "spherical moments"  # as a start of other shapes


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
    weak: int = 0  # components that are not what the tensor shows
    shown: int | None = None  # components that stand out from noise, were they spheres or axis-aligned
    suggested: int | None = None  # the same where they are, or by BIC
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_of_the_model(self) -> bool:
        """Whether a theorem on these covariances gave it, rather than one on spheres."""
        return self.name != _SPHERES


def estimate(moments: GaussianMoments, options: Options, rng: np.random.Generator, *, check: bool = True) -> Start:
    """What the theorems make of the moments; `MomentError` where these do not determine it.

    Unless `check`, means need not stand out from the noise.
    """
    k, description = options.n_components, moments.description
    if k == 1 and description is not None:
        return _one_component(description, options)
    if moments.products is not None:
        return _product_estimate(moments.products, moments.mean, rng, options)
    if options.route == "views":
        return _views(moments, options, rng)
    if moments.spheres is None or moments.lift is None:
        raise MomentError(
            f"n_features={moments.mean.size} is less than n_components={k}: there is no noise space to read the "
            "variance from."
        )
    if description is not None and check:
        _check_gap(moments.spheres)
    pure = options.refine is None
    start = spherical_start(moments.spheres, moments.lift, options.covariance_type, rng, options.method, pure=pure)
    return start if description is None else _pooled(start, description, options.floor)


def _check_gap(moments: SphericalMoments) -> None:
    """Raise where the means do not stand out from the noise in k - 1 dimensions.

    One in ten components may be too light to stand out: EM finds these once it has the others.
    """
    k, edge = moments.n_components, moments.noise_edge
    above = int(np.count_nonzero(moments.eigenvalues[: k - 1] > edge))
    if k - 1 - above > k // POLICY.light:
        raise MomentError(
            f"eigenvalue {above + 1} of the covariance, {moments.eigenvalues[above]:.4g}, is within the noise (up to "
            f"{edge:.4g}): the means are collinear or nearly so, or there are fewer than {k} components; {above + 1} "
            "would stand out."
        )


def stream_advice(moments: GaussianMoments, covariance_type: str) -> tuple[str, ...]:
    """What is to be said of the estimate from a stream, to which no likelihood steps are added."""
    spheres = moments.spheres
    advice: tuple[str, ...] = ()
    if spheres is None:
        return ()
    k = spheres.n_components
    if k > 1 and spheres.eigenvalues[k - 2] <= spheres.noise_edge:
        advice = (
            f"eigenvalue {k - 1} of the covariance, {spheres.eigenvalues[k - 2]:.4g}, is within the noise (up to "
            f"{spheres.noise_edge:.4g}): add samples or lower n_components.",
        )
    if covariance_type not in SPHERICAL:
        advice += (
            f"covariance_type={covariance_type!r} has no moment estimate: these are the spheres of the moments. Use "
            "fit, whose EM starts from them, for covariances of any shape.",
        )
    return advice


def indifferent(mean: Floats, variance: float, n_components: int, covariance_type: str) -> GaussianParameters:
    """Components that differ in nothing."""
    variance, k = variance if variance > 0 else 1.0, n_components
    tied = covariance_type == "tied_spherical"
    kind, variances = ("tied_spherical", variance) if tied else ("spherical", np.full(k, variance))
    spheres = GaussianParameters(np.full(k, 1 / k), np.repeat(mean[None], k, axis=0), variances, kind)
    return converted(spheres, covariance_type)


def _one_component(description: Description, options: Options) -> Start:
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
    parameters = GaussianParameters(np.ones(1), np.zeros((1, d)), covariances, options.covariance_type)
    return Start("mean and covariance, one component", parameters, residual=0.0, gap=1.0)


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
    k, shown = moments.n_components, int(np.count_nonzero(moments.eigenvalues > moments.noise_edge)) + 1
    signal = moments.eigenvalues[:k] - moments.noise_variance
    decomposition = found.decomposition
    return Start(
        "moments" if shaped else _SPHERES,
        lifted(reduced, directions, covariance_type),
        reduced,
        decomposition.residual,
        moments.eigenvalues - moments.noise_variance,
        float(1 - max(signal[k - 1], 0.0) / signal[k - 2]) if k > 1 else 1.0,
        not decomposition.status.ok or bool(found.clipped or found.weak.any()),
        found.clipped + int(found.weak.sum()),
        shown,
        shown if shaped else None,
        {
            "noise_variance": moments.noise_variance,
            "noise_edge": moments.noise_edge,
            "decomposition": decomposition.status,
            "clipped_variances": found.clipped,
            "weak_components": int(found.weak.sum()),
        },
    )


def _product_estimate(
    moments: CompletedMoments | MomentError, mean: Floats, rng: np.random.Generator, options: Options
) -> Start:
    """Completed moments read as Gaussians about `mean`; `MomentError` where they are within the noise."""
    if isinstance(moments, MomentError):
        raise moments
    found, k = moments.start(rng, options.method), options.n_components
    if k > 1 and not found.spectrum[k - 2] > found.noise:
        raise MomentError(
            f"eigenvalue {k - 1} of the completed moments, {found.spectrum[k - 2]:.3g}, is within the noise "
            f"({found.noise:.3g})."
        )
    parameters = GaussianParameters(found.weights, found.means - mean, found.variances, "diag")
    doubtful = found.decomposition is not None and not found.decomposition.status.ok
    shown = int(np.sum(found.spectrum > found.noise)) + 1
    spectrum, gap = found.spectrum, found.gap
    return Start(
        "completed moments", parameters, None, found.residual, spectrum, gap, doubtful, k * doubtful, shown, shown
    )


def _views(moments: GaussianMoments, options: Options, rng: np.random.Generator) -> Start:
    """Three views by a random rotation (section 3.3.2, Proposition 3.3), then Theorem 3.6.

    Variances follow from the means and Theorem 3.3: sum_i w_i sigma_i^2 (mu_i, 1) is known, k equations for k numbers.
    """
    k, kind, pure, views = options.n_components, options.covariance_type, options.refine is None, moments.views
    if views is None or moments.spheres is None or moments.lift is None:
        raise MomentError(
            "three views by rotation need n_features >= 3 n_components (Proposition 3.3), got "
            f"{moments.mean.size} and {k}."
        )
    found = read_views(views.sums, k, rng, options.method, polish=not pure)
    means = np.hstack(found.means) @ views.rotation.T
    noise = moments.spheres.noise_variance
    variances: Any = noise
    if kind != "tied_spherical":
        system = np.hstack([means @ moments.lift, np.ones((k, 1))]) * found.weights[:, None]
        variances = np.linalg.lstsq(system.T, np.append(variance_moment(moments.spheres), noise))[0]
        if pure and not (variances > 0).all():
            raise MomentError(f"the moments give variances {variances.round(3).tolist()}: use more samples.")
        variances = variances if pure else np.clip(variances, 0.05 * noise, 20 * noise)
    return Start(
        "three rotated views",
        GaussianParameters(found.weights, means, variances, kind),
        None,
        found.components.residual,
        np.asarray(found.search.singular_values),
        details={"coherence": coherence(means), "noise_variance": noise, "n_passes": found.n_passes},
    )


def _pooled(start: Start, description: Description, floor: float) -> Start:
    """One covariance for all: what the means leave of the data's, rather than a sphere."""
    parameters, total = start.parameters, description.covariance
    if parameters.covariance_type != "tied" or total is None:
        return start
    least = floor * description.column_variances
    within = floored(total - (parameters.means.T * parameters.weights) @ parameters.means, least)
    return replace(start, parameters=replace(parameters, covariances=within))


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
