"""Which start EM goes on from: the theorem's topics where they can be trusted, the best of a search elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.candidates import Candidate, Effort, Found, finish, search
from odeco.fitting.clusters import cluster_shares
from odeco.fitting.estimator import Found as Estimated
from odeco.models.single_topic.landscape import DocumentLandscape
from odeco.models.single_topic.policy import POLICY
from odeco.models.topics.fallback import documents_as_topics
from odeco.refinement.multinomial_mixture import Mixture, MixtureRefinement, refine_multinomial_mixture
from odeco.sources import Batch, Source, as_source

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchedRefinement(MixtureRefinement):
    """A refinement, and the search that found its start or the share of one scoring step, where there was one."""

    searched: Found[Mixture] | None = field(default=None, repr=False)
    step_share: float | None = None


def is_trusted(found: Estimated, k: int, effort: str) -> bool:
    """Whether the theorem's topics need no rival: the documents show just k of them."""
    if effort == "thorough" or found.estimate is None or not found.estimate.decomposition.status.ok:
        return False
    return bool(found.moments.basis.suggested_components == k)


@dataclass(frozen=True, eq=False)
class _All:
    """All documents, to be climbed."""

    source: Source = field(repr=False)
    smoothing: float
    length: float

    def climb(self, state: Mixture, n_steps: int, tol: float) -> tuple[Mixture, float]:
        done = refine_multinomial_mixture(
            self.source,
            state.weights,
            state.topics,
            smoothing=self.smoothing,
            max_iter=n_steps,
            tol=tol * self.length,
        )
        return Mixture(done.weights, done.topics), float(done.trace.best) / self.length


def search_topics(
    source: Source, theorem: Mixture | None, k: int, smoothing: float, effort: Effort, rng: np.random.Generator
) -> Found[Mixture]:
    """The best of the theorem's topics, of clusters of documents, 2k of them merged or k, and of single documents."""
    batch = source.sample(POLICY.sample)
    land = DocumentLandscape(batch.counts, batch.weights, smoothing)
    seeds = rng.integers(2**31 - 1, size=effort.n_field + 1)
    candidates = [] if theorem is None else [Candidate("moments", lambda: theorem)]
    candidates += [
        Candidate("k-means++ of 2k clusters, merged", lambda: _clusters(land, 2 * k, int(seeds[0])), True, "larger"),
        Candidate("documents as topics", lambda: _documents(batch, k, rng), True, "field"),
    ]
    candidates += [Candidate("k-means++", partial(_clusters, land, k, int(seed)), True, "field") for seed in seeds[1:]]
    found = search(land, candidates, k, effort, rng)
    return (
        found if len(batch) < POLICY.sample else finish(found, _All(source, smoothing, land.length), POLICY.final_steps)
    )


def _clusters(land: DocumentLandscape, n_clusters: int, seed: int) -> Mixture:
    """Clusters of documents by Hellinger distance."""
    return land.of_shares(cluster_shares(land.features, land.weights, n_clusters, seed))


def _documents(batch: Batch, k: int, rng: np.random.Generator) -> Mixture:
    topics = documents_as_topics(as_source([(batch.counts, batch.row_weights())]), k, rng)
    return Mixture(np.full(k, 1 / k), topics)
