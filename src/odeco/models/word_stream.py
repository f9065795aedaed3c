"""Word moments of a stream, in one pass: what `partial_fit` keeps.

The first documents, as many as `basis_size` whatever the chunks, fix a basis: word scale and about 2k leading
directions. From then on all that is kept are sums on that basis, the first documents included: memory does not depend
on the number of documents, and the result not on the chunks. What it costs in accuracy against `fit` is the part of the
true directions that the basis misses: docs/topics.md gives figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odeco.models.topics import BasisMoments
from odeco.models.word_moments import choose_word_scale
from odeco.moments import ProjectedMoments, WordFrequencies, WordPairs, WordTriples
from odeco.moments.words import as_basis
from odeco.sources import Batch, as_source, weigh_by_length
from odeco.sources.arrays import join_batches, row_slice
from odeco.tensors import multilinear
from odeco.whitening import Whitener
from odeco.whitening.noise import pair_noise
from odeco.whitening.randomized import word_range
from odeco.whitening.whitener import check_spectrum

_SLACK = 2  # directions of the basis per component
# Documents handled at a time once the basis is known: sums over fixed blocks do not depend on the chunks.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class _Sums:
    """Moments on a basis, and the noise of the pairs of one document: that of n is smaller by sqrt(n)."""

    pairs: WordPairs
    triples: WordTriples
    noise: float

    def add(self, batch: Batch) -> None:
        self.pairs.update(batch)
        self.triples.update(batch)

    def copy(self) -> _Sums:
        pairs, triples = WordPairs(self.pairs.basis), WordTriples(self.triples.basis)
        return _Sums(pairs.merge(self.pairs), triples.merge(self.triples), self.noise)


class WordStream:
    """Sums over a stream of documents on a basis learned from the first of them."""

    def __init__(
        self, n_features: int, n_components: int, *, word_scale: float | None, basis_size: int, seed: int
    ) -> None:
        self.n_features = n_features
        self.n_components = n_components
        self.word_scale = word_scale
        self.basis_size = basis_size
        self.frequencies = WordFrequencies(n_features)
        self._seed = seed
        self._waiting: list[Batch] = []
        self._held = 0
        self._sums: _Sums | None = None

    @property
    def n_documents(self) -> int:
        """Documents seen."""
        return self.frequencies.n

    def update(self, batch: Batch) -> None:
        """Add the documents of a batch."""
        self.frequencies.update(batch)
        weighed = weigh_by_length()(batch)
        # A copy: the caller may reuse his arrays before the block is full.
        self._waiting.append(Batch(weighed.counts.copy(), weighed.lengths.copy(), weighed.row_weights().copy()))
        self._held += len(batch)
        if self._sums is None and self._held >= self.basis_size:
            first = self._take(self.basis_size)
            self._sums = self._start(first)
            self._sums.add(first)
        while self._sums is not None and self._held >= _BLOCK:
            self._sums.add(self._take(_BLOCK))

    def settle(self) -> None:
        """Fix the basis, on what there is if need be, and count what waits: no documents are held any more."""
        if not self._waiting:
            return
        waiting = join_batches(self._waiting)
        if self._sums is None:
            self._sums = self._start(waiting)
        self._sums.add(waiting)
        self._waiting, self._held = [], 0

    def emptied(self) -> WordStream:
        """A stream on the same basis without any documents."""
        self.settle()
        if self._sums is None:
            raise ValueError("no documents have been seen yet.")
        empty = WordStream(
            self.n_features, self.n_components, word_scale=self.word_scale, basis_size=self.basis_size, seed=self._seed
        )
        basis = self._sums.pairs.basis
        empty._sums = _Sums(WordPairs(basis), WordTriples(basis), self._sums.noise)
        return empty

    def merge(self, other: WordStream) -> None:
        """Add the documents of a stream on the same basis."""
        self.settle()
        other.settle()
        if self._sums is None or other._sums is None:
            raise ValueError("streams without a basis cannot be merged: make one from a sample first.")
        self._sums.pairs.merge(other._sums.pairs)
        self._sums.triples.merge(other._sums.triples)
        self.frequencies.merge(other.frequencies)

    def _take(self, size: int) -> Batch:
        """The first `size` waiting documents as one batch; the rest keep waiting."""
        whole = join_batches(self._waiting)
        self._held -= size
        self._waiting = [slice_batch(whole, size, len(whole))] if self._held else []
        return slice_batch(whole, 0, size)

    def read(self) -> tuple[BasisMoments, float]:
        """The moments of all documents seen so far, and the noise of the pairs; more may follow."""
        waiting = join_batches(self._waiting) if self._waiting else None
        if self._sums is None:
            if waiting is None:
                raise ValueError("no documents have been seen yet.")
            sums = self._start(waiting)
        else:
            sums = self._sums.copy()  # what waits for its block to fill is counted here and again when it is full
        if waiting is not None:
            sums.add(waiting)
        noise = sums.noise / float(np.sqrt(max(self.frequencies.n_at_least[1], 1)))
        basis = _whiten_basis(sums.pairs, sums.triples, self.n_components)
        return replace(basis, suggested_components=int(np.count_nonzero(basis.spectrum > noise))), noise

    def _start(self, first: Batch) -> _Sums:
        source = as_source([(first.counts, first.row_weights())])
        rng = np.random.default_rng(self._seed)
        scale = choose_word_scale(first, self.n_components, rng) if self.word_scale is None else self.word_scale
        found = word_range(source, self.n_components, word_scale=scale, random_state=rng)
        width = min(_SLACK * self.n_components, len(found.spectrum))
        basis = as_basis(found.basis(width).astype(np.float32))  # one for both
        noise = pair_noise(first, found.scale, found.directions(self.n_components), 1)
        return _Sums(WordPairs(basis), WordTriples(basis), noise)


def _whiten_basis(pairs: WordPairs, triples: WordTriples, k: int) -> BasisMoments:
    """Whiten the k leading directions inside the basis R: with R'M2R = Q D Q', W = R Q D^(-1/2), lifted by M2 W."""
    values, vectors = np.linalg.eigh(triples.pairs)
    spectrum = values[::-1].copy()
    check_spectrum(spectrum, k, tolerance=10 * float(np.finfo(np.float32).eps), allow_indefinite=True)
    inner = vectors[:, ::-1][:, :k] / np.sqrt(spectrum[:k])
    whitener = Whitener(triples.basis @ inner, pairs.product @ inner, spectrum)
    moments = ProjectedMoments(
        inner.T @ triples.first,
        inner.T @ triples.pairs @ inner,
        np.asarray(multilinear(triples.triples, inner, inner, inner)),
    )
    return BasisMoments(whitener, moments, spectrum, n_passes=1)


def slice_batch(batch: Batch, start: int, stop: int) -> Batch:
    """Documents start to stop of a batch."""
    weights = None if batch.weights is None else batch.weights[start:stop]
    return Batch(row_slice(batch.counts, start, stop), batch.lengths[start:stop], weights)
