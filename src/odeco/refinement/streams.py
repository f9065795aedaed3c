"""Passes over batches of documents: the topics improve from batch to batch, not from pass to pass.

The word counts of a pass are added up as it goes, and take the place of those of the pass before: every batch sees
topics that all batches before it have improved, and at the end all documents count the same. The proportions of the
documents are remembered where they fit; where not, each is inferred anew in every pass, and memory does not grow with
their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.documents import Documents, Workspace, pad_topics
from odeco.refinement.watch import inverse_totals
from odeco.sources import Batch

Floats = NDArray[np.floating]

# Steps for the proportions of a document: cheap ones of EM that find its topics, then those of CVB0 that leave its own
# counts out. EM settles short documents too early; too few steps of either leave all documents too flat, which biases
# the topics. Documents that are remembered go on from where they were.
_FIRST_STEPS, _LATER_STEPS, _FORGOTTEN_STEPS = (3, 3), (2, 2), (4, 6)
_FEWEST_BATCHES, _MOST_BATCHES = 4, 64
# Nonzeros of a batch per word of the vocabulary: with fewer, handling the topics takes longer than the documents.
_NONZEROS_PER_WORD = 8, 64


class StridedBatches:
    """Rows b, b + B, b + 2B, ... of a matrix for b = 0, ..., B - 1: whatever the order of the rows, batches are alike.

    B is about 8 for a small corpus; it grows with the corpus, and where batches would not fit the memory budget.
    """

    def __init__(self, documents: Batch, width: int, memory_budget: int) -> None:
        counts = documents.counts
        n_documents, n_words = counts.shape
        few, many = (counts.nnz // (share * max(n_words, 1)) for share in _NONZEROS_PER_WORD)
        by_size = min(max(min(few, 8), many, _FEWEST_BATCHES), _MOST_BATCHES)
        by_memory = 8 * n_documents * width // max(memory_budget, 1) + 1
        self._all, self.n_batches = documents, int(min(max(by_size, by_memory), max(n_documents, 1)))

    def __iter__(self) -> Iterator[Batch]:
        for first in range(self.n_batches):
            yield self._all.take(slice(first, None, self.n_batches))


class HeldBack:
    """Batches without some rows of the first."""

    def __init__(self, batches: Iterable[Batch], rows: NDArray[np.bool_]) -> None:
        self._batches, self._rows = batches, rows

    def __iter__(self) -> Iterator[Batch]:
        for index, batch in enumerate(self._batches):
            yield batch.take(~self._rows) if index == 0 and self._rows.any() else batch


class StreamedSweeps:
    """Word counts by passes over batches, with or without a memory of their documents."""

    def __init__(
        self, batches: Iterable[Batch], start: Floats, alpha: Floats, method: str, workspace: Workspace,
        *, remember: bool,
    ) -> None:  # fmt: skip
        self._batches, self._alpha, self._method, self._remember = batches, alpha, method, remember
        self._workspace = workspace
        self._documents: list[Documents] = []
        first = next(iter(batches))
        self._n_tokens = 0.0  # of a whole pass, once one has been made
        weight = max(float(first.row_weights() @ first.lengths), 1.0)  # as much as the first batch
        self._start = pad_topics(weight / len(start) * mixed_start(start, first), np.float32)

    def sweep(self, word_counts: Floats, eta: float, *, echo: bool) -> Floats:
        """Word counts (d, width) of one pass over all batches, from those of the pass before."""
        total, read = self._n_tokens, 0.0
        fresh = np.zeros_like(self._start)
        for index, documents in enumerate(self._read()):
            # Of the old counts as much is left as there is still to read. In the first pass there are none: the start
            # counts as one batch of data and fades as they come in.
            share = np.float32(max(1.0 - read / total, 0.0) if total else 0.0)
            base = fresh + (share * word_counts if total else self._start / np.float32(index + 1))
            fresh = fresh + self._infer(documents, base, eta, share, echo)
            read += documents.n_tokens
        self._n_tokens = read
        return fresh

    def _read(self) -> Iterator[Documents]:
        """Documents batch by batch: those of the pass before where they are remembered."""
        if self._documents:
            yield from self._documents
            return
        for batch in self._batches:
            documents = Documents(batch.counts, self._alpha.size, np.float32, self._workspace, batch.weights)
            if self._remember:
                self._documents.append(documents)
            yield documents

    def _infer(self, documents: Documents, base: Floats, eta: float, share: np.float32, echo: bool) -> Floats:
        """Word counts of documents; the base has this share of their own counts in it already."""
        inverse = inverse_totals(base, eta)
        topics = (base + base.dtype.type(eta)) * inverse
        n_em, n_cvb0 = _FORGOTTEN_STEPS
        if self._remember:
            n_em, n_cvb0 = _LATER_STEPS if self._n_tokens else _FIRST_STEPS
        if self._method != "cvb0":
            return documents.em(topics, self._alpha, n_em + n_cvb0, variational=self._method == "vb")[0]
        return documents.cvb0(topics, share * inverse, self._alpha, n_cvb0, echo=echo, n_em=n_em)

    def add(self, word_counts: Floats, eta: float, batch: Batch, *, echo: bool) -> Floats:
        """The word counts with those of further documents."""
        documents = Documents(batch.counts, self._alpha.size, np.float32, self._workspace, batch.weights)
        return word_counts + self._infer(documents, word_counts, eta, np.float32(0), echo)


def mixed_start(topics: Floats, batch: Batch, share: float = 0.3) -> Floats:
    """Topics with a share of the word frequencies mixed in: removes the zeros that clipping left."""
    frequencies = np.asarray(batch.row_weights() @ batch.counts, dtype=np.float64) + 1e-2
    return np.asarray((1 - share) * topics + share * frequencies / frequencies.sum())
