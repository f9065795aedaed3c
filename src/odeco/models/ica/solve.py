"""From cumulants to sources: decompose, refine, recover (Theorem 3.4 read backwards)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, Decomposition, run_decomposer
from odeco.decomposition.orthogonal import leading_subspace, polar
from odeco.decomposition.rank import noise_threshold
from odeco.exceptions import MomentError
from odeco.models.ica.policy import POLICY
from odeco.models.ica.whitening import Whitening, leading_signs, too_many
from odeco.reduction import Reduction, recover_fourth, reduce_fourth
from odeco.refinement.ica import CumulantFit, direction_variances, least_squares
from odeco.refinement.ica_likelihood import crosstalk_variances, likelihood_rotation, representative, shrink
from odeco.refinement.ica_pairs import Anchor, Separation, separate
from odeco.refinement.ica_stretches import separate_signals
from odeco.tensors import ExplicitTensor, SymmetricTensor, rank_one_sum

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Task:
    """What is solved: the whitened cumulant and, where they are at hand, the whitened samples.

    `rows` is (r, n), `weights` (n,) or None for ones, both after `whitening`. `n_samples` is how many independent ones
    they are worth, `signals` whether they depend on their neighbours.
    """

    tensor: SymmetricTensor
    whitening: Whitening
    n_components: int
    n_samples: float
    rows: Rows | None = None
    weights: Floats | None = None
    signals: bool = False


@dataclass(frozen=True, eq=False)
class Refined:
    """Columns b_j of a mixing matrix in whitened coordinates, and what led to them.

    `shares` and `noise_statistic` are those of `Separation` or `Shrunk`, None and NaN where there was no doubt about
    the noise; `noiseless` where there was none. The last `n_arbitrary` columns only fill up the space.
    """

    vectors: Floats = field(repr=False)
    n_iter: int
    method: str
    settled: bool = True
    shares: Floats | None = None
    noise_statistic: float = float("nan")
    noiseless: bool = False
    n_arbitrary: int = 0

    def then(self, vectors: Floats, n_iter: int, method: str) -> Refined:
        """After one more stage."""
        return Refined(vectors, self.n_iter + n_iter, f"{self.method} + {method}")


@dataclass(frozen=True, eq=False)
class Solution:
    """Sources of unit variance, in canonical order.

    `whitening` says what was found of the noise. Columns that are `filled` in, beyond the sources that the covariance
    shows, are principal components whose variance is noise.
    """

    refined: Refined
    kurtosis: Floats
    identifiable: NDArray[np.bool_]
    kurtosis_floor: float
    residual: float
    whitening: Whitening
    filled: NDArray[np.bool_]
    magnitude_correlation: float = float("nan")
    advice: tuple[str, ...] = ()


def solve(
    task: Task, refine: str | None, rng: np.random.Generator, max_iter: int, tol: float, method: Decomposer = AUTO
) -> Solution:
    """Decompose the whitened cumulant, refine, and scale the sources to unit variance."""
    if task.whitening.shown is not None and _rest_is_gaussian(task, task.whitening.shown):
        fewer = solve(_of_those_shown(task, task.whitening.shown), refine, rng, max_iter, tol, method)
        return _filled(task, fewer)
    basis, core = _core(task.tensor, task.n_components)
    by_slices = refine is None and task.whitening.noise is None
    # A start needs no more digits than a refinement changes; slices serve in any directions, these are good ones.
    fine = {"tol": POLICY.start_tolerance} if by_slices or refine is not None else {}
    start = run_decomposer(AUTO if by_slices else method, core, task.n_components, rng, **fine)
    refined = Refined(start.eigenvectors, start.n_iter, "cumulants")
    if by_slices:
        refined = _by_slices(task, core, start, method, rng)
    magnitudes = float("nan") if task.rows is None else magnitude_correlation(task, basis @ start.eigenvectors)
    dependent = magnitudes > POLICY.dependent + 3 / np.sqrt(task.n_samples)
    orthogonal = core.dimension == task.tensor.dimension
    fit: CumulantFit | None = None
    doubtful = task.whitening.noise is None and not (dependent and orthogonal)
    if refine == "least-squares" or (refine == "auto" and doubtful):
        fit = least_squares(core, start.eigenvalues, start.eigenvectors, task.n_samples)
        refined = refined.then(fit.vectors, fit.n_iter, "least squares")
    advice: tuple[str, ...] = ()
    if refine in ("auto", "likelihood"):
        if task.rows is not None and not (task.signals or dependent):
            refined = _by_scores(task, task.rows, basis, refined, fit, refine, max_iter, tol)
        elif task.rows is not None and orthogonal:
            refined = _by_rotation(task, task.rows, start.eigenvectors, refined, fit, max_iter, tol)
        if task.rows is not None and task.signals:
            refined = _by_stretches(task, task.rows, basis, refined, refine, max_iter, tol)
        elif refine == "likelihood" and (task.rows is None or (dependent and not orthogonal)):
            advice = (
                "refine='likelihood' needs the samples in memory and, for sources that are loud together, isotropic "
                "noise or as many sources as the data have dimensions: the moment estimate is given.",
            )
    solution = _scaled(task, core, basis, refined)
    # Sources without a shape never settle; under unknown noise the cumulants hold those that do not.
    if not refined.settled and fit is None and solution.identifiable.all():
        advice += (f"the refinement did not settle in max_iter={max_iter} iterations: raise it, or tol.",)
    return replace(solution, magnitude_correlation=magnitudes, advice=advice)


def _by_slices(
    task: Task, core: SymmetricTensor, start: Decomposition, method: Decomposer, rng: np.random.Generator
) -> Refined:
    """The reduction of section 4.3 with a slice of the cumulant as M2: exact, whatever the covariance of the noise.

    Sources whose kurtosis is within sampling error have no part in any slice: their columns are those of the start, in
    the space that the others leave.
    """
    frame, strong = start.eigenvectors, int(np.sum(np.abs(start.eigenvalues) > _kurtosis_floor(task)))
    if strong == 0:
        return Refined(frame, start.n_iter, "cumulants", n_arbitrary=frame.shape[1])
    reduced = _reduced(core, frame[:, :strong])
    strong = reduced.tensor.dimension
    found = run_decomposer(method, reduced.tensor, strong, rng)
    parts = recover_fourth(reduced.whitener, found.eigenvalues, found.eigenvectors)
    vectors = np.asarray(parts.vectors.T, dtype=np.float64)
    if strong < frame.shape[1]:
        span, others = np.linalg.qr(vectors)[0], frame[:, strong:]
        vectors = np.column_stack([vectors, polar(others - span @ (span.T @ others))])
    word = "cumulants, whitened by a slice"
    return Refined(vectors, start.n_iter + found.n_iter, word, n_arbitrary=frame.shape[1] - strong)


def _reduced(core: SymmetricTensor, frame: Floats) -> Reduction:
    """For as many of the leading columns as the slices of a sampled cumulant have a definite combination of."""
    try:
        return reduce_fourth(core, frame.shape[1], frame)
    except MomentError:  # one column has it always: a number and its sign
        return _reduced(core, frame[:, :-1])


def _kurtosis_floor(task: Task) -> float:
    """What no direction of Gaussian data exceeds: a sample kurtosis varies by 24 / n, and noise shows the largest."""
    return noise_threshold(float(np.sqrt(24 / task.n_samples)), task.tensor.dimension, 4)


def magnitude_correlation(task: Task, vectors: Floats) -> float:
    """Root mean square correlation of the magnitudes of orthogonal components: about n^(-1/2) for independent sources.

    Sources that are loud together (words with common pauses, returns with a common volatility) are uncorrelated and not
    independent: neither their cumulant nor products of their scores are what the model says. An orthogonal fit holds.
    """
    assert task.rows is not None
    step = max(task.rows.shape[1] // POLICY.magnitudes, 1)
    magnitudes = np.abs(vectors.T @ task.rows[:, ::step])
    weights = np.ones(magnitudes.shape[1]) if task.weights is None else task.weights[::step]
    total = float(weights.sum())
    if len(vectors.T) == 1 or total == 0:
        return 0.0
    centred = magnitudes - ((magnitudes @ weights) / total)[:, None]
    covariance = (centred * weights) @ centred.T / total
    deviations = np.sqrt(np.maximum(np.diag(covariance), np.finfo(np.float64).tiny))
    correlation = covariance / np.outer(deviations, deviations)
    return float(np.sqrt((correlation[~np.eye(len(correlation), dtype=bool)] ** 2).mean()))


def _by_scores(
    task: Task,
    rows: Rows,
    basis: Floats,
    refined: Refined,
    fit: CumulantFit | None,
    refine: str,
    n_iter: int,
    tol: float,
) -> Refined:
    """Efficient separation of independent samples, noise known, unknown or (by `refine`) taken to be absent."""
    anchor, vectors = None, basis @ refined.vectors
    if fit is not None:
        sample = representative(rows, task.weights)
        anchor = Anchor(vectors, direction_variances(vectors, *sample, task.n_samples))
    noise, shape = _assumed_noise(task, refine), task.whitening.isotropic
    found = separate(
        rows, task.weights, vectors, task.n_samples, noise=noise, shape=shape, anchor=anchor, n_iter=n_iter, tol=tol
    )
    if fit is None:
        word = "scores without noise" if task.whitening.noise is None else "scores with the noise taken out"
    else:
        word = "scores, noise negligible" if found.negligible else "scores that noise does not bias"
    return _after(task, refined, basis, found, word, noise)


def _by_stretches(
    task: Task, rows: Rows, basis: Floats, refined: Refined, refine: str, n_iter: int, tol: float
) -> Refined:
    """Signals by the covariances of stretches of time, from what was found without the order of the samples."""
    noise, vectors = _assumed_noise(task, refine), basis @ refined.vectors
    variances = crosstalk_variances(*representative(rows, task.weights), vectors, noise) / task.n_samples
    found = separate_signals(
        rows,
        task.weights,
        Anchor(vectors, variances),
        noise=noise,
        shape=task.whitening.isotropic,
        n_iter=n_iter,
        tol=POLICY.finer * tol,
    )
    return refined if found is None else _after(task, refined, basis, found, "covariances of stretches", noise)


def _assumed_noise(task: Task, refine: str) -> Floats | None:
    """Its covariance in the whitened samples: as known, none for the likelihood, else None for unknown."""
    if task.whitening.noise is None and refine == "likelihood":
        return np.zeros((task.tensor.dimension,) * 2)
    return task.whitening.noise


def _after(task: Task, refined: Refined, basis: Floats, found: Separation, word: str, noise: Floats | None) -> Refined:
    """A separation of pairs as the last stage."""
    return replace(
        refined.then(basis.T @ found.vectors, found.n_iter, word),
        settled=found.converged,
        shares=found.shares if noise is None else None,
        noise_statistic=found.noise_statistic,
        noiseless=found.negligible and task.whitening.noise is None and task.whitening.rank == task.n_components,
    )


def _by_rotation(
    task: Task, rows: Rows, frame: Floats, refined: Refined, fit: CumulantFit | None, n_iter: int, tol: float
) -> Refined:
    """Quasi-likelihood of orthogonal components; under unknown noise the cumulants' fit, shrunk towards it."""
    noise = task.whitening.noise
    most = n_iter if fit is None else min(n_iter, POLICY.blended_iterations)
    rotation = likelihood_rotation(rows, task.weights, frame, noise, n_iter=most, tol=POLICY.finer * tol)
    if fit is None:
        word = "likelihood" + ("" if noise is None else " with the noise taken out")
        return replace(refined.then(rotation.frame, rotation.n_iter, word), settled=rotation.converged)
    shrunk = shrink(fit.signs, fit.vectors, rotation, task.n_samples)
    share = float(shrunk.weights.mean())
    word = "likelihood, noise negligible" if share == 1 else f"likelihood with a share of {share:.2f}, by the noise"
    after = refined.then(shrunk.vectors, rotation.n_iter, word)
    return replace(after, shares=shrunk.weights, noise_statistic=shrunk.noise_statistic)


def _core(tensor: SymmetricTensor, k: int) -> tuple[Floats, SymmetricTensor]:
    """The leading k-dimensional space of the cumulant and the cumulant in it: no noise, isotropic or not, moves it."""
    if k == tensor.dimension:
        return np.eye(k), tensor
    assert isinstance(tensor, ExplicitTensor)
    basis = leading_subspace(tensor, k)
    basis = basis * leading_signs(basis)  # not those of rounding: a start is drawn in these coordinates
    return basis, tensor.through(basis)


def _scaled(task: Task, core: SymmetricTensor, basis: Floats, refined: Refined) -> Solution:
    """Unit-variance sources, their kurtosis, and which of them the data identify.

    Known or no noise: the whitened covariance without it is I, and sources have the variances of their outputs. Those
    that sampling error leaves not quite orthogonal have no more variance together than the data have. Unknown
    noise: it is given no more than it must have. With unit vectors I - t sum b b' stays positive semidefinite up to
    t = 1 / ||sum b b'||; the sources get that share, and all of the variance where the b are orthogonal.
    """
    vectors = refined.vectors
    covariance = np.eye(core.dimension)
    if task.whitening.noise is not None:
        covariance = covariance + task.whitening.noise
    if refined.noiseless or task.whitening.noise is not None:
        unit = vectors * np.linalg.norm(np.linalg.pinv(vectors), axis=1)
    else:
        unit = vectors / np.linalg.norm(vectors, axis=0)
        unit = unit / np.linalg.norm(unit, 2)
    if task.whitening.noise is not None:
        largest = float(np.linalg.norm(unit.T @ np.linalg.solve(covariance, unit), 2))
        unit = unit / np.sqrt(max(largest, 1.0))
    dual = np.linalg.pinv(unit).T
    kurtosis = core.values(dual)
    variances = np.einsum("ij,ij->j", dual, covariance @ dual)
    floor = _kurtosis_floor(task)
    identifiable = np.abs(kurtosis) / variances**2 > floor
    identifiable[kurtosis.size - refined.n_arbitrary :] = False
    residual = float("nan")
    if isinstance(core, ExplicitTensor):
        residual = float(np.linalg.norm(core.array - rank_one_sum(kurtosis, unit, 4)) / (core.norm or 1.0))
    found = replace(refined, vectors=basis @ unit)
    return _ordered(
        Solution(found, kurtosis, identifiable, floor, residual, task.whitening, np.zeros(kurtosis.size, dtype=bool))
    )


def _rest_is_gaussian(task: Task, shown: Whitening) -> bool:
    """Whether the principal components beyond those shown have no cumulant: sources of equal variances would have one.

    The cumulant of Gaussian data has a mean squared norm of 24 / n for each of its distinct entries; five standard
    deviations more are allowed. Where it is not formed, the kurtosis of each component is looked at.
    """
    rest = task.tensor.through(np.eye(task.tensor.dimension)[:, shown.whitener.n_components :])
    if rest.norm is None:
        return bool(np.abs(rest.values(np.eye(rest.dimension))).max() < _kurtosis_floor(task))
    entries = comb(rest.dimension + 3, 4)
    return bool(rest.norm**2 < (1 + 5 * np.sqrt(2 / entries)) * entries * 24 / task.n_samples)


def _of_those_shown(task: Task, shown: Whitening) -> Task:
    """The task that would have been posed if as many sources had been asked for as the covariance shows."""
    turn = np.asarray(task.whitening.whitener.lift.T @ shown.whitener.matrix, dtype=np.float64)
    rows = None if task.rows is None else turn.T.astype(task.rows.dtype) @ task.rows
    tensor, k = task.tensor.through(turn), shown.whitener.n_components
    return replace(task, tensor=tensor, whitening=shown, n_components=k, rows=rows)


def _filled(task: Task, fewer: Solution) -> Solution:
    """More sources than there are: the next principal components, which stand for nothing, fill up the number."""
    k, n_shown = task.n_components, fewer.kurtosis.size
    filling = np.eye(task.tensor.dimension)[:, n_shown:k]
    vectors = task.whitening.whitener.matrix.T @ fewer.whitening.whitener.unwhiten(fewer.refined.vectors)
    shares = fewer.refined.shares
    filled = replace(
        fewer.refined,
        vectors=np.column_stack([vectors, filling]),
        shares=None if shares is None else np.append(shares, np.zeros(k - n_shown)),
    )
    spectrum = np.asarray(task.whitening.whitener.spectrum[: task.whitening.rank], dtype=np.float64)
    return _ordered(
        replace(
            fewer,
            refined=filled,
            kurtosis=np.append(fewer.kurtosis, task.tensor.values(filling)),
            identifiable=np.append(fewer.identifiable, np.zeros(k - n_shown, dtype=bool)),
            filled=np.arange(k) >= n_shown,
            advice=(f"{too_many(k, n_shown, spectrum)}. The other columns of mixing_ are arbitrary.", *fewer.advice),
        )
    )


def _ordered(solution: Solution) -> Solution:
    """Largest |kurtosis| first."""
    refined, kurtosis = solution.refined, solution.kurtosis
    order = np.lexsort((np.arange(kurtosis.size), -np.abs(kurtosis)))
    shares = None if refined.shares is None else refined.shares[order]
    ordered = replace(refined, vectors=refined.vectors[:, order], shares=shares)
    flags = {name: getattr(solution, name)[order] for name in ("kurtosis", "identifiable", "filled")}
    return replace(solution, refined=ordered, **flags)
