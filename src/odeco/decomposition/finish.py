"""From unit vectors to a finished, checked Decomposition: the same for every method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odeco.decomposition.rank import NOISE_CONTRACTION, noise_level, noise_threshold
from odeco.decomposition.result import Certificate, Decomposition, Status, StatusCode
from odeco.tensors import ExplicitTensor, SymmetricTensor
from odeco.tensors.algebra import Floats

# Below this relative size the squared residual has lost its digits to cancellation and is summed entry by entry.
_CANCELLATION = 1e-8
# Rounding of a sum of squares that adds up to 1.
_ROUNDING = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Found:
    """What a method hands over: unit columns, the iterations spent, and how it ended.

    `values` are the eigenvalues of a method that has its own: the deflated tensor's, for the power methods. The others
    are read off the tensor. `mapped` is T(I, v, .., v) where the method knows it already.
    """

    vectors: Floats
    n_iter: int
    status: Status
    values: Floats | None = None
    mapped: Floats | None = None


CONVERGED = Status(StatusCode.CONVERGED)


def finish(tensor: SymmetricTensor, found: Found, method: str, *, keep_order: bool) -> Decomposition:
    """Read eigenvalues off, fix signs, measure residual and certificate, and settle the status."""
    vectors = found.vectors
    mapped = tensor.power_map(vectors) if found.mapped is None else found.mapped
    values = np.einsum("ij,ij->j", vectors, mapped) if found.values is None else found.values
    if tensor.order == 3:  # -lambda v^(x3) = lambda (-v)^(x3); the map itself is even in v
        signs = np.where(values < 0, -1.0, 1.0)
        vectors, values = vectors * signs, values * signs
    residual = relative_residual(tensor, vectors, values, mapped)
    certificate = _certify(tensor, vectors, values, mapped)
    status = _settle(tensor, found.status, values, residual, certificate)
    result = Decomposition(values, vectors, residual, found.n_iter, status, certificate, method, tensor.order)
    return result if keep_order else result.sorted()


def relative_residual(tensor: SymmetricTensor, vectors: Floats, values: Floats, mapped: Floats) -> float:
    """||T - sum lambda v^(x p)|| / ||T|| from ||T||^2 - 2 sum lambda T(v, .., v) + lambda' (V'V)^(o p) lambda."""
    norm = tensor.norm
    if norm is None:
        return float("nan")
    if norm == 0.0:
        return 0.0
    relative = values / norm
    overlap = float(relative @ ((vectors.T @ vectors) ** tensor.order) @ relative)
    squared = 1.0 - 2.0 * float(relative @ np.einsum("ij,ij->j", vectors, mapped / norm)) + overlap
    if squared < _CANCELLATION and isinstance(tensor, ExplicitTensor):
        return _summed_residual(tensor.array, vectors, values, norm)
    return float(np.sqrt(max(squared, 0.0)))


def _summed_residual(array: Floats, vectors: Floats, values: Floats, norm: float) -> float:
    """||T - sum|| / norm, one leading slice at a time so that no second tensor is formed."""
    n = array.shape[0]
    left = vectors if array.ndim == 3 else (vectors[:, None, :] * vectors).reshape(n * n, -1)
    total = 0.0
    for i in range(n):
        part = (left * (values * vectors[i])) @ vectors.T
        total += float(np.sum(((array[i].reshape(part.shape) - part) / norm) ** 2))
    return float(np.sqrt(total))


def _certify(tensor: SymmetricTensor, vectors: Floats, values: Floats, mapped: Floats) -> Certificate:
    magnitude = np.abs(values)
    unit = float(magnitude.max(initial=0.0)) or 1.0  # squares of what is divided by it stay in range
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.linalg.norm((mapped - values * vectors) / unit, axis=0) / (magnitude / unit)
    residuals = np.where(magnitude == 0, np.inf, residuals)
    if not isinstance(tensor, ExplicitTensor):
        return Certificate(residuals, np.full(values.size, np.nan))
    steps = tensor.order - 1
    contraction = np.full(values.size, np.inf)
    undecided = magnitude > 0
    if tensor.order == 3:
        # ||P S P||_F^2 = ||S||_F^2 - 2 ||S v||^2 + (v'S v)^2 with S = T(I,I,v), and ||S||_F^2 = v' (T1 T1') v.
        scaled = mapped / tensor.scale
        attained = np.einsum("ij,ij->j", vectors, scaled)
        inner = np.einsum("ij,ij->j", vectors, tensor.gram @ vectors)
        squared = np.maximum(inner - 2 * np.sum(scaled**2, axis=0) + attained**2, 0.0)
        squared += _ROUNDING * np.trace(tensor.gram)  # what cancellation may hide: weak columns are left undecided
        contraction[undecided] = steps * np.sqrt(squared[undecided]) / (magnitude[undecided] / tensor.scale)
        undecided &= contraction >= NOISE_CONTRACTION
    for j in np.flatnonzero(undecided):
        contraction[j] = steps * _tangent_norm(tensor.matrix(vectors[:, j]), vectors[:, j]) / magnitude[j]
    return Certificate(residuals, contraction)


def _tangent_norm(matrix: Floats, vector: Floats) -> float:
    """The spectral norm of P S P, P = I - v v'."""
    mapped = matrix @ vector
    value = float(vector @ mapped)
    tangent = matrix - np.outer(vector, mapped) - np.outer(mapped, vector) + value * np.outer(vector, vector)
    extremes = np.linalg.eigvalsh(tangent)[[0, -1]]
    return float(np.abs(extremes).max())


def _settle(
    tensor: SymmetricTensor, status: Status, values: Floats, residual: float, certificate: Certificate
) -> Status:
    """The first that holds: components within the noise, the method's own complaint, a failed certificate.

    A low eigenvalue points to the rank only while the other components are sound; otherwise the method failed.
    """
    norm = tensor.norm
    # Columns without a direction of their own do not settle: that is a symptom, the rank is the cause.
    if norm is not None and status.code in (StatusCode.CONVERGED, StatusCode.NOT_CONVERGED):
        sigma = noise_level(residual * norm, norm, tensor.dimension, values.size, tensor.order)
        threshold = noise_threshold(sigma, tensor.dimension, tensor.order)
        # A strong component that was not asked for adds to the residual; the certificate does not see it.
        sound = certificate.accepted & ~(certificate.contraction >= NOISE_CONTRACTION)
        within = (np.abs(values) <= threshold) & ~sound
        if within.any() and certificate.accepted[~within].all():
            low = int(np.count_nonzero(within))
            return Status(
                StatusCode.RANK_DEFICIENT,
                f"{low} of {values.size} eigenvalues are within the noise (at most {threshold:.3g}, the largest value "
                f"that a tensor of pure noise of this size shows).",
                f"Ask for rank {values.size - low} or use rank=None; more samples lower the noise."
                if low < values.size
                else "No component stands out: use method='auto' if another was used; more samples lower the noise.",
            )
    if not status.ok:
        return status
    failed = np.flatnonzero(~certificate.accepted)
    if failed.size:
        return Status(
            StatusCode.UNCERTIFIED,
            f"{failed.size} of {values.size} components (first: number {failed[0]}) are not robust eigenvectors "
            "of this tensor.",
            "Treat them as guesses: use method='auto' if another was used, lower the rank, or reduce the noise.",
        )
    return status
