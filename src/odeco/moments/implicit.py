"""The third moment of words as an implicit tensor: contractions over all documents, no k^3 per document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.kernels.alignment import in_lines, whole_lines
from odeco.moments.scatter import CsrParts, ScatterSum
from odeco.moments.words import as_basis, column_sums, require_documents, tuple_weights
from odeco.sources import Source, require_passes
from odeco.tensors import SymmetricTensor

Floats = NDArray[np.floating]

# Documents per product: (m, k) blocks of a few MB.
_ROWS = 8192


class ImplicitTriples(SymmetricTensor):
    """``E[x1 (x) x2 (x) x3](W, W, W)`` known by its contractions (section 6.1.2 of the paper).

    One contraction with r vectors costs 4 n k r operations, against about n k^3 / 2 once for the tensor itself
    (`WordTriples`). For many documents and many components: decompose the tensor of some documents, and finish with a
    few power maps over all of them.

    Parameters
    ----------
    source : Source
        Counts; read once here, and once per contraction where the projected documents do not fit.
    basis : (d, k) array
        W; its dtype is that of the work.
    most_bytes : int
        Memory for keeping the projected documents ``C W``.
    """

    def __init__(self, source: Source, basis: ArrayLike, *, most_bytes: int = 2**30) -> None:
        self.order = 3
        self.basis: Floats = as_basis(basis)
        self.dimension = self.basis.shape[1]
        self._source = source
        self._diagonal = np.zeros(self.basis.shape[0])
        self._weight = 0.0
        self._kept: list[tuple[Floats, Floats]] | None = []
        sums = ScatterSum((self.basis.shape[0], self.dimension), self.basis.dtype)
        room = most_bytes
        for parts, scaled, weight in self._read():
            projected = self._project(parts, scaled, sums)
            self._diagonal += column_sums(parts, scaled, self.basis.shape[0])
            self._weight += weight
            room -= projected.nbytes
            if room < 0:
                require_passes(source, 2)
                self._kept = None
            if self._kept is not None:
                self._kept.append((projected, scaled.astype(self.basis.dtype)))
        require_documents(self._weight, order=3)
        self._mixed = sums.total

    def power_map(self, vectors: Floats) -> NDArray[np.float64]:
        """``T(I, v, v)`` for every column v of a (k, r) array."""
        from odeco.kernels.products import tall_inner, tall_product

        columns = np.asarray(vectors, dtype=self.basis.dtype)
        out = np.zeros(columns.shape)
        for projected, weights in self._blocks():
            inner = tall_product(projected, columns)
            inner *= inner
            inner *= weights[:, None]
            out += tall_inner(projected, inner)
        basis, exact = self.basis.astype(np.float64, copy=False), np.asarray(vectors, dtype=np.float64)
        inner, mixed = tall_product(basis, exact), tall_product(self._mixed, exact)
        out += tall_inner(basis, 2 * inner * (self._diagonal[:, None] * inner - mixed))
        out -= tall_inner(self._mixed, inner * inner)
        return out / self._weight

    def matrix(self, vector: Floats) -> NDArray[np.float64]:
        """``T(I, I, u)``."""
        direction = np.asarray(vector, dtype=self.basis.dtype)
        out = np.zeros((self.dimension, self.dimension))
        for projected, weights in self._blocks():
            out += (projected.T * (weights * (projected @ direction))) @ projected
        basis, exact = self.basis.astype(np.float64, copy=False), np.asarray(vector, dtype=np.float64)
        inner, mixed = basis @ exact, self._mixed @ exact
        cross = (basis.T * inner) @ self._mixed
        out += (basis.T * (2 * self._diagonal * inner - mixed)) @ basis - cross - cross.T
        return out / self._weight

    def _read(self) -> Iterator[tuple[CsrParts, NDArray[np.float64], float]]:
        """Batches as kernels want them, with the weights of their documents over the numbers of triples."""
        for batch in self._source:
            weights, scaled = tuple_weights(batch, 3)
            yield CsrParts.of(batch, self.basis.dtype), scaled, float(weights.sum())

    def _project(self, parts: CsrParts, weights: NDArray[np.float64], sums: ScatterSum | None = None) -> Floats:
        """``C W`` of a batch; adds ``C^T (weights * C W)`` to ``sums`` on the way."""
        from odeco.kernels.sparse import project_rows, scatter_rows
        from odeco.kernels.threads import balanced_parts, map_parts, thread_count

        out = np.empty((len(weights), self.dimension), dtype=self.basis.dtype)
        rows = weights.astype(self.basis.dtype)
        csr, basis = (parts.indptr, parts.columns, parts.values), whole_lines(in_lines(self.basis))
        if sums is None:
            bounds = balanced_parts(parts.indptr, thread_count()).tolist()
            spans = list(pairwise(bounds))
            map_parts(lambda t: project_rows(*csr, basis, *spans[t], out[slice(*spans[t])]), len(spans))
            return out

        def work(_: int, start: int, stop: int, copy: Floats) -> None:
            project_rows(*csr, basis, start, stop, out[start:stop])
            scatter_rows(*csr, rows, out[start:stop], start, stop, copy)

        sums.scatter(parts, work)
        return out

    def _blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Projected documents and their weights, from memory or from the source."""
        if self._kept is not None:
            batches: Iterator[tuple[Floats, Floats]] = iter(self._kept)
        else:
            batches = (
                (self._project(parts, scaled), scaled.astype(self.basis.dtype)) for parts, scaled, _ in self._read()
            )
        for projected, weights in batches:
            for start in range(0, len(weights), _ROWS):
                yield projected[start : start + _ROWS], weights[start : start + _ROWS]
