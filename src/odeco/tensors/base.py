"""What a symmetric tensor must be able to do: contract with vectors, and nothing more."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from odeco.tensors.algebra import Floats


class SymmetricTensor(ABC):
    """A symmetric tensor of order 3 or 4 known by its contractions only.

    A subclass sets `order` and `dimension` and implements `power_map`. The other contractions are derived from it by
    polarization; a subclass that can do better overrides them.
    """

    order: int
    dimension: int

    @abstractmethod
    def power_map(self, vectors: Floats) -> Floats:
        """T(I, v, ..., v) for every column v: (n, r) to (n, r). The map of section 4.2.1."""

    @property
    def norm(self) -> float | None:
        """The Frobenius norm, or None where it is not known."""
        return None

    def values(self, vectors: Floats) -> Floats:
        """T(v, ..., v) for every column v."""
        return np.asarray(np.einsum("ij,ij->j", vectors, self.power_map(vectors)))

    def matrix(self, vector: Floats) -> Floats:
        """T(I, I, u) at order 3, T(I, I, u, u) at order 4, as an (n, n) matrix.

        With f(x) = T(I, x, .., x): T(I, a, u) = (f(a + u) - f(a - u)) / 4 and
        T(I, a, u, u) = (f(u + a) - f(u - a) - 2 f(a)) / 6, for all unit vectors a at once.
        """
        identity = np.eye(self.dimension)
        u = vector[:, None]
        if self.order == 3:
            result = (self.power_map(identity + u) - self.power_map(identity - u)) / 4
        else:
            result = (self.power_map(u + identity) - self.power_map(u - identity) - 2 * self.power_map(identity)) / 6
        return np.asarray((result + result.T) / 2)

    def random_slice(self, rng: np.random.Generator) -> Floats:
        """T(I, I, eta) for a random eta; at order 4 T(I, I, M) for a random symmetric M of rank two.

        M must be indefinite: then v_i' M v_i is spread over both signs and the slice separates the components.
        """
        if self.order == 3:
            return self.matrix(rng.standard_normal(self.dimension))
        first, second = rng.standard_normal((2, self.dimension))
        return self.matrix(first) - self.matrix(second)

    def through(self, matrix: Floats) -> SymmetricTensor:
        """The multilinear map T(W, .., W) for W of shape (n, m), a tensor of dimension m."""
        return Mapped(self, matrix)


class Mapped(SymmetricTensor):
    """T(W, .., W), never formed: every contraction is one of T."""

    def __init__(self, tensor: SymmetricTensor, matrix: Floats) -> None:
        self.tensor, self.map = tensor, matrix
        self.order, self.dimension = tensor.order, matrix.shape[1]

    def power_map(self, vectors: Floats) -> Floats:
        return np.asarray(self.map.T @ self.tensor.power_map(self.map @ vectors))

    def matrix(self, vector: Floats) -> Floats:
        return np.asarray(self.map.T @ self.tensor.matrix(self.map @ vector) @ self.map)
