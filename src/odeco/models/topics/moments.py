"""The passes over the data that `fit` makes: word scale, directions, moments on them, and the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import single_threaded_blas
from odeco.models.topics.theorem import BasisMoments
from odeco.moments import ImplicitTriples, ProjectedMoments, WordFrequencies, WordTriples
from odeco.sources import Batch, Source, as_source, every, require_passes, weigh_by_length
from odeco.sources.arrays import ArraySource, join_batches
from odeco.sources.partitions import PartitionedCounts, is_elsewhere
from odeco.whitening import Whitener
from odeco.whitening.noise import pair_noise
from odeco.whitening.randomized import WordRange, word_range

Result = TypeVar("Result")

# Documents on which the word scale is chosen, and on which the noise is measured.
_PILOT, _NOISE_SAMPLE = 5_000, 20_000
FINE, COARSE = 0.5, 0.25
# Words at which a document has a quarter of the weight of a very long one: with equal weights a few short documents
# drown the rest in noise.
HALF_LENGTH = 100.0
# Documents times k^3 above which the tensor of a part of them is decomposed and finished on all.
LARGE_TENSOR = 2e11


@dataclass(frozen=True, eq=False)
class WordMoments:
    """What the passes of `fit` leave behind."""

    basis: BasisMoments
    frequencies: WordFrequencies
    word_scale: float
    noise: float


def word_moments(
    source: Source,
    n_components: int,
    *,
    word_scale: float | None,
    rng: np.random.Generator,
    half_length: float = HALF_LENGTH,
) -> WordMoments:
    """Leading directions of word pairs, one pass for the moments on them, and the noise (sections 6.1.1 and 6.1.2).

    Documents are weighed by length (`weigh_by_length`), or equally, as in the paper, with a `half_length` of 0.
    """
    if half_length:
        source = source.map(weigh_by_length(half_length))
    require_passes(source, 2)
    pilot = np.random.default_rng(rng.integers(2**63))  # of its own: the word scale may be chosen beside a pass
    with _beside(source) as later:
        sample = later(lambda: sample_documents(source, _NOISE_SAMPLE))
        scale = later(lambda: choose_word_scale(sample(), n_components, pilot)) if word_scale is None else word_scale
        found = word_range(source, n_components, word_scale=scale, random_state=rng)
        n_documents = int(found.frequencies.n_at_least[1])
        noise = later(lambda: _noise_of(found, sample(), n_components, n_documents))
        whitener = found.whitener(n_components)
        moments, everything = _triples(source, found, whitener)
        suggested = int(np.count_nonzero(found.spectrum > noise()))
        n_passes = found.n_passes + (1 if everything is None else 2)
        basis = BasisMoments(whitener, moments, found.spectrum, n_passes, suggested, everything)
        return WordMoments(basis, found.frequencies, scale() if callable(scale) else scale, noise())


class _Later(Protocol):
    def __call__(self, function: Callable[[], Result], /) -> Callable[[], Result]: ...


@contextmanager
def _beside(source: Source) -> Iterator[_Later]:
    """Makes functions that give their result when they are asked, as often as they are.

    Where the rows are elsewhere, they run on another thread while passes are made there, in the order in which they
    were made, and have ended in the end.
    """
    if not isinstance(source, PartitionedCounts):
        yield cache
        return
    source.n_first(source.batch_size)  # so that the sample is asked for at once, before the first pass
    with single_threaded_blas(), ThreadPoolExecutor(1, "odeco-beside") as pool:  # the limit is one for both threads
        yield lambda function: pool.submit(copy_context().run, function).result


def _triples(source: Source, found: WordRange, whitener: Whitener) -> tuple[ProjectedMoments, ImplicitTriples | None]:
    """Moments on the whitened directions; where the tensor of all documents would dominate, that of every m-th one,
    and the implicit tensor of all.
    """
    columns = whitener.matrix.astype(np.float32)
    cost = int(found.frequencies.n_at_least[2]) * whitener.n_components**3
    if cost <= LARGE_TENSOR or is_elsewhere(source):  # what is implicit would have to be read again and again
        return WordTriples(columns).update_all(source).read(), None
    step = int(np.ceil(2 * cost / LARGE_TENSOR))
    some = WordTriples(columns).update_all(source.map(every(step))).read()
    pairs = whitener.matrix.T @ whitener.lift
    moments = ProjectedMoments(whitener.matrix.T @ found.frequencies.mean, (pairs + pairs.T) / 2, some.triples)
    return moments, ImplicitTriples(source, columns)


def choose_word_scale(sample: Batch, n_components: int, rng: np.random.Generator) -> float:
    """1/2 where that scale shows all components above the noise on a pilot sample, 1/4 elsewhere.

    Scaling words by M1^(-1/2) is best while rare words are sampled well; on real text, where most of the vocabulary is
    rare, it drowns the directions in the noise of rare words, and M1^(-1/4) is better.
    """
    pilot = thin(sample, _PILOT)
    if n_components >= min(pilot.counts.shape):
        return COARSE
    try:
        found = word_range(
            as_source([(pilot.counts, pilot.row_weights())]),
            n_components,
            word_scale=FINE,
            random_state=rng,
        )
    except ValueError:  # too few documents for pairs at all: the passes over everything will say so
        return COARSE
    noise = _noise_of(found, pilot, n_components, int(found.frequencies.n_at_least[1]))
    return FINE if found.spectrum[n_components - 1] > noise else COARSE


def _noise_of(found: WordRange, sample: Batch, n_components: int, n_documents: int) -> float:
    return pair_noise(sample, found.scale, found.directions(n_components), n_documents)


def sample_documents(source: Source, size: int) -> Batch:
    """About `size` documents, evenly spread over the data where they lie in memory, over the first batch elsewhere."""
    if isinstance(source, ArraySource):
        return thin(source.whole(), size)
    if isinstance(source, PartitionedCounts):  # what the first batch would give, and no other document, travels
        return join_batches(source.only(evenly(source.n_first(source.batch_size), size)).collect())
    return thin(next(iter(source)), size)


def thin(batch: Batch, size: int) -> Batch:
    """Evenly spaced documents of a batch, `size` of them at most."""
    return batch if len(batch) <= size else batch.take(evenly(len(batch), size))


def evenly(n: int, size: int) -> NDArray[np.intp]:
    """`size` evenly spaced places of n, or all of them."""
    return np.linspace(0, n - 1, size).astype(np.intp) if n > size else np.arange(n)
