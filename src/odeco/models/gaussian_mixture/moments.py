"""Theorems 3.2 and 3.3 read backwards, in affine form: from moments of projected rows to a mixture of spheres.

About the mean, the covariance is that of the means, of rank k - 1, plus the average variance times the identity. With
the noise taken out, the moments of the means are left, and `odeco.reduction.affine` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, run_decomposer
from odeco.exceptions import MomentError
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.reduction.affine import affine_tensor, read_affine, upright_vectors
from odeco.tensors import ExplicitTensor

if TYPE_CHECKING:
    from odeco.decomposition import Decomposition

Floats = NDArray[np.float64]


def noise_edge(n: Any, d: int) -> Any:
    """The largest eigenvalue that n rows of noise of variance 1 in d dimensions would show.

    The edge of Marchenko and Pastur's law, wider by 3 % for variances that differ, and 2.5 of Johnstone's units of its
    fluctuation: one data set in a thousand exceeds that.
    """
    n = np.maximum(n, 1.0)
    unit = (np.sqrt(n) + np.sqrt(d)) * (1 / np.sqrt(n) + 1 / np.sqrt(d)) ** (1 / 3) / n
    return (1 + 1.03 * np.sqrt(d / n)) ** 2 + 2.5 * unit


@dataclass(frozen=True, eq=False)
class SphericalMoments:
    """What the theorems need, about the mean and on principal directions.

    Attributes
    ----------
    eigenvalues : (r,)
        Leading eigenvalues of the covariance, largest first, r >= k - 1 (k where there are as many).
    third : (k - 1, k - 1, k - 1)
        Third moment on the first k - 1 principal directions.
    radial : (k - 1,)
        Those directions times the squared norm of the whole row.
    total_variance : float
        Trace of the covariance.
    dimension : int
        d
    weight : float
        Number of samples.
    """

    eigenvalues: Floats = field(repr=False)
    third: Floats = field(repr=False)
    radial: Floats = field(repr=False)
    total_variance: float
    dimension: int
    weight: float

    @property
    def n_components(self) -> int:
        """k"""
        return self.radial.size + 1

    @property
    def noise_variance(self) -> float:
        """The average variance: the mean over the d - k + 1 dimensions of noise, not the lowest eigenvalue."""
        r = self.radial.size
        return float((self.total_variance - self.eigenvalues[:r].sum()) / (self.dimension - r))

    @property
    def noise_edge(self) -> float:
        """The largest eigenvalue that noise alone would show."""
        return self.noise_variance * float(noise_edge(self.weight, self.dimension))


@dataclass(frozen=True, eq=False)
class SphericalEstimate:
    """A mixture of spheres: weights (k,), means (k, k - 1) on the principal directions, variances (k,).

    `clipped` variances were out of range, `weak` components are not what the tensor shows but what is left of it.
    """

    weights: Floats
    means: Floats = field(repr=False)
    variances: Floats
    decomposition: Decomposition = field(repr=False)
    clipped: int
    weak: NDArray[np.bool_]


def spherical_estimate(
    moments: SphericalMoments, tied: bool, rng: np.random.Generator, method: Decomposer = AUTO, *, pure: bool = True
) -> SphericalEstimate:
    """The parameters that the moments imply (Theorem 3.2 where `tied`, Theorem 3.3 otherwise).

    Unless `pure`, a start for EM: what sampling error has made impossible is put back into range.
    """
    k, noise = moments.n_components, moments.noise_variance
    signal = moments.eigenvalues[: k - 1] - noise
    if k > 1 and not signal[-1] > 100 * np.finfo(np.float64).eps * moments.eigenvalues[0]:
        raise MomentError(
            f"the means of {k} components must span {k - 1} dimensions, but eigenvalue {k - 1} of the covariance, "
            f"{moments.eigenvalues[k - 2]:.3g}, does not exceed the noise variance {noise:.3g}: lower n_components."
        )
    if not noise > 100 * np.finfo(np.float64).eps * moments.eigenvalues[0]:
        raise MomentError(
            f"outside the {k - 1} leading dimensions the rows do not vary (variance {noise:.3g}): there is no noise to "
            "read the variances from. Use more samples, or fewer components."
        )
    roots = np.sqrt(signal)
    # M1 = sum_i w_i sigma_i^2 a_i; by Theorem 3.2 it vanishes about the mean where all variances are equal.
    spread = np.zeros(k - 1) if tied else variance_moment(moments) / roots
    tensor = affine_tensor(whitened_third(moments.third, signal, spread))
    found = run_decomposer(method, ExplicitTensor(tensor), k, rng)
    vectors = upright_vectors(found.eigenvectors)
    spreads = vectors.T @ np.append(spread, noise)
    if pure:
        return _read_off(vectors, spreads, roots, found)
    # The eigenvalue is one over the last coordinate. Where the tensor says otherwise, the vector is only what the
    # others left over: its direction still helps, its length does not.
    weak = found.eigenvalues * vectors[-1] < POLICY.consistent
    last = np.where(weak, np.sqrt(POLICY.left_weight / k), vectors[-1])
    weights = last**2 / np.sum(last**2)
    means = (vectors[:-1] / last).T * roots
    variances = np.where(weak, noise, spreads / last)
    low, high = (bound * noise for bound in POLICY.variance_range)
    clipped = int(np.count_nonzero((variances < low) | (variances > high)))
    return SphericalEstimate(weights, means, np.clip(variances, low, high), found, clipped, weak)


def _read_off(vectors: Floats, spreads: Floats, roots: Floats, found: Decomposition) -> SphericalEstimate:
    """Weights, means and variances as the eigenvectors have them."""
    weights, means = read_affine(vectors)
    if not (spreads > 0).all():
        raise MomentError(
            f"component {int(np.argmin(spreads))} of the moments has no positive variance. Use more samples, fewer "
            "components, or a refinement, which starts from less."
        )
    nothing = np.zeros(weights.size, dtype=bool)
    return SphericalEstimate(weights, means * roots, spreads / vectors[-1], found, 0, nothing)


def whitened_third(third: Floats, signal: Floats, spread: Floats) -> Floats:
    """``sum_i w_i a_i^(x3)``, (k - 1, k - 1, k - 1): whitened third moments less the noise's.

    ``E[z z z] = sum_i w_i (a_i a_i a_i + [3] sigma_i^2 a_i (x) C)``, C the inverse of the whitened eigenvalues.
    """
    roots = np.sqrt(signal)
    whitened = third / np.multiply.outer(roots, np.outer(roots, roots))
    noise = np.multiply.outer(spread, np.diag(1 / signal))
    return np.asarray(whitened - noise - noise.transpose(1, 0, 2) - noise.transpose(1, 2, 0))


def variance_moment(moments: SphericalMoments) -> Floats:
    """``E[y ||P y||^2] / (d - k + 1)`` on the principal directions: sum_i w_i sigma_i^2 (mu_i - mean)."""
    inside = np.einsum("abb->a", moments.third)
    return np.asarray((moments.radial - inside) / (moments.dimension - moments.radial.size))
