"""Word moments of a stream, in one pass: what `partial_fit` keeps.

The first documents, as many as `basis_size` whatever the chunks, fix a basis: word scale and about 2k leading
directions; everything after is sums on it. What that costs in accuracy against `fit` is the part of the true directions
that the basis misses: docs/topics.md gives figures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import StreamPlan
from odeco.models.topics.moments import WordMoments, choose_word_scale
from odeco.models.topics.policy import POLICY
from odeco.models.topics.theorem import BasisMoments
from odeco.moments import ProjectedMoments, WordFrequencies, WordPairs, WordTriples
from odeco.moments.base import Together
from odeco.moments.words import as_basis
from odeco.sources import Batch, as_source, weigh_by_length
from odeco.sources.rows import COUNTS
from odeco.tensors import multilinear
from odeco.whitening import Whitener
from odeco.whitening.noise import pair_noise
from odeco.whitening.randomized import word_range
from odeco.whitening.whitener import check_spectrum


class StreamedWords(Together):
    """Word frequencies, and moments on a basis; documents are weighed by length, `half_length` as in `weigh_by_length`.

    `noise` is that of the pairs of one document: that of n is smaller by sqrt(n).
    """

    _parts: ClassVar[tuple[str, ...]] = ("frequencies", "pairs", "triples")
    _on: ClassVar[tuple[str, ...]] = ("basis", "noise", "half_length")

    def __init__(self, basis: NDArray[np.floating], noise: float, half_length: float) -> None:
        shared = as_basis(basis)
        self.frequencies = WordFrequencies(shared.shape[0])
        self.pairs, self.triples = WordPairs(shared), WordTriples(shared)
        self.noise, self.half_length = noise, half_length

    @property
    def basis(self) -> NDArray[np.floating]:
        """(d, r)"""
        return self.pairs.basis

    def update(self, batch: Batch) -> Self:
        """Add the documents of a batch."""
        weighed = weigh_by_length(self.half_length)(batch)
        self.frequencies.update(batch)
        self.pairs.update(weighed)
        self.triples.update(weighed)
        return self

    def read(self, n_components: int) -> WordMoments:
        """The moments of all documents so far."""
        noise = self.noise / float(np.sqrt(max(self.frequencies.n_at_least[1], 1)))
        basis = _whiten_basis(self.pairs, self.triples, n_components)
        return WordMoments(replace(basis, suggested_components=int(np.count_nonzero(basis.spectrum > noise))), noise)


def word_plan(
    n_components: int, word_scale: float | None, basis_size: int, half_length: float = POLICY.half_length
) -> StreamPlan[Batch, StreamedWords]:
    """How topic models take documents in chunks."""

    def learn(first: Batch, rng: np.random.Generator) -> StreamedWords:
        weighed = weigh_by_length(half_length)(first)
        scale = choose_word_scale(weighed, n_components, rng) if word_scale is None else word_scale
        source: Any = as_source([(weighed.counts, weighed.row_weights())])
        found = word_range(source, n_components, word_scale=scale, random_state=rng)
        width = min(POLICY.slack * n_components, len(found.spectrum))
        noise = pair_noise(weighed, found.scale, found.directions(n_components), 1)
        return StreamedWords(found.basis(width).astype(np.float32), noise, half_length)

    return StreamPlan(COUNTS, basis_size, learn)


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
