"""`partial_fit`'s sums: independent of chunks, near to the passes of `fit`, and honest about noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odeco.fitting.stream import MomentStream
from odeco.metrics import match_components
from odeco.models.topics.moments import choose_word_scale, word_passes
from odeco.models.topics.policy import POLICY
from odeco.models.topics.stream import word_plan
from odeco.models.topics.theorem import topics_at
from odeco.moments.passes import run_passes
from odeco.simulate import lda_documents, zipf_topics
from odeco.sources import as_batch, as_source
from odeco.sources.base import thin

K, D, N = 4, 300, 6000


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    return lda_documents(N, zipf_topics(K, D, random_state=rng), np.full(K, 0.1), mean_length=40, random_state=rng)


PLAN = word_plan(K, word_scale=0.5, basis_size=1000)


def read(stream, plan=PLAN):
    found = stream.read(plan).read(K)
    return found.basis, found.noise


def word_moments(source, n_components, **options):
    return run_passes(word_passes(source, n_components, **options), source)


def stream_of(sample, chunk):
    stream = MomentStream(0, {})
    for start in range(0, N, chunk):
        stream.update(as_batch(sample.counts[start : start + chunk]), PLAN)
    return stream


@pytest.mark.parametrize("chunk", [1, 37, 1000, 2500])
def test_chunks_do_not_matter(sample, chunk):
    whole, parts = stream_of(sample, N), stream_of(sample, chunk)
    (first, noise), (second, same_noise) = read(whole), read(parts)
    # float32 work: the same rounding wherever blocks agree, 1e-5 of the largest entry elsewhere
    for name in ("first", "pairs", "triples"):
        one, other = getattr(first.moments, name), getattr(second.moments, name)
        assert np.abs(one - other).max() <= 1e-5 * np.abs(one).max()
    assert parts.n == N
    assert same_noise == pytest.approx(noise, rel=1e-5)
    assert first.suggested_components == K  # all components stand above the noise


def test_reading_changes_nothing_and_more_can_follow(sample):
    stream = MomentStream(0, {})
    stream.update(as_batch(sample.counts[:2500]), PLAN)
    before, _ = read(stream)
    again, _ = read(stream)
    assert np.array_equal(before.moments.triples, again.moments.triples)
    stream.update(as_batch(sample.counts[2500:]), PLAN)
    whole, _ = read(stream_of(sample, N))
    assert np.allclose(read(stream)[0].moments.triples, whole.moments.triples, rtol=1e-4, atol=1e-4)


def test_one_pass_is_nearly_as_good_as_several(sample):
    rng = np.random.default_rng(0)
    several = word_moments(as_source(sample.counts), K, word_scale=0.5, rng=rng)
    errors = []
    for basis in (several.basis, read(stream_of(sample, N))[0]):
        topics = topics_at(basis, 0.4, rng).topics
        matching = match_components(topics.T, sample.topics.T)
        errors.append(np.abs(topics[matching.permutation] - sample.topics).sum(axis=1).mean())
    assert errors[0] < 0.1  # seen: 0.05
    assert errors[1] < 1.2 * errors[0]


def test_the_callers_arrays_may_be_reused(sample):
    counts = sample.counts[:500].copy()
    plan = word_plan(K, word_scale=0.5, basis_size=5000)
    stream = MomentStream(0, {})
    stream.update(as_batch(counts), plan)
    expected = read(stream, plan)[0].moments.first.copy()
    counts.data[:] = 0
    assert np.array_equal(read(stream, plan)[0].moments.first, expected)


def test_an_empty_stream_says_so():
    with pytest.raises(ValueError, match="no samples"):
        read(MomentStream(0, {}))


@pytest.mark.parametrize("asked", [2, 4, 8])
def test_the_number_of_topics_is_suggested_whatever_was_asked_for(sample, asked):
    moments = word_moments(as_source(sample.counts), asked, word_scale=0.5, rng=np.random.default_rng(0))
    assert moments.basis.suggested_components == K


def test_the_word_scale_follows_the_noise(sample):
    rng = np.random.default_rng(0)
    assert choose_word_scale(as_batch(sample.counts), K, rng) == 0.5
    rare = lda_documents(300, zipf_topics(20, 3000, random_state=1), np.full(20, 0.1), random_state=2)
    assert choose_word_scale(as_batch(rare.counts), 20, rng) == 0.25  # most words are hardly sampled
    # Without a pilot, too: what 1/2 shows is seen first, and two passes are made again.
    moments = [
        word_moments(as_source(x), k, word_scale=None, rng=rng) for x, k in ((sample.counts, K), (rare.counts, 20))
    ]
    assert [found.word_scale for found in moments] == [0.5, 0.25]
    given = word_moments(as_source(rare.counts), 20, word_scale=0.25, rng=rng)
    assert moments[1].basis.n_passes == given.basis.n_passes + 2


def test_samples_are_spread_over_the_data(sample):
    chosen = as_source(sample.counts).sample(100)
    assert len(chosen) == 100
    assert np.array_equal(chosen.lengths[-1:], as_batch(sample.counts).lengths[-1:])
    assert len(thin(as_batch(sample.counts[:5]), 100)) == 5


def test_a_large_tensor_is_decomposed_in_part_and_finished_on_all(sample, monkeypatch):
    rng = np.random.default_rng(0)
    source = as_source(sample.counts)
    whole = topics_at(word_moments(source, K, word_scale=0.5, rng=rng).basis, 0.4, rng)
    small = replace(POLICY, large_tensor=N * K**3 / 4)
    monkeypatch.setattr("odeco.models.topics.moments.POLICY", small)
    part = word_moments(source, K, word_scale=0.5, rng=rng).basis
    assert part.all_triples is not None
    finished = topics_at(part, 0.4, rng)
    rough = topics_at(replace(part, all_triples=None), 0.4, rng)
    distances = [match_components(found.topics.T, whole.topics.T).largest for found in (finished, rough)]
    assert distances[0] < distances[1] / 10  # every eighth document against all of them, after three steps
    assert np.isfinite(finished.decomposition.residual)
