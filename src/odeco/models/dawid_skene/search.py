"""A look further than the first starts of EM: rivals with random classes, and moves from the best."""

from __future__ import annotations

from functools import partial

import numpy as np

from odeco.fitting.candidates import Candidate, Effort, Found, search
from odeco.models.dawid_skene.landscape import CrowdLandscape
from odeco.models.dawid_skene.policy import POLICY
from odeco.refinement.dawid_skene import CrowdParameters
from odeco.sources.votes import VoteSource


def search_further(
    crowd: VoteSource, best: CrowdParameters, name: str, smoothing: float, effort: Effort, rng: np.random.Generator
) -> Found[CrowdParameters] | None:
    """The outcomes; None where there is one class, or the items are elsewhere or too many."""
    n_workers, k, n_labels = best.confusion.shape
    if k == 1 or not 0 < len(crowd.items) <= min(POLICY.most_items, POLICY.most_cells // (n_workers * n_labels)):
        return None
    (batch,) = crowd
    landscape = CrowdLandscape(batch, n_labels, smoothing)
    candidates = [
        Candidate(name, lambda: best),
        Candidate(f"random classes, {2 * k} of them", partial(_random_classes, landscape, 2 * k, rng), True, "larger"),
        *(
            Candidate("random classes", partial(_random_classes, landscape, k, rng), True, "field")
            for _ in range(effort.n_field)
        ),
    ]
    return search(landscape, candidates, k, effort, rng)


def _random_classes(landscape: CrowdLandscape, k: int, rng: np.random.Generator) -> CrowdParameters:
    weights = landscape.batch.row_weights()
    return landscape.of_shares(rng.dirichlet(np.ones(k), len(weights)).T * weights)
