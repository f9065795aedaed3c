"""Which part of the covariance is sources and which is noise: rank, noise model, whitening (section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from odeco.models.ica.policy import POLICY
from odeco.sources.scale import check_columns
from odeco.whitening import Whitener

Floats = NDArray[np.float64]
NoiseModel = Literal["isotropic", "general"]


@dataclass(frozen=True, eq=False)
class Whitening:
    """A whitener of dimension r >= k, and what is known of the noise.

    Attributes
    ----------
    whitener : Whitener
        (d, r). E[y y'] = I + noise for y = W'(x - mean).
    noise_model : "isotropic" or "general"
    noise_variance : float
        Of each channel; NaN for the general model.
    noise : (r, r) array or None
        Covariance of the noise in y where it is known.
    rank : int
        Numerical rank of the covariance.
    n_shown : int or None
        How many eigenvalues exceed a floor of two or more equal ones; None where there is no such floor.
    advice : tuple of str
    shown : Whitening or None
        Where fewer sources are shown than were asked for: the whitening of those alone.
    """

    whitener: Whitener = field(repr=False)
    noise_model: NoiseModel
    noise_variance: float
    noise: Floats | None = field(repr=False)
    rank: int
    n_shown: int | None
    advice: tuple[str, ...] = ()
    shown: Whitening | None = None

    @property
    def isotropic(self) -> Floats:
        """Covariance (r, r) that noise of unit variance in every channel has in y."""
        matrix = np.asarray(self.whitener.matrix)
        return np.asarray(matrix.T @ matrix)


def covariance_rank(covariance: Floats, mean: Floats, precision: float) -> int:
    """Number of dimensions that vary beyond rounding, whatever the units of the channels.

    Channels whose deviation is rounding of their mean are constant. The others are brought to unit variance; their
    eigenvalues carry the rounding of the sums (double precision) and of the data (their precision, squared).
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = deviations > 10 * precision * np.abs(mean)
    if not varies.any():
        return 0
    kept = deviations[varies]
    correlation = covariance[np.ix_(varies, varies)] / np.outer(kept, kept)
    values = np.linalg.eigvalsh(correlation)
    rounding = max(10 * float(np.finfo(np.float64).eps), 100 * precision**2)
    return int(np.sum(values > values.size * rounding * values[-1]))


def choose_whitening(
    mean: Floats,
    covariance: Floats,
    n_samples: float,
    n_components: int | None,
    noise: str,
    precision: float,
    exact: bool = False,
) -> tuple[int, Whitening]:
    """The number of components and the whitening of a covariance.

    Isotropic noise can be seen where channels outnumber sources: its variance is the mean of the eigenvalues that are
    left, and it is subtracted before whitening. `noise="auto"` takes it where those eigenvalues are equal up to
    sampling and the others exceed them: a source without variance would be divided by the root of about zero. Otherwise
    all channels are whitened, and the cumulant, which is blind to noise, finds the sources' space; where some of the
    others do exceed the noise, their own whitening comes with it (`Whitening.shown`). With `exact` nothing
    is taken for granted: several eigenvalues must agree, and without any slack.
    """
    check_columns(np.abs(mean) + np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    values, vectors = np.linalg.eigh(covariance)
    spectrum, vectors = values[::-1].copy(), vectors[:, ::-1]
    rank = covariance_rank(covariance, mean, precision)
    if rank and not spectrum[rank - 1] > 0:
        raise ValueError(
            f"the channels of X differ too much in scale for their precision (variances of principal components from "
            f"{spectrum[0]:.3g} to {spectrum[rank - 1]:.3g}): rescale them, or remove outliers."
        )
    k = _check_components(n_components, rank, spectrum.size)
    above = _above_noise(spectrum[:rank], n_samples)
    # A floor of one eigenvalue is no floor; one of all of them may be sources of equal variances.
    n_shown = above if 0 < above < rank - 1 else None
    shown: Whitening | None = None
    if noise == "isotropic" or (noise == "auto" and rank > k and _is_isotropic(spectrum[k:rank], n_samples, exact)):
        if rank <= k or above >= k:
            return k, _isotropic(spectrum, vectors, k, rank, n_shown)
        if noise == "isotropic":
            raise ValueError(f"noise='isotropic' and {too_many(k, above, spectrum[:rank])}, or use noise='general'.")
        if n_shown is not None and _is_isotropic(spectrum[above:rank], n_samples, exact):
            shown = _isotropic(spectrum, vectors, above, rank, n_shown)
    return k, _general(spectrum, vectors, k, rank, n_shown, shown)


def leading_signs(vectors: Floats) -> Floats:
    """What makes the entry of largest magnitude of every column positive: eigenvectors have the sign of rounding."""
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


def too_many(k: int, above: int, spectrum: Floats) -> str:
    """What is wrong with asking for more sources than the spectrum shows, and what to do."""
    return (
        f"n_components={k}, but only {above} eigenvalues of the covariance exceed the noise (eigenvalue {k} is "
        f"{spectrum[k - 1]:.3g}, the last {spectrum[-1]:.3g}): lower n_components"
    )


def _general(
    spectrum: Floats, vectors: Floats, k: int, rank: int, n_shown: int | None, shown: Whitening | None
) -> Whitening:
    """All channels by their full covariance, or k principal components of too many."""
    r = rank
    advice: tuple[str, ...] = ()
    if rank > max(k, POLICY.quasi_limit):
        r = k
        advice = (
            f"the noise is not isotropic (discarded eigenvalues from {spectrum[k]:.3g} to {spectrum[rank - 1]:.3g}), "
            f"and {rank} dimensions are too many to find the sources' space by the cumulant: the {k} leading principal "
            "components were used, as FastICA does.",
        )
    whitener = Whitener.of_eigenpairs(spectrum[:r], vectors[:, :r], spectrum)
    return Whitening(whitener, "general", float("nan"), None, rank, n_shown, advice, shown)


def _isotropic(spectrum: Floats, vectors: Floats, k: int, rank: int, n_shown: int | None) -> Whitening:
    if rank <= k:
        raise ValueError(
            f"noise='isotropic' needs more channels than sources: the data have rank {rank}, n_components={k}. "
            "Lower n_components, or use noise='general'."
        )
    variance = float(spectrum[k:rank].mean())
    whitener = Whitener.of_eigenpairs(spectrum[:k] - variance, vectors[:, :k], spectrum)
    matrix = np.asarray(whitener.matrix, dtype=np.float64)
    return Whitening(whitener, "isotropic", variance, variance * matrix.T @ matrix, rank, n_shown)


def _above_noise(spectrum: Floats, n_samples: float) -> int:
    """How many eigenvalues exceed what sampling makes of equal ones; the smallest is taken to be noise.

    The largest singular value of an (n, m) matrix of unit noise exceeds sqrt(n) + sqrt(m) + 3 with a probability below
    exp(-9/2) = 0.011 (Davidson and Szarek 2001).
    """
    count = spectrum.size - 1
    while count > 0:
        group = spectrum[count - 1 :]
        if group[0] > (1 + (np.sqrt(group.size) + 3) / np.sqrt(n_samples)) ** 2 * group.mean():
            break
        count -= 1
    return count


def _is_isotropic(discarded: Floats, n_samples: float, exact: bool) -> bool:
    """Whether the eigenvalues are equal up to sampling; one alone cannot tell, and is taken to be unless `exact`."""
    if exact and discarded.size == 1:
        return False
    spread = np.sqrt(min(discarded.size / n_samples, 0.9))
    edges = ((1 + spread) / (1 - spread)) ** 2
    return bool(discarded[0] <= (1.0 if exact else POLICY.isotropy_slack) * edges * discarded[-1])


def _check_components(n_components: int | None, rank: int, n_features: int) -> int:
    if rank == 0:
        raise ValueError("X has no variance: all channels are constant.")
    if n_components is None:
        return rank
    if n_components > rank:
        raise ValueError(
            f"n_components={n_components} is larger than the rank {rank} of the data ({n_features} channels; constant, "
            f"duplicated or average-referenced channels lower it). Use n_components={rank} or less, or None."
        )
    return n_components
