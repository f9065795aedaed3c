"""Explicit symmetric arrays with the contractions that BLAS-3 does well."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from odeco.tensors.algebra import Floats, multilinear
from odeco.tensors.base import SymmetricTensor
from odeco.tensors.packed import PackedTensor


class ExplicitTensor(SymmetricTensor):
    """A symmetric array of order 3 or 4. The array is referred to, never changed; it is assumed to be symmetric."""

    def __init__(self, array: Floats) -> None:
        self.array = array
        self.order = array.ndim
        self.dimension = array.shape[0]

    @cached_property
    def scale(self) -> float:
        """The largest magnitude of an entry: what the packed forms are divided by, so that squares stay in range."""
        return max(float(self.array.max()), -float(self.array.min())) or 1.0

    def packed(self, dtype: Any) -> PackedTensor:
        """A packed copy in the given precision."""
        return PackedTensor(self.array, self.scale, dtype)

    @cached_property
    def _packed(self) -> PackedTensor:
        return self.packed(np.float64)

    def power_map(self, vectors: Floats) -> Floats:
        return np.asarray(self.scale * self._packed.power_map(vectors))

    @cached_property
    def gram(self) -> Floats:
        """T1 T1' / scale^2 for the flattening T1; its eigenvectors are the left singular vectors of T1."""
        return self._packed.gram()

    @property
    def norm(self) -> float:
        return self.scale * float(np.sqrt(np.trace(self.gram)))

    def matrix(self, vector: Floats) -> Floats:
        result = self.array
        for _ in range(self.order - 2):
            result = result @ vector
        return np.asarray(result)

    def matrices(self, vectors: Floats) -> Floats:
        """T(I, I, v) or T(I, I, v, v) for every column v, stacked: (r, n, n)."""
        n, r = vectors.shape
        rows = vectors if self.order == 3 else (vectors[:, None, :] * vectors).reshape(n * n, r)
        return np.ascontiguousarray((self.array.reshape(n * n, -1) @ rows).T).reshape(r, n, n)

    def random_slice(self, rng: np.random.Generator) -> Floats:
        if self.order == 3:
            return self.matrix(rng.standard_normal(self.dimension))
        n = self.dimension
        square = rng.standard_normal((n, n))
        symmetric = (square + square.T).ravel()
        return np.asarray(self.array.reshape(n * n, n * n) @ symmetric).reshape(n, n)

    def through(self, matrix: Floats) -> ExplicitTensor:
        return ExplicitTensor(np.ascontiguousarray(multilinear(self.array, *([matrix] * self.order))))
