"""The likelihood of views of some samples, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import shares_of
from odeco.fitting.landscape import RowLandscape, Sums, spike_limits
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

    def degenerate(self, state: ViewParameters) -> bool:
        """Whether the values of a Gaussian column are nearly equal in a component of few samples."""
        weight = float(self.batch.row_weights().sum())
        limits = spike_limits(state.weights * weight, weight)[:, None]
        pairs = zip(state.variances, self.variances, strict=True)
        return any(bool((v < limits * total)[:, total > 0].any()) for v, total in pairs if v is not None)

    def posterior(self, state: ViewParameters) -> tuple[Floats, Floats]:
        return shares_of(views_log_joint(self.batch.blocks, state, self.model), self.batch.weights)

    def sums(self, shares: Floats) -> Sums:
        """Samples of each component, the sums of all views, and the squares of the Gaussian ones."""
        k = len(shares)
        means = tuple(np.zeros((k, width)) for width in self.batch.widths)
        gaussian = [name == "gaussian" for name in self.model.likelihoods]
        variances: Any = tuple(np.ones_like(m) if given else None for m, given in zip(means, gaussian, strict=True))
        empty = ViewParameters(np.full(k, 1 / k), means, variances)
        densities = ViewDensities(empty, self.model)
        found = PosteriorSums(empty, self.model, densities)
        found.add(densities.features(self.batch.blocks), shares)
        return found.totals, *found.first, *(part for part in found.second if part is not None)

    def maximized(self, sums: Sums) -> ViewParameters:
        return maximize(*self._by_view(sums), self.model, None)

    def expected(self, sums: Sums, state: ViewParameters) -> Floats:
        return expected_likelihood(*self._by_view(sums), self.model)

    def _by_view(self, sums: Sums) -> tuple[Floats, list[Floats], list[Floats | None]]:
        """Totals, sums and squares, None where a view has none."""
        n_views, squares = len(self.batch.widths), iter(sums[len(self.batch.widths) + 1 :])
        second = [next(squares) if name == "gaussian" else None for name in self.model.likelihoods]
        return sums[0], list(sums[1 : n_views + 1]), second
