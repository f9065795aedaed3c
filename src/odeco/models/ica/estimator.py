"""Independent component analysis that Gaussian noise does not bias (section 3.2.3 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from odeco._random import RandomState, as_generator
from odeco.diagnostics import Diagnostics
from odeco.fitting.estimator import Found, MomentEstimator
from odeco.fitting.options import check_choice, check_integer
from odeco.fitting.rows import open_vectors, vector_chunks
from odeco.fitting.stream import StreamPlan
from odeco.models.ica.data import Problem, StreamedChannels, channel_passes, channel_plan
from odeco.models.ica.solve import Solution, solve
from odeco.models.ica.whitening import covariance_rank, leading_signs
from odeco.models.lazy import by_rows
from odeco.moments.cumulants import SecondMoments
from odeco.moments.passes import Passes, fill
from odeco.sources.dense import DenseBatch, DenseSource, first_rows
from odeco.sources.scale import check_magnitude
from odeco.sources.values import number_array, number_block

Floats = NDArray[np.float64]

_REFINE = ("auto", "least-squares", "likelihood", None)
_NOISE = ("auto", "isotropic", "general")
_ESTIMATE = ("inverse", "sinr")


class ICA(MomentEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Independent components of ``x = mixing_ @ h + z``, z Gaussian noise of any covariance.

    The fourth cumulant of x does not see z (Theorem 3.4): its decomposition is consistent under noise where FastICA
    and likelihood methods are biased. Products of the sources' scores, which noise does not bias either, then make it
    as efficient as the likelihood of the sources' true densities would be, with noise and without.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of sources k; None takes the rank of the data, "auto" the number that stands out from noise.
    noise : {"auto", "isotropic", "general"}
        "isotropic": equal variance in all channels; it is estimated from the d - k smallest eigenvalues and taken out,
        so it needs d > k. "general": any covariance, also none. "auto": isotropic where those eigenvalues are equal
        up to sampling and the others exceed them (one alone is taken to be, but not with ``refine=None``).
    method, method_options : str, mapping or None
        The decomposer of the cumulant, any method of `odeco.decompose` that takes order 4, and its options.
    refine : {"auto", "least-squares", "likelihood"} or None
        None: the paper's estimate, the orthogonal decomposition of the whitened cumulant; where the noise is not known
        to be isotropic a slice of the cumulant itself whitens it, so that no Gaussian noise biases it.
        "least-squares": components fitted to the cumulant, not biased either. "likelihood": estimated
        scores of the sources, consistent without noise or with isotropic noise (d > k). "auto": scores as well, in a
        form that no Gaussian noise biases, together with the least-squares fit where that is the more certain. For
        signals (samples that depend on their neighbours) and sources that are loud together both use fixed functions
        and orthogonal components, for signals blended with the least-squares fit by what sampling error explains; then
        signals whose loudness changes are told apart by the covariances of stretches of time.
    estimate : {"inverse", "sinr"}
        What `transform` gives: ``components_``, the pseudoinverse of the mixing, free of crosstalk; or
        ``sinr_components_``, which trade crosstalk for noise at the best signal-to-interference-and-noise ratio.
    max_iter, tol : int, float
        Cap on the steps of "likelihood" and "auto"; largest crosstalk removed by a step at which they stop (what it
        leaves is the square).
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    mixing_ : (n_features, k)
        Columns for sources of unit variance, largest |kurtosis| first; the entry of largest magnitude is positive.
    components_ : (k, n_features)
        ``pinv(mixing_)``.
    sinr_components_ : (k, n_features)
        ``mixing_' @ pinv(covariance_)``: the best linear estimate of unit-variance sources.
    mean_ : (n_features,)
    kurtosis_ : (k,)
        Excess kurtosis of the sources, sign included.
    noise_covariance_ : (n_features, n_features)
        ``covariance_ = mixing_ @ mixing_' + noise_covariance_`` (up to sampling error with isotropic noise, and where
        the noise was found to be negligible: 0 then).
    covariance_ : (n_features, n_features)
    whitening_ : (k, n_features)
        Maps centred samples to the white coordinates that were decomposed.
    n_iter_ : int
        Iterations of the decomposition and of all refinements.
    diagnostics_ : Diagnostics
        ``details``: "noise_model", "noise_variance", "conventional" (see Notes), "identifiable" (a flag per source),
        "kurtosis_floor", "effective_samples" (fewer than given where neighbours depend on each other, as in signals),
        "likelihood_share" (per source, how much of the certainty of no noise was used: 1 where noise is negligible),
        "noise_statistic" (about 1 without noise), "magnitude_correlation" (of the sources; about 0 if independent).

    Notes
    -----
    With d > k and isotropic noise, variances, kurtosis and noise are identified. Otherwise (d = k in particular) a
    Gaussian part of a source cannot be told from noise: mixing directions are identified, scales are not. The
    convention then gives the noise the least that leaves its covariance positive semidefinite when all sources keep
    the same share of their output's variance; ``diagnostics_.details["conventional"]`` is True.

    A source whose kurtosis is within sampling error of 0 is reported, not trusted: its direction is arbitrary.

    Examples
    --------
    >>> import numpy as np
    >>> from odeco.models.ica.estimator import ICA
    >>> rng = np.random.default_rng(0)
    >>> h = np.column_stack([rng.uniform(-1, 1, 20000), rng.laplace(size=20000)])
    >>> x = h @ np.array([[1.0, 0.5], [0.2, 1.0]]) + 0.1 * rng.standard_normal((20000, 2))
    >>> ica = ICA(random_state=0).fit(x)
    >>> np.sign(ica.kurtosis_).tolist()  # heavy tails first, then light ones
    [1.0, -1.0]
    """

    n_components: Any
    _moments_alone = _REFINE
    _criterion = "spectrum"
    _signed = ("mixing_", "components_", "sinr_components_")

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        noise: str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        refine: str | None = "auto",
        estimate: str = "inverse",
        max_iter: int = 200,
        tol: float = 1e-2,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.noise = noise
        self.method = method
        self.method_options = method_options
        self.refine = refine
        self.estimate = estimate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X : (n_samples, n_features) array or DataFrame, or batches of one
            Batches: a list of arrays, a function that returns a new iterator over arrays, or an
            `odeco.sources.dense.DenseSource`; read twice. float32 stays float32.
        y : ignored
        sample_weight : (n_samples,) array, optional
        """
        return self._fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of samples and fit to all seen so far (since the first call, or the first after `fit`).

        Only moments are kept, so the result does not depend on the chunks and is the moment estimate (least squares
        included); likelihood steps need the samples. More than 32 channels are projected on principal directions of the
        first max(1000, 10 n_features) samples; while there are fewer, `diagnostics_` advises but nothing warns.
        """
        return self._partial_fit(X, sample_weight=sample_weight)

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> DenseSource:
        return open_vectors(self, X, sample_weight)

    def _reopen(self, X: Any, **given: Any) -> DenseSource:
        return open_vectors(self, X, reset=False, **given)

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[DenseBatch]:
        return vector_chunks(self, X, sample_weight, reset=reset)

    def _plan(self) -> StreamPlan[DenseBatch, StreamedChannels]:
        return channel_plan(self.n_features_in_, self.n_components)

    def _passes(self, source: DenseSource, rng: np.random.Generator) -> Passes[Problem]:
        return channel_passes(source, self.n_components, self.noise, self.refine is None)

    def _narrowed(self, moments: Problem, n_components: int) -> Problem | None:
        return moments.narrowed(n_components, self.noise, self.refine is None)

    def _stream_moments(self, kept: None, rng: np.random.Generator) -> Problem:
        sums: StreamedChannels = self._stream.read(self._plan())
        return sums.problem(self.n_components, self.noise, self.refine is None)

    def _most_components(self, source: DenseSource) -> int:
        """The rank of the covariance."""
        second = fill(SecondMoments(source.n_features, first_rows(source, 1024).rows.mean(axis=0)), source)
        return covariance_rank(second.covariance, second.mean, float(np.finfo(source.dtype).eps))

    def _described_components(self) -> Floats:
        return np.asarray(self.mixing_.T)

    @by_rows("shares")
    def transform(self, X: Any) -> Floats:
        """Sources of new samples: ``(X - mean_) @ components_.T``, or with ``sinr_components_`` (see `estimate`)."""
        check_is_fitted(self)
        rows = check_magnitude(validate_data(self, number_block(X), dtype=[np.float64, np.float32], reset=False))
        matrix = self.components_ if self.estimate == "inverse" else self.sinr_components_
        dtype = rows.dtype
        return np.asarray((rows - self.mean_.astype(dtype)) @ matrix.T.astype(dtype))

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Samples of given sources, without noise: ``X @ mixing_.T + mean_``."""
        check_is_fitted(self)
        sources = number_array(X)
        if sources.ndim != 2 or sources.shape[1] != self.mixing_.shape[1]:
            raise ValueError(f"X must have shape (n, {self.mixing_.shape[1]}), got {sources.shape}.")
        return np.asarray(sources @ self.mixing_.T + self.mean_)

    def sample(self, n_samples: int = 1) -> tuple[Floats, Floats]:
        """Draw samples with the fitted moments up to order four; returns (X, sources).

        The model says nothing of the sources beyond their kurtosis: light tails are drawn as a sign plus a Gaussian,
        heavy ones as a Gaussian that is often zero.
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}.")
        rng = as_generator(self.random_state)
        shape = (int(n_samples), self.kurtosis_.size)
        gaussian = rng.standard_normal(shape)
        share = np.sqrt(np.clip(-self.kurtosis_ / 2, 0, 1))  # -2 a^4 for a sign of variance a^2
        light = np.sqrt(share) * rng.choice([-1.0, 1.0], shape) + np.sqrt(1 - share) * gaussian
        present = 3 / (3 + np.maximum(self.kurtosis_, 0))  # 3 / p - 3 for a Gaussian that is there with probability p
        heavy = gaussian * (rng.random(shape) < present) / np.sqrt(present)
        sources = np.where(self.kurtosis_ < 0, light, heavy)
        values, vectors = np.linalg.eigh(self.noise_covariance_)
        noise = rng.standard_normal((shape[0], values.size)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        return self.inverse_transform(sources) + noise, sources

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _check_options(self) -> None:
        super()._check_options()
        for name, allowed in (("noise", _NOISE), ("refine", _REFINE), ("estimate", _ESTIMATE)):
            check_choice(name, getattr(self, name), allowed)
        if self.n_components is not None:
            check_integer("n_components", self.n_components)
        check_integer("max_iter", self.max_iter)
        if not (isinstance(self.tol, (int, float, np.number)) and self.tol > 0):
            raise ValueError(f"tol must be a positive number, got {self.tol!r}.")

    def _theorem(self, moments: Problem, rng: np.random.Generator) -> Solution:
        """Theorem 3.4; what refines it works on the white coordinates of the same moments, and comes with it."""
        return solve(moments.task, self.refine, rng, int(self.max_iter), float(self.tol), self._decomposer())

    def _conclude(self, found: Found, refined: None) -> Diagnostics:
        problem, solution = found.moments, found.estimate
        mixing = problem.lift(solution.refined.vectors)
        self.mixing_ = mixing * leading_signs(mixing)
        self.components_ = np.linalg.pinv(self.mixing_)
        self.mean_, self.covariance_ = problem.mean, problem.covariance
        self.sinr_components_ = self.mixing_.T @ np.linalg.pinv(problem.covariance, hermitian=True)
        self.kurtosis_ = solution.kurtosis
        self.noise_covariance_ = self._noise_covariance(problem, solution)
        self.whitening_ = problem.project(np.linalg.qr(solution.refined.vectors)[0])
        self.n_iter_ = solution.refined.n_iter
        return _diagnose(problem, solution)

    def _coded(self) -> Self:
        coded = super()._coded()
        coded.diagnostics_ = self.diagnostics_  # has the floor of the evidence
        return coded

    def _evidence(self) -> Floats:
        """Kurtosis beside what no direction of Gaussian data exceeds."""
        return np.asarray(self.kurtosis_ / self.diagnostics_.details["kurtosis_floor"])

    def _noise_covariance(self, problem: Problem, solution: Solution) -> Floats:
        if solution.whitening.noise_model == "isotropic":
            # What fills up the number of sources is noise, and counted once.
            filling = problem.lift(solution.refined.vectors[:, solution.filled])
            directions = filling / np.linalg.norm(filling, axis=0)
            return np.asarray(
                solution.whitening.noise_variance * (np.eye(self.n_features_in_) - directions @ directions.T)
            )
        if solution.refined.noiseless:
            return np.zeros_like(problem.covariance)
        return np.asarray(problem.covariance - self.mixing_ @ self.mixing_.T)


def _diagnose(problem: Problem, solution: Solution) -> Diagnostics:
    whitening, k = solution.whitening, solution.kurtosis.size
    spectrum = np.asarray(whitening.whitener.spectrum, dtype=np.float64)
    refined = solution.refined
    return Diagnostics(
        n_components=k,
        spectrum=spectrum,
        gap=float(1 - spectrum[k] / spectrum[k - 1]) if whitening.rank > k else 1.0,
        condition=float(spectrum[0] / spectrum[k - 1]),
        residual=solution.residual,
        suggested_components=_suggested(solution),
        method=refined.method,
        n_passes=problem.n_passes,
        advice=(
            *_kurtosis_advice(solution),
            *whitening.advice,
            *problem.advice,
            *solution.advice,
        ),
        details={
            "noise_model": whitening.noise_model,
            "noise_variance": whitening.noise_variance,
            "conventional": whitening.noise_model == "general",
            "rank": whitening.rank,
            "effective_samples": problem.task.n_samples,
            "identifiable": solution.identifiable,
            "kurtosis_floor": solution.kurtosis_floor,
            "likelihood_share": refined.shares,
            "noise_statistic": refined.noise_statistic,
            "magnitude_correlation": solution.magnitude_correlation,
        },
    )


def _suggested(solution: Solution) -> int | None:
    """As many as the covariance shows above a floor of noise, or those identified where they are more.

    None where all of fewer sources than dimensions are identified: without such a floor nothing tells how many more
    there are.
    """
    whitening, identified = solution.whitening, int(np.count_nonzero(solution.identifiable))
    open_ended = identified == solution.kurtosis.size < whitening.rank and whitening.noise_model == "general"
    if open_ended and whitening.n_shown is None:
        return None
    return max(identified, whitening.n_shown or 0)


def _kurtosis_advice(solution: Solution) -> tuple[str, ...]:
    """Sources that their cumulant does not show; of columns that only fill up the number all was said."""
    weak = np.flatnonzero(~solution.identifiable)
    floor = f"{solution.kurtosis_floor:.2g}"
    if weak.size == 0 or weak.size == np.count_nonzero(solution.filled):
        return ()
    if weak.size == solution.kurtosis.size:
        return (
            f"no source has an excess kurtosis beyond sampling error ({floor}): the data look Gaussian, and Gaussian "
            "sources cannot be separated. Use more samples; the columns of mixing_ are arbitrary.",
        )
    return (
        f"{weak.size} of {solution.kurtosis.size} sources have an excess kurtosis within sampling error ({floor}) and "
        f"are not identified: {weak.tolist()}. Their columns of mixing_ are arbitrary in the space that the others "
        "leave; lower n_components or use more samples.",
    )
