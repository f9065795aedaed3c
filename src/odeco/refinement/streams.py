"""Passes over batches of documents: the topics improve from batch to batch, not from pass to pass.

The word counts of a pass are added up as it goes, and take the place of those of the pass before: every batch sees
topics that all batches before it have improved, and at the end all documents count the same. The proportions of the
documents are remembered where they fit; where not, each is inferred anew in every pass, and memory does not grow with
their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.moments.base import Additive, Packable
from odeco.refinement.documents import Documents, Workspace, pad_topics
from odeco.refinement.topic_rows import mixed_topics, smoothed_topics
from odeco.sources import Batch
from odeco.sources.arrays import join_batches
from odeco.sources.chunks import join_weights
from odeco.sources.partitions import PartitionedCounts

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


class Windows:
    """Batches of documents that stay elsewhere: sources of as many rows, whatever the partitions, without some rows of
    the first.
    """

    def __init__(self, source: PartitionedCounts, held_out: NDArray[np.bool_]) -> None:
        self._source, self._held_out = source, held_out

    def __iter__(self) -> Iterator[PartitionedCounts]:
        for index, window in enumerate(self._source.windows(self._source.batch_size)):
            yield self._source.only(np.flatnonzero(~self._held_out)) if index == 0 else window


class FirstWindow:
    """The first documents of a source elsewhere, as far as a refinement looks at documents itself."""

    def __init__(self, source: PartitionedCounts) -> None:
        self._source = source
        self._n = source.n_first(source.batch_size)
        found = source.only(np.arange(self._n)).map(_without_words).collect()
        self.lengths = np.concatenate([batch.lengths for batch in found])
        self.weights = join_weights(found)

    def __len__(self) -> int:
        return self._n

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Batch:
        """Some of them, brought here."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        order = np.unique(places).astype(np.intp)
        whole = join_batches(self._source.only(order).collect())
        return whole.take(np.searchsorted(order, places))


def _without_words(batch: Batch) -> Batch:
    return Batch(sparse.csr_array(batch.counts.shape, dtype=np.float32), batch.lengths, batch.weights)


class WordCounts(Additive):
    """The E step at topics that do not change: expected word counts of documents, wherever they are."""

    _sums = ("counts", "n_tokens")

    def __init__(self, infer: Inference) -> None:
        self._infer = infer
        self.counts: Floats = np.zeros(infer.topics.shape, np.float32)
        self.n_tokens = 0.0

    def update(self, batch: Batch) -> None:
        documents = Documents(batch.counts, self._infer.alpha.size, np.float32, Workspace(), batch.weights)
        self.counts = self.counts + self._infer(documents)
        self.n_tokens += documents.n_tokens


class SweepCounts(Packable):
    """The word counts of a whole sweep, from those before: what a checkpoint keeps of it.

    Sweeps change their topics from batch to batch, so that there is nothing to add one by one.
    """

    _sums = ("counts", "n_tokens")

    def __init__(self, before: Floats, eta: float, echo: bool) -> None:
        self.before, self.eta, self.echo = before, eta, echo
        self.counts: Floats = np.zeros_like(before)
        self.n_tokens = 0.0


class WordTotals(Additive):
    """Weighted sums of the counts."""

    _sums = ("total",)

    def __init__(self, n_words: int) -> None:
        self.total = np.zeros(n_words)

    def update(self, batch: Batch) -> None:
        self.total += np.asarray(batch.row_weights() @ batch.counts, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Inference:
    """Steps for the proportions of documents at given topics; the word counts of the last.

    The topics have the share ``own`` (per topic, of one word count) of the documents' own counts in them already.
    """

    topics: Floats = field(repr=False)
    own: Floats = field(repr=False)
    alpha: Floats = field(repr=False)
    method: str
    steps: tuple[int, int]
    echo: bool

    def __call__(self, documents: Documents, add_to: Floats | None = None) -> Floats:
        n_em, n_cvb0 = self.steps
        if self.method != "cvb0":
            variational = self.method == "vb"
            return documents.em(self.topics, self.alpha, n_em + n_cvb0, variational=variational, add_to=add_to)[0]
        return documents.cvb0(self.topics, self.own, self.alpha, n_cvb0, echo=self.echo, n_em=n_em, add_to=add_to)


class StreamedSweeps:
    """Word counts by passes over batches, with or without a memory of their documents."""

    def __init__(
        self, batches: Iterable[Batch | PartitionedCounts], start: Floats, alpha: Floats, method: str,
        workspace: Workspace, *, remember: bool, checkpoint: Any = None,
    ) -> None:  # fmt: skip
        self._batches, self._alpha, self._method, self._remember = batches, alpha, method, remember
        self._workspace, self._checkpoint = workspace, checkpoint
        self._documents: list[Documents] = []  # of the pass before, where they are remembered
        self._kept: list[Documents] = []
        first = next(iter(batches))
        self._n_tokens = 0.0  # of a whole pass, once one has been made
        totals = WordTotals(start.shape[1]).update_all([first] if isinstance(first, Batch) else first).total
        weight = max(float(totals.sum()), 1.0)  # as much as the first batch
        self._start = pad_topics(weight / len(start) * mixed_start(start, totals), np.float32)
        self._topics = np.empty_like(self._start)  # those that the batch at hand sees

    def sweep(self, word_counts: Floats, eta: float, *, echo: bool) -> Floats:
        """Word counts (d, width) of one pass over all batches, from those of the pass before."""
        if self._checkpoint is None:
            return self._sweep(word_counts, eta, echo)

        def make(empty: SweepCounts) -> SweepCounts:
            empty.counts = self._sweep(word_counts, eta, echo)
            empty.n_tokens = self._n_tokens
            return empty

        kept = self._checkpoint.remember(SweepCounts(word_counts, eta, echo), make)
        self._n_tokens = kept.n_tokens
        return np.asarray(kept.counts)

    def _sweep(self, word_counts: Floats, eta: float, echo: bool) -> Floats:
        total, read = self._n_tokens, 0.0
        fresh = np.zeros_like(self._start)
        for index, batch in enumerate(self._documents or self._batches):
            # Of the old counts as much is left as there is still to read. In the first pass there are none: the start
            # counts as one batch of data and fades as they come in.
            share = np.float32(max(1.0 - read / total, 0.0) if total else 0.0)
            old, left = (word_counts, share) if total else (self._start, np.float32(1 / (index + 1)))
            inverse = mixed_topics(fresh, old, left, eta, self._topics)
            read += self._count(batch, self._inference(self._topics, share * inverse, echo), fresh)
        self._documents = self._kept
        self._n_tokens = read
        return fresh

    def _count(self, batch: Batch | Documents | PartitionedCounts, infer: Inference, add_to: Floats) -> float:
        """Add the word counts of a batch; its number of words. Where it is elsewhere, they are made there."""
        if isinstance(batch, PartitionedCounts):
            sums = WordCounts(infer).update_all(batch)
            add_to += sums.counts
            return sums.n_tokens
        if isinstance(batch, Batch):
            batch = Documents(batch.counts, self._alpha.size, np.float32, self._workspace, batch.weights)
            if self._remember:
                self._kept.append(batch)
        infer(batch, add_to)
        return batch.n_tokens

    def _inference(self, topics: Floats, own: Floats, echo: bool) -> Inference:
        """At topics that have this share of the documents' own counts in them already."""
        steps = _FORGOTTEN_STEPS
        if self._remember:
            steps = _LATER_STEPS if self._n_tokens else _FIRST_STEPS
        return Inference(topics, own, self._alpha, self._method, steps, echo)

    def add(self, word_counts: Floats, eta: float, batch: Batch, *, echo: bool) -> Floats:
        """The word counts with those of further documents."""
        documents = Documents(batch.counts, self._alpha.size, np.float32, self._workspace, batch.weights)
        nothing = np.zeros_like(self._alpha)
        return self._inference(smoothed_topics(word_counts, eta), nothing, echo)(documents, word_counts.copy())


def mixed_start(topics: Floats, totals: Floats, share: float = 0.3) -> Floats:
    """Topics with a share of the word frequencies mixed in: removes the zeros that clipping left."""
    frequencies = np.asarray(totals, dtype=np.float64) + 1e-2
    return np.asarray((1 - share) * topics + share * frequencies / frequencies.sum())
