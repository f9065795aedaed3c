"""Implicit symmetric tensors: sums of rank-one terms and differences, known by their contractions."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from odeco.tensors.algebra import Floats
from odeco.tensors.base import SymmetricTensor

# Up to this many terms the norm of a sum is worth its m x m Gram matrix.
_NORM_TERMS = 4096


class RankOneSum(SymmetricTensor):
    """sum_j weights[j] * vectors[:, j]^(x p), never formed: contractions cost 4 n m for m terms.

    The empirical moment of m samples is of this kind.
    """

    def __init__(self, weights: Floats, vectors: Floats, order: int = 3) -> None:
        self.weights = np.asarray(weights, dtype=float)
        self.vectors = np.asarray(vectors, dtype=float)
        if self.vectors.ndim != 2 or self.weights.shape != self.vectors.shape[1:]:
            raise ValueError(
                f"vectors must be (n, m) with one weight for each of m columns, got shapes {self.vectors.shape} and "
                f"{self.weights.shape}."
            )
        self.order = order
        self.dimension = self.vectors.shape[0]

    def power_map(self, vectors: Floats) -> Floats:
        inner = self.vectors.T @ vectors
        return self.vectors @ (self.weights[:, None] * inner ** (self.order - 1))

    def matrix(self, vector: Floats) -> Floats:
        scaled = self.vectors * (self.weights * (vector @ self.vectors) ** (self.order - 2))
        return np.asarray(scaled @ self.vectors.T)

    @cached_property
    def norm(self) -> float | None:
        """From the m x m Gram matrix of the terms; None where that matrix would be large."""
        if self.weights.size > _NORM_TERMS:
            return None
        gram = self.vectors.T @ self.vectors
        squared = float(self.weights @ (gram**self.order) @ self.weights)
        return float(np.sqrt(max(squared, 0.0)))


class Deflated(SymmetricTensor):
    """T - sum_j lambda_j v_j^(x p): the deflated tensor of Algorithm 1, without touching T."""

    def __init__(self, tensor: SymmetricTensor) -> None:
        self.tensor = tensor
        self.order = tensor.order
        self.dimension = tensor.dimension
        self.removed = RankOneSum(np.empty(0), np.empty((tensor.dimension, 0)), tensor.order)

    def remove(self, eigenvalue: float, eigenvector: Floats) -> None:
        """Subtract one more term."""
        self.removed = RankOneSum(
            np.append(self.removed.weights, eigenvalue),
            np.column_stack([self.removed.vectors, eigenvector]),
            self.order,
        )

    def power_map(self, vectors: Floats) -> Floats:
        return self.tensor.power_map(vectors) - self.removed.power_map(vectors)

    def matrix(self, vector: Floats) -> Floats:
        return self.tensor.matrix(vector) - self.removed.matrix(vector)

    @property
    def norm(self) -> float | None:
        """From ||T||^2 - 2 sum_j lambda_j T(v_j, .., v_j) + ||removed||^2."""
        whole, removed = self.tensor.norm, self.removed.norm
        if whole is None or removed is None:
            return None
        cross = float(self.removed.weights @ self.tensor.values(self.removed.vectors)) if removed else 0.0
        squared = whole**2 - 2 * cross + removed**2
        return float(np.sqrt(max(squared, 0.0)))
