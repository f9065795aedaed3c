"""From cumulants to sources: decompose, refine, recover (Theorem 3.4 read backwards)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import run_method
from odeco.decomposition.orthogonal import compress, leading_subspace
from odeco.decomposition.rank import noise_threshold
from odeco.models._ica_whitening import Whitening
from odeco.refinement.ica import least_squares
from odeco.refinement.ica_likelihood import Shrunk, likelihood_rotation, shrink
from odeco.tensors import ExplicitTensor, SymmetricTensor, rank_one_sum

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

_START_TOLERANCE = 1e-4
# Without noise the likelihood settles in 3 to 10 iterations; with it, where more are needed, little of it is taken.
_BLENDED_ITERATIONS = 25


@dataclass(frozen=True, eq=False)
class Task:
    """What is solved: the whitened cumulant and, where they are at hand, the whitened samples.

    `rows` is (r, n), `weights` (n,) or None for ones, `n_samples` their sum; all after `whitening`.
    """

    tensor: SymmetricTensor
    whitening: Whitening
    n_components: int
    n_samples: float
    rows: Rows | None = None
    weights: Floats | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """Sources in whitened coordinates: columns b_j of a mixing matrix for sources of unit variance."""

    vectors: Floats = field(repr=False)
    kurtosis: Floats
    identifiable: NDArray[np.bool_]
    kurtosis_floor: float
    residual: float
    n_iter: int
    method: str
    shrunk: Shrunk | None
    advice: tuple[str, ...] = ()


def solve(task: Task, refine: str | None, rng: np.random.Generator, max_iter: int, tol: float) -> Solution:
    """Decompose the whitened cumulant, refine, and scale the sources to unit variance."""
    basis, core = _core(task.tensor, task.n_components)
    # A start needs no more digits than a refinement changes.
    decomposition = run_method(
        core, task.n_components, "auto", rng, {} if refine is None else {"tol": _START_TOLERANCE}
    )
    known_noise = task.whitening.noise is not None
    usable = None if task.rows is None or core.dimension < task.tensor.dimension else task.rows
    advice: list[str] = []
    settled = True
    vectors, shrunk, n_iter, steps = decomposition.eigenvectors, None, decomposition.n_iter, ["cumulants"]
    free = refine == "least-squares" or (refine == "auto" and not known_noise)
    if free:
        fit = least_squares(core, decomposition.eigenvalues, vectors, task.n_samples)
        vectors, n_iter = fit.vectors, n_iter + fit.n_iter
        steps.append("least squares")
    if refine in ("auto", "likelihood") and usable is not None:
        most = min(max_iter, _BLENDED_ITERATIONS) if free else max_iter
        rotation = likelihood_rotation(
            usable, task.weights, decomposition.eigenvectors, task.whitening.noise, n_iter=most, tol=tol
        )
        n_iter += rotation.n_iter
        settled = rotation.converged or free
        if free:
            shrunk = shrink(fit.signs, vectors, rotation, task.n_samples)
            vectors = shrunk.vectors
            steps.append(_describe(shrunk))
        else:
            vectors = rotation.frame
            steps.append("likelihood" + (" with the noise taken out" if known_noise else ""))
    elif refine == "likelihood":
        advice.append(
            "refine='likelihood' needs the samples in memory, and isotropic noise or as many sources as the data have "
            "dimensions: the moment estimate is given."
        )
    solution = _scaled(task, core, basis, vectors, shrunk, n_iter, " + ".join(steps))
    if not settled and solution.identifiable.all():  # sources without a shape never settle
        advice.append(f"the likelihood polish did not settle in max_iter={max_iter} iterations: raise it, or tol.")
    return replace(solution, advice=tuple(advice))


def _core(tensor: SymmetricTensor, k: int) -> tuple[Floats, SymmetricTensor]:
    """The leading k-dimensional space of the cumulant and the cumulant in it: no noise, isotropic or not, moves it."""
    if k == tensor.dimension:
        return np.eye(k), tensor
    assert isinstance(tensor, ExplicitTensor)
    basis = leading_subspace(tensor, k)
    return basis, compress(tensor, basis)


def _describe(shrunk: Shrunk) -> str:
    share = float(shrunk.weights.mean())
    return "likelihood, noise negligible" if share == 1 else f"likelihood with a share of {share:.2f}, by the noise"


def _scaled(
    task: Task,
    core: SymmetricTensor,
    basis: Floats,
    vectors: Floats,
    shrunk: Shrunk | None,
    n_iter: int,
    method: str,
) -> Solution:
    """Unit-variance sources, their kurtosis, and which of them the data identify.

    Known noise: the whitened covariance without it is I = sum b b', unit vectors are unit variances. Unknown noise: the
    noise is given no more than it must have. With unit vectors I - t sum b b' stays positive semidefinite up to
    t = 1 / ||sum b b'||; the sources get that share, and all of the variance where the b are orthogonal.
    """
    unit = vectors / np.linalg.norm(vectors, axis=0)
    if task.whitening.noise is None:
        unit = unit / np.linalg.norm(unit, 2)
    dual = np.linalg.pinv(unit).T
    kurtosis = core.values(dual)
    covariance = np.eye(core.dimension)
    if task.whitening.noise is not None:
        covariance = covariance + task.whitening.noise
    variances = np.einsum("ij,ij->j", dual, covariance @ dual)
    # A Gaussian direction has a sample kurtosis of variance 24 / n; noise shows the largest over all directions.
    floor = noise_threshold(float(np.sqrt(24 / task.n_samples)), core.dimension, 4)
    identifiable = np.abs(kurtosis) / variances**2 > floor
    residual = float("nan")
    if isinstance(core, ExplicitTensor):
        residual = float(np.linalg.norm(core.array - rank_one_sum(kurtosis, unit, 4)) / (core.norm or 1.0))
    order = np.lexsort((np.arange(kurtosis.size), -np.abs(kurtosis)))
    if shrunk is not None:
        shrunk = Shrunk(shrunk.vectors[:, order], shrunk.weights[order], shrunk.noise_statistic)
    return Solution(
        basis @ unit[:, order],
        kurtosis[order],
        identifiable[order],
        floor,
        residual,
        n_iter,
        method,
        shrunk,
    )
