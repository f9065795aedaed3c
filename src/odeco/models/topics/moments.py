"""The passes over documents: word scale, directions, moments on them, and the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from odeco.models.topics.policy import POLICY
from odeco.models.topics.theorem import BasisMoments
from odeco.moments import ImplicitTriples, ProjectedMoments, WordTriples
from odeco.moments.passes import Beside, Mapped, Passes, mapped
from odeco.sources import Batch, Source, as_source, every, weigh_by_length
from odeco.sources.base import thin
from odeco.sources.partitions import is_elsewhere
from odeco.whitening import Whitener
from odeco.whitening.noise import pair_noise
from odeco.whitening.randomized import WordRange, directions, first_look, word_range


@dataclass(frozen=True, eq=False)
class WordMoments:
    """Moments on k directions, and the noise of the pairs."""

    basis: BasisMoments
    noise: float
    word_scale: float | None = None  # as it was chosen for these passes

    def narrowed(self, n_components: int) -> WordMoments:
        """Those on the first directions alone, which are the leading ones: the moments of fewer components."""
        return replace(self, basis=self.basis.narrowed(n_components))


def word_passes(
    source: Source,
    n_components: int,
    *,
    word_scale: float | None,
    rng: np.random.Generator,
    half_length: float = POLICY.half_length,
) -> Passes[WordMoments]:
    """Leading directions of word pairs, one pass for the moments on them, and the noise (sections 6.1.1 and 6.1.2).

    Where no word scale is given it is 1/2 if all components then stand out from the noise, and 1/4 elsewhere: scaling
    words by M1^(-1/2) is best while rare words are sampled well; on real text, where most of the vocabulary is rare, it
    drowns the directions in the noise of rare words, and M1^(-1/4) is better. Of many documents, a pilot sample tells.

    Documents are weighed by length (`weigh_by_length`), or equally, as in the paper, with a `half_length` of 0. Of the
    source itself a sample is taken, and where its documents are at hand an implicit tensor is made of them.
    """
    weigh = weigh_by_length(half_length)
    pilot = np.random.default_rng(rng.integers(2**63))  # of its own: the word scale may be chosen beside a pass
    sample = yield Beside(lambda: weigh(source.sample(POLICY.noise_sample)))
    scale: Callable[[], float] = yield Beside(
        lambda: choose_word_scale(sample(), n_components, pilot) if word_scale is None else word_scale
    )
    first = yield Mapped(first_look(source.n_features, n_components, random_state=rng), weigh)
    n_documents = int(first.frequencies.n_at_least[1])
    # Where the sample is all there is, nothing shows better which scale to take than what comes of it.
    try_both = word_scale is None and not is_elsewhere(source) and first.n <= len(sample())
    used = POLICY.fine if try_both else scale()
    found = yield from mapped(directions(first, used), weigh)
    noise = yield Beside(lambda: _noise_of(found, sample(), n_components, n_documents))
    if try_both and not _stand_out(found, noise(), n_components):
        used, n_before = POLICY.coarse, found.n_passes - 1
        found = yield from mapped(directions(first, used), weigh)
        found = replace(found, n_passes=found.n_passes + n_before)
        noise = yield Beside(lambda: _noise_of(found, sample(), n_components, n_documents))
    whitener = found.whitener(n_components)
    moments, everything = yield from mapped(_triples(source.map(weigh), found, whitener), weigh)
    suggested = int(np.count_nonzero(found.spectrum > noise()))
    n_passes = found.n_passes + (1 if everything is None else 2)
    basis = BasisMoments(whitener, moments, found.spectrum, n_passes, suggested, everything)
    return WordMoments(basis, noise(), used)


def _triples(
    source: Source, found: WordRange, whitener: Whitener
) -> Passes[tuple[ProjectedMoments, ImplicitTriples | None]]:
    """Moments on the whitened directions; where the tensor of all documents would dominate, that of every m-th one,
    and the implicit tensor of all.
    """
    columns = whitener.matrix.astype(np.float32)
    cost = int(found.frequencies.n_at_least[2]) * whitener.n_components**3
    if cost <= POLICY.large_tensor or is_elsewhere(source):  # what is implicit would have to be read again and again
        triples = yield WordTriples(columns)
        return triples.read(), None
    step = int(np.ceil(2 * cost / POLICY.large_tensor))
    some = yield Mapped(WordTriples(columns), every(step))
    pairs = whitener.matrix.T @ whitener.lift
    mean = whitener.matrix.T @ found.frequencies.mean
    moments = ProjectedMoments(mean, (pairs + pairs.T) / 2, some.read().triples)
    return moments, ImplicitTriples(source, columns)


def choose_word_scale(sample: Batch, n_components: int, rng: np.random.Generator) -> float:
    """1/2 where that scale shows all components above the noise on a pilot sample, 1/4 elsewhere: see `word_passes`."""
    pilot = thin(sample, POLICY.pilot)
    if n_components >= min(pilot.counts.shape):
        return POLICY.coarse
    try:
        found = word_range(
            as_source([(pilot.counts, pilot.row_weights())]),
            n_components,
            word_scale=POLICY.fine,
            random_state=rng,
        )
    except ValueError:  # too few documents for pairs at all: the passes over everything will say so
        return POLICY.coarse
    noise = _noise_of(found, pilot, n_components, int(found.frequencies.n_at_least[1]))
    return POLICY.fine if _stand_out(found, noise, n_components) else POLICY.coarse


def _stand_out(found: WordRange, noise: float, n_components: int) -> bool:
    """Whether all components do."""
    return len(found.spectrum) >= n_components and bool(found.spectrum[n_components - 1] > noise)


def _noise_of(found: WordRange, sample: Batch, n_components: int, n_documents: int) -> float:
    return pair_noise(sample, found.scale, found.directions(n_components), n_documents)
