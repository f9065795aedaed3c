"""Least squares on the fourth cumulant: min ||T - sum_j s_j b_j^(x4)||^2 over vectors b_j that need not be orthogonal.

With Gaussian noise of unknown covariance the covariance of the data whitens the wrong matrix, and the components of the
whitened cumulant are no longer orthogonal: the orthogonal decomposition is biased, its free least-squares fit is not.
Gauss-Newton needs the tensor through T(I, b, b, b) only; the normal matrix follows from the Gram matrix of the b_j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.tensors import ExplicitTensor, SymmetricTensor, rank_one_sum

Floats = NDArray[np.float64]

# A step larger than this share of the longest component is still under way; far below sampling error.
_TOLERANCE = 1e-4
_N_ITER = 20
# A loss that falls by less than this share four times in a row, at steps that do not shrink, is running away.
_STALL = 2e-3
# Weight of the ridge towards the start, in units of 1/n: entries of the whitened cumulant have variances of 24/n (all
# indices distinct) to several hundred /n (heavy tails), and components move by less than one from the start. It does
# nothing to components that the data determine, and keeps two that cancel each other from running to infinity.
_RIDGE = 1000.0
# Up to this many unknowns the normal equations are solved directly, above by conjugate gradients.
_DIRECT = 400


@dataclass(frozen=True, eq=False)
class CumulantFit:
    """``T = sum_j signs[j] * vectors[:, j]^(x4)``, approximately.

    `loss` is ||T - sum||^2 + ridge; only where the tensor does not know its norm it lacks the constant ||T||^2.
    """

    signs: Floats
    vectors: Floats = field(repr=False)
    loss: float
    n_iter: int
    converged: bool


def least_squares(
    tensor: SymmetricTensor,
    values: Floats,
    frame: Floats,
    n_samples: float,
    *,
    n_iter: int = _N_ITER,
) -> CumulantFit:
    """Fit from an orthogonal decomposition; where it does not settle, also with the sign of a weak component turned.

    The signs of the kurtoses are kept by the iteration. A weak component that took the wrong sign at the start shows
    as a fit that runs away; the turned one must then be better by more than its k parameters are worth (a BIC margin).

    Parameters
    ----------
    values, frame : (r,), (n, r)
        Eigenvalues and eigenvectors of the orthogonal decomposition.
    n_samples : float
        Sets the ridge, 1000 / n_samples.
    """
    signs, start = np.where(values < 0, -1.0, 1.0), frame * np.abs(values) ** 0.25
    ridge = _RIDGE / n_samples
    best = _gauss_newton(tensor, signs, start, ridge, n_iter)
    if best.converged or not isinstance(tensor, ExplicitTensor):
        return best
    spent = best.n_iter
    k = values.size
    entries = comb(tensor.dimension + 3, 4)
    for weak in np.argsort(np.abs(values))[:2]:
        turned = _gauss_newton(tensor, *_turn(tensor, signs, start, int(weak)), ridge, n_iter)
        spent += turned.n_iter
        if turned.loss < best.loss * (1 - k * log(entries) / entries):
            best = turned
            if best.converged:
                break
    return CumulantFit(best.signs, best.vectors, best.loss, spent, best.converged)


def direction_variances(vectors: Floats, sample: Floats, part: Floats, n_samples: float) -> Floats:
    """Sampling variance of each column of a least-squares fit, as crosstalk between outputs of unit variance, (k,).

    Along a unit vector u the third derivative of the sampled cumulant varies as that of u'y does: by
    E[((u'y)^3 - 3 u'y)^2] - E[(u'y)^3]^2, over the square of the eigenvalue. A component that claims more kurtosis
    than its direction has is part of a pair that cancels: the lesser is taken.

    Parameters
    ----------
    vectors : (r, k)
        Scaled as in `CumulantFit`: the eigenvalue is the fourth power of the norm.
    sample, part : (r, m), (m,)
        Whitened samples and their weights, as `odeco.refinement.ica_likelihood.representative` gives them.
    """
    norms = np.linalg.norm(vectors, axis=0)
    u = (vectors / norms).T @ sample
    square = u * u
    third, fourth, sixth = (square * u) @ part, (square * square) @ part, (square * square * square) @ part
    eigenvalues = np.minimum(norms**4, np.abs(fourth - 3)) + np.finfo(float).tiny
    angles = norms * np.linalg.norm(np.linalg.pinv(vectors), axis=1)  # 1 where columns are orthogonal
    return np.asarray(angles**2 * np.maximum(sixth - 6 * fourth + 9 - third**2, 1.0) / (eigenvalues**2 * n_samples))


def _gauss_newton(tensor: SymmetricTensor, signs: Floats, start: Floats, ridge: float, n_iter: int) -> CumulantFit:
    """Levenberg-Marquardt with a ridge towards the start."""
    norm = tensor.norm
    constant = 0.0 if norm is None else norm**2
    vectors, damping, step_size, stalled = start, 1e-3, np.inf, 0

    def loss_of(candidate: Floats, mapped: Floats) -> float:
        gram = candidate.T @ candidate
        fit = signs @ gram**4 @ signs - 2 * signs @ np.einsum("ij,ij->j", candidate, mapped)
        return float(constant + fit + ridge * np.sum((candidate - start) ** 2))

    mapped = tensor.power_map(vectors)
    loss = loss_of(vectors, mapped)
    slack = 1e-13 * (constant or abs(loss))
    for iteration in range(1, n_iter + 1):
        gradient = 4 * signs * (mapped - (vectors * signs) @ (vectors.T @ vectors) ** 3) - ridge * (vectors - start)
        system = _NormalMatrix(vectors, signs, ridge)
        while True:
            step = system.solve(gradient, damping)
            moved = vectors + step
            mapped_moved = tensor.power_map(moved)
            moved_loss = loss_of(moved, mapped_moved)
            if moved_loss <= loss + slack or damping > 1e6:
                break
            damping *= 4
        if moved_loss > loss + slack:  # not even a tiny step helps: rounding
            step_size = 0.0
            break
        stalled = stalled + 1 if constant and loss - moved_loss < _STALL * loss else 0
        vectors, mapped, loss = moved, mapped_moved, moved_loss
        damping = max(damping / 8, 1e-9)
        step_size = float(np.abs(step).max() / np.abs(vectors).max())
        if step_size <= _TOLERANCE or stalled == 4:
            break
    return CumulantFit(signs, vectors, loss, iteration, step_size <= _TOLERANCE)


class _NormalMatrix:
    """J'J + ridge I of the residual T - sum s_j b_j^(x4).

    Block (i, j) is 4 s_i s_j (g^3 I + 3 g^2 b_j b_i') with g = b_i'b_j, from <sym(u b_i^3), sym(v b_j^3)>.
    """

    def __init__(self, vectors: Floats, signs: Floats, ridge: float) -> None:
        gram = vectors.T @ vectors
        self.vectors, self.ridge = vectors, ridge
        self.squares = 12 * np.outer(signs, signs) * gram**2
        self.cubes = self.squares * gram / 3
        # Diagonal of the matrix, laid out as the vectors are.
        self.diagonal = np.diag(self.cubes) + np.diag(self.squares) * vectors**2 + ridge

    def solve(self, right: Floats, damping: float) -> Floats:
        """(J'J + ridge I + damping * diagonal)^-1 right."""
        if right.size > _DIRECT:
            return self._conjugate_gradients(right, damping)
        from scipy.linalg.lapack import dposv

        matrix = self._matrix.copy()
        diagonal = np.arange(right.size)
        matrix[diagonal, diagonal] += damping * self.diagonal.T.ravel()
        _, solution, failed = dposv(matrix, right.T.ravel())
        if failed:  # semidefinite to rounding
            solution = np.linalg.lstsq(matrix, right.T.ravel(), rcond=None)[0]
        return np.ascontiguousarray(solution.reshape(right.T.shape).T)

    @cached_property
    def _matrix(self) -> Floats:
        """The matrix itself, unknowns in the order of the components."""
        k, r = self.vectors.shape
        matrix = self.squares[:, None, :, None] * self.vectors[:, :, None] * self.vectors.T[:, None, None]
        axes = np.arange(k)
        matrix[:, axes, :, axes] += self.cubes
        flat = matrix.reshape(k * r, k * r)
        diagonal = np.arange(k * r)
        flat[diagonal, diagonal] += self.ridge
        return np.asarray(flat)

    def _apply(self, x: Floats, damping: float) -> Floats:
        mixed = self.vectors @ (self.squares * (x.T @ self.vectors))
        return np.asarray(x @ self.cubes + mixed + (self.ridge + damping * self.diagonal) * x)

    def _conjugate_gradients(self, right: Floats, damping: float) -> Floats:
        from scipy.sparse.linalg import LinearOperator, cg  # slow to import

        def operator(function: Callable[[Floats], Floats]) -> Any:
            matvec = lambda flat: function(flat.reshape(right.shape)).ravel()  # noqa: E731
            return LinearOperator((right.size,) * 2, matvec=matvec, dtype=np.float64)

        scale = self.diagonal * (1 + damping)
        matrix, inverse = operator(lambda x: self._apply(x, damping)), operator(lambda x: x / scale)
        # To a hundredth of a per cent of the right side.
        solution, _ = cg(matrix, right.ravel(), rtol=1e-4, maxiter=100, M=inverse)
        return np.asarray(solution.reshape(right.shape))


def _turn(tensor: ExplicitTensor, signs: Floats, vectors: Floats, which: int) -> tuple[Floats, Floats]:
    """The same components, one of them replaced by the best term of the other sign.

    It starts from the leading eigenmatrix of what the other components leave, T as an (n^2, n^2) matrix.
    """
    from scipy.linalg import eigh

    n = tensor.dimension
    others = np.delete(np.arange(signs.size), which)
    left = tensor.array - rank_one_sum(signs[others], vectors[:, others], 4)
    left = -signs[which] * left.reshape(n * n, n * n)
    largest, leading = eigh(left, subset_by_index=[n * n - 1, n * n - 1], check_finite=False)
    top = leading.reshape(n, n)
    inner_values, inner = np.linalg.eigh((top + top.T) / 2)
    u = inner[:, np.argmax(np.abs(inner_values))]
    cube = left.reshape((n,) * 4)
    for _ in range(5):  # shifted power steps
        u = cube @ u @ u @ u + abs(largest[0]) * u
        u /= np.linalg.norm(u)
    value = max(float(u @ (cube @ u @ u @ u)), 1e-3)
    turned, replaced = signs.copy(), vectors.copy()
    turned[which], replaced[:, which] = -turned[which], u * value**0.25
    return turned, replaced
