"""The likelihood of views of some samples, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.candidates import RowLandscape, cheapest_pairs, merging, pair_costs, spike_limits
from odeco.refinement.views import (
    PosteriorSums,
    ViewDensities,
    ViewModel,
    ViewParameters,
    expected_likelihood,
    maximize,
    n_parameters,
    refine_views,
    views_log_joint,
)
from odeco.sources.views import ViewBatch

Floats = NDArray[np.float64]

# Numbers in the sums of the pairs whose mergers are judged at a time.
_MOST_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class ViewLandscape(RowLandscape[ViewParameters]):
    """Samples in their views, and `places` (n, p): what they differ in, columns of about unit variance.

    `read` starts a pass over them; one over more samples makes a landscape that can be climbed, but no more.
    """

    batch: ViewBatch = field(repr=False)
    model: ViewModel = field(repr=False)
    variances: Sequence[Floats] = field(repr=False)
    places: Floats = field(repr=False)
    read: Callable[[], Iterable[ViewBatch]] = field(repr=False)

    @property
    def features(self) -> Floats:
        return self.places

    @property
    def weight(self) -> float:
        return float(self.batch.row_weights().sum())

    def n_parameters(self, state: ViewParameters) -> int:
        return n_parameters(self.model.likelihoods, self.batch.widths, state.weights.size)

    def size(self, state: ViewParameters) -> int:
        return state.weights.size

    def climb(self, state: ViewParameters, n_steps: int, tol: float) -> tuple[ViewParameters, float]:
        done = refine_views(self.read, state, self.model, max_iter=n_steps, tol=tol)
        return done.parameters, done.trace.best

    def merge(self, state: ViewParameters, n_pairs: int) -> ViewParameters:
        sums = self._sums(self.posterior(state)[0])
        one = expected_likelihood(sums.totals, sums.first, sums.second, self.model)
        step = max(1, _MOST_NUMBERS // sum(self.batch.widths))

        def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
            parts = [slice(start, start + step) for start in range(0, len(i), step)]
            return np.concatenate([self._joined(sums, i[part], j[part]) for part in parts])

        adding = merging(len(one), cheapest_pairs(pair_costs(one, joined), n_pairs))
        first = [adding @ part for part in sums.first]
        second = [None if part is None else adding @ part for part in sums.second]
        return maximize(adding @ sums.totals, first, second, self.model, None)

    def degenerate(self, state: ViewParameters) -> bool:
        """Whether the values of a Gaussian column are nearly equal in a component of few samples."""
        weight = float(self.batch.row_weights().sum())
        limits = spike_limits(state.weights * weight, weight)[:, None]
        pairs = zip(state.variances, self.variances, strict=True)
        return any(bool((v < limits * total)[:, total > 0].any()) for v, total in pairs if v is not None)

    def of_shares(self, shares: Floats) -> ViewParameters:
        """The parameters of responsibilities times weights, (k, n)."""
        sums = self._sums(shares)
        return maximize(sums.totals, sums.first, sums.second, self.model, None)

    def posterior(self, state: ViewParameters) -> tuple[Floats, Floats]:
        joint = views_log_joint(self.batch.blocks, state, self.model).T
        highest = joint.max(axis=0)
        shares = np.exp(joint - highest)
        totals = shares.sum(axis=0)
        return np.ascontiguousarray(shares * (self.batch.row_weights() / totals)), highest + np.log(totals)

    def _sums(self, shares: Floats) -> PosteriorSums:
        k = len(shares)
        means = tuple(np.zeros((k, width)) for width in self.batch.widths)
        gaussian = [name == "gaussian" for name in self.model.likelihoods]
        variances: Any = tuple(np.ones_like(m) if given else None for m, given in zip(means, gaussian, strict=True))
        empty = ViewParameters(np.full(k, 1 / k), means, variances)
        densities = ViewDensities(empty, self.model)
        sums = PosteriorSums(empty, self.model, densities)
        sums.add(densities.features(self.batch.blocks), np.ascontiguousarray(shares.T))
        return sums

    def _joined(self, sums: PosteriorSums, i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
        first = [part[i] + part[j] for part in sums.first]
        second = [None if part is None else part[i] + part[j] for part in sums.second]
        return expected_likelihood(sums.totals[i] + sums.totals[j], first, second, self.model)
