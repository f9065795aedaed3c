"""Where EM starts: candidates for a mixture of views, compared on some of the samples, or on all if they are few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.fitting.candidates import EFFORTS, TIE, Candidate, Effort, Found, explained_gain, finish, is_any_dead, search
from odeco.fitting.clusters import cluster_shares
from odeco.models.multiview.landscape import ViewLandscape
from odeco.models.multiview.likelihoods import em_start, within_range
from odeco.models.multiview.moments import column_scale, solve_views
from odeco.models.multiview.policy import POLICY
from odeco.moments.views import ColumnSums
from odeco.refinement.loop import Trace
from odeco.refinement.views import ViewModel, ViewParameters, ViewRefinement, n_parameters, refine_views
from odeco.sources.partitions import Partitioned
from odeco.sources.rows import join_views
from odeco.sources.views import ViewBatch, ViewSource

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchedViews(ViewRefinement):
    """A refinement, and the search that found its start or the share of one scoring step, where there was one."""

    searched: Found[ViewParameters] | None = field(default=None, repr=False)
    step_share: float | None = None

    def told(self) -> str:
        """What was done, in words."""
        return f"{self.trace.n_iter} EM steps" if self.step_share is None else "one scoring step"

    def details(self) -> dict[str, Any]:
        """What the report keeps of it."""
        share = {} if self.step_share is None else {"step_share": self.step_share}
        return {"refinement": self.trace, **share, **({} if self.searched is None else self.searched.details())}


def sampled(source: ViewSource, columns: ColumnSums, model: ViewModel, rng: np.random.Generator) -> ViewLandscape:
    """The likelihood of all samples, or of about 2,500."""
    batch = _spread(source, columns.n, POLICY.most_rows)
    features = _side_by_side(batch, columns, rng)
    return ViewLandscape(batch, model, columns.variances, features, batch.pieces)


def find_start(
    landscape: ViewLandscape,
    source: ViewSource,
    moments: ViewParameters | None,
    k: int,
    method: Decomposer,
    n_samples: int,
    effort: Effort,
    rng: np.random.Generator,
) -> Found[ViewParameters]:
    """The best candidate; where samples were left out and are not elsewhere, the two best compared on all of them."""

    def candidates() -> Iterator[Candidate[ViewParameters]]:
        yield Candidate("the moments", lambda: moments)
        at_twice = partial(_moments_at, 2 * k, landscape, method, rng)
        yield Candidate(f"the moments at {2 * k} components", at_twice, origin="larger")
        yield Candidate(f"k-means, {2 * k} clusters", lambda: clusters(landscape, 2 * k, rng), True, "larger")
        for _ in range(effort.n_field):
            yield Candidate("k-means", lambda: clusters(landscape, k, rng), True, "field")

    found = search(landscape, candidates(), k, effort, rng)
    if type(source) is not ViewSource or n_samples == len(landscape.batch):  # passes elsewhere cost more than they tell
        return found
    return finish(found, replace(landscape, read=lambda: source), effort.screen_steps)


def near_maximum(
    source: ViewSource, moments: ViewParameters, model: ViewModel, columns: ColumnSums, max_iter: int, tol: float
) -> ViewRefinement | None:
    """EM from the moments where it gains no more than sampling errors explain, and no component dies; elsewhere None.

    Then these need no rival.
    """
    k = moments.weights.size
    limit = explained_gain(n_parameters(model.likelihoods, columns.widths, k), columns.weight)
    if limit < 0 or is_any_dead(moments.weights):
        return None

    def climb(start: ViewParameters, n_steps: int, value: float) -> ViewRefinement:
        return refine_views(lambda: source, start, model, max_iter=n_steps, tol=tol, value=value)

    def gain(trace: Trace) -> float:
        return trace.best - trace.records[0].value if len(trace.records) > 1 else np.inf

    done = climb(moments, min(2, max_iter), -np.inf)
    if gain(done.trace) <= limit and not done.trace.converged and max_iter > 2:
        later = climb(done.parameters, max_iter - 2, done.trace.best)
        done = ViewRefinement(later.parameters, done.trace.then(later.trace))
    return done if gain(done.trace) <= limit and not is_any_dead(done.parameters.weights) else None


def beats_clusters(landscape: ViewLandscape, moments: ViewParameters, rng: np.random.Generator) -> bool:
    """Whether a k-means start falls behind the moments on some of the samples; too few samples cannot tell."""
    n, k, effort = len(landscape.batch), moments.weights.size, EFFORTS["auto"]
    if n <= POLICY.few_rows:
        return False
    rows = np.linspace(0, n - 1, POLICY.few_rows).astype(np.intp)
    batch = landscape.batch.take(rows)
    few = replace(landscape, batch=batch, places=landscape.places[rows], read=batch.pieces)
    ours, theirs = (few.climb(state, effort.screen_steps, effort.tol)[1] for state in (moments, clusters(few, k, rng)))
    return bool(ours >= theirs - TIE)


def clusters(landscape: ViewLandscape, k: int, rng: np.random.Generator) -> ViewParameters:
    """k-means, all views side by side with columns of unit variance."""
    weights = landscape.batch.row_weights()
    shares = cluster_shares(landscape.features, weights, k, int(rng.integers(2**31)))
    shares += 1e-3 * weights.mean() / len(shares)  # no component is empty
    return em_start(landscape.of_shares(shares), landscape.model)


def _moments_at(
    k: int, landscape: ViewLandscape, method: Decomposer, rng: np.random.Generator
) -> ViewParameters | None:
    """The theorem's estimate of another number of components, from the samples of the search."""
    try:
        found = solve_views(ViewSource(lambda: [landscape.batch]), k, rng, method=method)
    except MomentError:
        return None
    return em_start(within_range(found.weights, found.means, found.variances, landscape.model)[0], landscape.model)


def _side_by_side(batch: ViewBatch, columns: ColumnSums, rng: np.random.Generator) -> Floats:
    """All views of unit variance; wide ones projected."""
    parts = []
    for block, variance, center in zip(batch.blocks, columns.variances, columns.means, strict=True):
        scale = column_scale(variance, counts=bool(sparse.issparse(block)))
        directions = np.diag(scale) if scale.size <= POLICY.widest else _random_directions(scale, rng)
        parts.append(np.asarray(block @ directions) - center @ directions)
    rows = np.hstack(parts)
    return np.asarray(rows + 1e-9 * rng.standard_normal(rows.shape))  # equal rows still make k clusters


def _spread(source: ViewSource, n_samples: int, most: int) -> ViewBatch:
    """All samples where there are at most so many, else every m-th, about as many in all."""
    step = max(1, -(-n_samples // most))
    if isinstance(source, Partitioned):  # no more than these travel
        return join_views(source.only(np.arange(0, source.n_rows, step)).collect())
    kept, seen = [], 0
    for batch in source:
        rows = np.arange((-seen) % step, len(batch), step)
        seen += len(batch)
        if rows.size:
            kept.append(batch.take(rows))
    return join_views(kept)


def _random_directions(scale: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(scale[:, None] * rng.standard_normal((scale.size, POLICY.widest)) / np.sqrt(POLICY.widest))
