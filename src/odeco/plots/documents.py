"""What a topic model says of its documents, in one pass: shares, sizes, prevalence along the corpus, examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.models.topics.examples import Example as Example
from odeco.models.topics.examples import Examples
from odeco.plots.names import batches_without_names, check_suits
from odeco.sources import as_source

Floats = NDArray[np.float64]

_BINS = 48  # of the prevalence along the corpus, at most; at least half as many unless there are fewer documents


@dataclass(frozen=True, eq=False)
class TopicUse:
    """How documents use the topics.

    Attributes
    ----------
    n_documents, n_words : int, float
    shares : (k,)
        Prevalence: the share of all words that each topic has.
    main_documents : (k,)
        Documents of which each topic has the largest share.
    prevalence : (bins, k)
        Shares in consecutive documents, first to last.
    bin_size : int
        Documents of each bin; the last may have fewer. 0 where the bins were given.
    examples : one tuple of `Example` for each topic, best first
    """

    n_documents: int
    n_words: float
    shares: Floats
    main_documents: NDArray[np.intp]
    prevalence: Floats = field(repr=False)
    bin_size: int
    examples: tuple[tuple[Example, ...], ...] = field(repr=False)


def topic_use(model: Any, data: Any, n_examples: int = 3, *, places: ArrayLike | None = None) -> TopicUse:
    """Read counts (whatever `fit` takes) once and say how the documents use the topics.

    `places` are the bins of the documents, 0, 1, ..., along whatever the prevalence is wanted: decades, authors.
    """
    check_suits(model, "topic_use")
    proportions_of = model.transform if hasattr(model, "transform") else model.predict_proba
    k = len(model.components_)
    tally = _Tally(k) if places is None else _PlacedTally(k, np.asarray(places))
    examples = Examples(k, n_examples)
    main = np.zeros(k, dtype=np.intp)
    for batch in as_source(data):
        with batches_without_names():
            proportions = np.asarray(proportions_of(batch.counts), dtype=np.float64)
        written = batch.lengths > 0
        main += np.bincount(proportions[written].argmax(axis=1), minlength=k)
        examples.update(batch.counts, batch.lengths, proportions, tally.n_documents)
        tally.update(proportions * (batch.lengths * batch.row_weights())[:, None])
    tally.check()
    totals = tally.sums.sum(axis=1, keepdims=True)
    return TopicUse(
        n_documents=tally.n_documents,
        n_words=float(totals.sum()),
        shares=tally.sums.sum(axis=0) / max(float(totals.sum()), 1e-300),
        main_documents=main,
        prevalence=tally.sums / np.maximum(totals, 1e-300),
        bin_size=tally.bin_size,
        examples=examples.best(),
    )


class _Tally:
    """Sums over consecutive rows in bins that double in size when there are too many of them."""

    def __init__(self, k: int) -> None:
        self.n_documents, self.bin_size = 0, 1
        self._bins = np.zeros((_BINS, k))

    def update(self, rows: Floats) -> None:
        last = self.n_documents + len(rows) - 1
        while last // self.bin_size >= _BINS:
            self._bins[: _BINS // 2] = self._bins[::2] + self._bins[1::2]
            self._bins[_BINS // 2 :] = 0
            self.bin_size *= 2
        places = np.arange(self.n_documents, last + 1) // self.bin_size
        firsts = np.flatnonzero(np.diff(places, prepend=-1))
        self._bins[places[firsts]] += np.add.reduceat(rows, firsts, axis=0)
        self.n_documents = last + 1

    @property
    def sums(self) -> Floats:
        return self._bins[: max(-(-self.n_documents // self.bin_size), 1)]

    def check(self) -> None:
        """Consecutive bins fit any number of documents."""


class _PlacedTally(_Tally):
    """Sums over the rows of bins that are given."""

    def __init__(self, k: int, places: NDArray[np.intp]) -> None:
        super().__init__(k)
        self.bin_size, self._places = 0, places
        self._bins = np.zeros((int(places.max(initial=0)) + 1, k))

    def update(self, rows: Floats) -> None:
        stop = self.n_documents + len(rows)
        places = self._places[self.n_documents : stop]
        if len(places) == len(rows):
            np.add.at(self._bins, places, rows)
        self.n_documents = stop

    def check(self) -> None:
        if self.n_documents != len(self._places):
            raise ValueError(
                f"places (dates) must be those of the {self.n_documents} rows of data, got {len(self._places)}."
            )

    @property
    def sums(self) -> Floats:
        return self._bins
