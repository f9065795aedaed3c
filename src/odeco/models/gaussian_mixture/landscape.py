"""The likelihood of a Gaussian mixture on some rows, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.candidates import RowLandscape, cheapest_pairs, merging, pair_costs
from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Points,
    Sums,
    maximize,
    n_parameters,
    posterior_sums,
    posteriors_of,
    refine_gaussian_mixture,
)
from odeco.refinement.loop import StoppingRule

Floats = NDArray[np.float64]

# Variances, as shares of the columns' own, below which a component sits on equal values; rows that make that no chance.
_THIN, _FEW_ROWS = 1e-4, 10


@dataclass(frozen=True, eq=False)
class GaussianLandscape(RowLandscape[GaussianParameters]):
    """Rows (n, p) about their mean, all in memory: whole, or projected, with what was left out in ``points.rest``.

    Attributes
    ----------
    scales : (d,) or (1,)
        Variances of the columns (for spheres, of all together): components keep above ``floor`` of them.
    total : (d, d) or None
        Covariance of all rows, for one that is shared.
    """

    rows: Floats = field(repr=False)
    weights: Floats | None = field(repr=False)
    points: Points = field(repr=False)
    covariance_type: str
    scales: Floats
    floor: float
    total: Floats | None = field(repr=False)

    @property
    def features(self) -> Floats:
        return self.rows / np.sqrt(self.scales)

    @property
    def weight(self) -> float:
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    def n_parameters(self, state: GaussianParameters) -> int:
        return n_parameters(self.covariance_type, state.weights.size, self.points.dimension)

    def size(self, state: GaussianParameters) -> int:
        return state.weights.size

    def climb(self, state: GaussianParameters, n_steps: int, tol: float) -> tuple[GaussianParameters, float]:
        done = refine_gaussian_mixture(
            self.points, state, StoppingRule(n_steps, tol), scales=self.scales, floor=self.floor, total=self.total
        )
        return done.parameters, float(done.trace.best)

    def merge(self, state: GaussianParameters, n_pairs: int) -> GaussianParameters:
        sums = posterior_sums(self.points, state)
        one = self._expected(sums.features, sums.products, state)

        def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
            products = None if sums.products is None else sums.products[i] + sums.products[j]
            return self._expected(sums.features[i] + sums.features[j], products, state)

        adding = merging(len(one), cheapest_pairs(pair_costs(one, joined), n_pairs))
        products = None if sums.products is None else np.tensordot(adding, sums.products, 1)
        return self._maximize(Sums(sums.value, sums.weight, adding @ sums.features, products))

    def degenerate(self, state: GaussianParameters) -> bool:
        """Whether a component is thin in some direction and has fewer rows than twice what determine it."""
        if self.covariance_type in ("tied", "tied_spherical"):
            return False
        scaled = np.asarray(state.covariances)
        if self.covariance_type == "full":
            roots = np.sqrt(self.scales)
            least = np.linalg.eigvalsh(scaled / np.outer(roots, roots)).min(axis=1)
        else:
            least = (scaled / self.scales).reshape(len(scaled), -1).min(axis=1)
        rows = state.weights * len(self.rows)
        return bool(((least < _THIN) & (rows < max(_FEW_ROWS, 2 * (self.rows.shape[1] + 1)))).any())

    def of_shares(self, shares: Floats) -> GaussianParameters:
        """The parameters of responsibilities times weights, (k, n)."""
        features = np.concatenate(self._blocks())
        products = None
        if self.covariance_type == "full":
            products = np.stack([(self.rows.T * share) @ self.rows for share in shares])
        return self._maximize(Sums(0.0, float(shares.sum()), shares @ features, products))

    def _blocks(self) -> list[Any]:
        blocks, first = [], 0
        for batch in self.points.batches:
            blocks += [features for features, _ in self.points.blocks(self.covariance_type, batch, first)]
            first += len(batch)
        return blocks

    def posterior(self, state: GaussianParameters) -> tuple[Floats, Floats]:
        parts, values, first, shares_of = [], [], 0, posteriors_of(self.points, state)
        for batch in self.points.batches:
            for shares, found, _ in shares_of(batch, first):
                parts.append(shares)
                values.append(found)
            first += len(batch)
        shares = np.concatenate(parts, axis=1) * (1.0 if self.weights is None else self.weights)
        return np.asarray(shares, dtype=np.float64), np.concatenate(values).astype(np.float64)

    def _maximize(self, sums: Sums) -> GaussianParameters:
        k, p = len(sums.features), self.rows.shape[1]
        nothing: Any = {
            "spherical": np.ones(k),
            "tied_spherical": 1.0,
            "diag": np.ones((k, p)),
            "tied": np.eye(p),
            "full": np.repeat(np.eye(p)[None], k, axis=0),
        }[self.covariance_type]
        old = GaussianParameters(np.full(k, 1 / k), np.zeros((k, p)), nothing, self.covariance_type)
        return maximize(sums, old, self.points.dimension, self.floor * self.scales, self.total)

    def _expected(self, features: Floats, products: Floats | None, state: GaussianParameters) -> Floats:
        """Largest expected log-likelihood of components with these sums, up to what mergers leave as it is, (m,).

        One covariance for all stays as it is.
        """
        counts, p, kind = features[:, -1], self.rows.shape[1], self.covariance_type
        safe, d = np.maximum(counts, 1e-300), self.points.dimension
        means = features[:, :p] / safe[:, None]
        entropy = counts * np.log(safe)
        floor = self.floor * self.scales
        if kind == "spherical":
            variances = (features[:, p] / safe - (means * means).sum(axis=1)) / d
            return np.asarray(entropy - counts * d / 2 * np.log(np.maximum(variances, float(floor.mean()))))
        if kind == "tied_spherical":
            return np.asarray(entropy + counts * (means * means).sum(axis=1) / (2 * float(state.covariances)))
        if kind == "diag":
            within = np.maximum(features[:, p : 2 * p] / safe[:, None] - means * means, floor)
            return np.asarray(entropy - counts / 2 * np.log(within).sum(axis=1))
        if kind == "tied":
            distances = (means * np.linalg.solve(state.covariances, means.T).T).sum(axis=1)
            return np.asarray(entropy + counts * distances / 2)
        assert products is not None
        within = products / safe[:, None, None] - means[:, :, None] * means[:, None, :] + np.diag(floor)
        return np.asarray(entropy - counts / 2 * np.linalg.slogdet(within)[1])
