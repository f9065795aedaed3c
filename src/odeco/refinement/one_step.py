"""One scoring step for tables, topics and crowds: rows as features, parameters as columns of families, and back.

The step itself is `odeco.refinement.scoring.scoring_step`; views and Gaussians have modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.dawid_skene import CrowdParameters
from odeco.refinement.family_scoring import FamilyMixture, columns_of, positive, raised
from odeco.refinement.multinomial_mixture import Mixture, document_chunks, word_frequencies
from odeco.refinement.product_mixture import Batch, Data, Parameters
from odeco.refinement.scoring import Features, Step, scoring_step
from odeco.sources.votes import VoteBatch

Floats = NDArray[np.float64]
Stepped = Step[FamilyMixture]


def product_step(data: Data, start: Parameters) -> tuple[Parameters, Stepped]:
    """Of a product mixture: rows are statistics already."""
    done = scoring_step(data.batches, _statistics, FamilyMixture(data.families, start.weights[0], start.table))
    return Parameters(done.mixture.weights[None], data.families.project(done.mixture.table)), done


def topic_step(documents: Iterable[Any], start: Mixture) -> tuple[Mixture, Stepped]:
    """Of a single topic model: the counts of a document are one block."""
    topics = raised(start.topics, word_frequencies(documents, start.topics.shape[1]))
    families = columns_of(blocks=(topics.shape[1],))
    done = scoring_step(documents, _words, FamilyMixture(families, positive(start.weights), topics))
    return Mixture(done.mixture.weights, done.mixture.table), done


def crowd_step(votes: Iterable[VoteBatch], start: CrowdParameters) -> tuple[CrowdParameters, Stepped]:
    """Of the model of Dawid and Skene: the labels of each annotator are one block."""
    n_workers, k, n_labels = start.confusion.shape
    shares = raised(start.confusion, np.full(n_labels, 1 / n_labels))
    table = shares.transpose(1, 0, 2).reshape(k, -1)
    families = columns_of(blocks=(n_labels,) * n_workers)
    done = scoring_step(votes, _votes, FamilyMixture(families, positive(start.weights), table))
    confusion = done.mixture.table.reshape(k, n_workers, n_labels).transpose(1, 0, 2)
    return CrowdParameters(done.mixture.weights, np.ascontiguousarray(confusion)), done


def _statistics(batch: Batch) -> Iterator[tuple[Features, Floats | None]]:
    statistics, weights = batch
    yield [(slice(None), statistics)], weights


def _words(batch: Any) -> Iterator[tuple[Features, Floats | None]]:
    for counts, weights in document_chunks(batch):
        yield [(slice(None), counts.astype(np.float64))], weights


def _votes(batch: VoteBatch) -> Iterator[tuple[Features, Floats | None]]:
    yield [(slice(None), batch.votes.astype(np.float64))], batch.weights
