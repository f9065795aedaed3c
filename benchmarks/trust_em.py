"""Plain EM for mixtures of categories, words, counts and measurements: the peer of those whose peers are slow.

Nothing is accelerated and nothing chosen: random responsibilities, E and M steps until they gain no more. The same
formulas judge the parameters of everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln, logsumexp

LEAST_VARIANCE = 1e-6  # of a standardized column


class Columns(Protocol):
    """Columns of one family: log densities and M step; `parameters` is what the M step returns."""

    def log_density(self, parameters: Any) -> Any: ...

    def maximize(self, shares: Any) -> Any: ...

    def log_prior(self, parameters: Any) -> float: ...


@dataclass(frozen=True, eq=False)
class Shares:
    """Indicators of categories, or counts of words, (n, m): columns of a block share one probability of 1.

    `smoothing` is the pseudo-count of each, where the model that is compared has one: a prior that counts for both.
    """

    features: Any
    blocks: Any  # (m,) number of the block of each column
    smoothing: float = 0.0

    def log_density(self, parameters: Any) -> Any:
        return np.asarray(self.features @ np.log(np.maximum(parameters, 1e-300)).T)

    def maximize(self, shares: Any) -> Any:
        sums = np.asarray(self.features.T @ shares).T + self.smoothing
        totals = np.stack([np.bincount(self.blocks, row) for row in sums])
        return sums / np.maximum(totals, 1e-300)[:, self.blocks]

    def log_prior(self, parameters: Any) -> float:
        if self.smoothing == 0:
            return 0.0
        return self.smoothing * float(np.log(np.maximum(parameters, 1e-300)).sum())


@dataclass(frozen=True, eq=False)
class Rates:
    """Poisson columns (n, d)."""

    values: Any

    def log_density(self, parameters: Any) -> Any:
        safe = np.maximum(parameters, 1e-300)
        return self.values @ np.log(safe).T - safe.sum(axis=1) - gammaln(self.values + 1).sum(axis=1)[:, None]

    def maximize(self, shares: Any) -> Any:
        return shares.T @ self.values / np.maximum(shares.sum(axis=0), 1e-300)[:, None]

    def log_prior(self, parameters: Any) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class Normals:
    """Gaussian columns (n, d); parameters are means and variances, (2, k, d)."""

    values: Any

    def log_density(self, parameters: Any) -> Any:
        means, variances = parameters
        apart = self.values[:, None, :] - means
        return -0.5 * (apart**2 / variances + np.log(2 * np.pi * variances)).sum(axis=2)

    def maximize(self, shares: Any) -> Any:
        totals = np.maximum(shares.sum(axis=0), 1e-300)[:, None]
        means = shares.T @ self.values / totals
        variances = shares.T @ self.values**2 / totals - means**2
        return np.stack([means, np.maximum(variances, LEAST_VARIANCE)])

    def log_prior(self, parameters: Any) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights (k,) and the parameters of each family of columns."""

    weights: Any
    parameters: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows by their columns' families, each with the number of times that it occurs."""

    columns: Sequence[Columns]
    times: Any  # (n,)
    smoothing: float = 0.0  # pseudo-count of each component

    def joint(self, mixture: Mixture) -> Any:
        with np.errstate(divide="ignore"):
            logs = np.log(mixture.weights)
        pairs = zip(self.columns, mixture.parameters, strict=True)
        return sum(columns.log_density(parameters) for columns, parameters in pairs) + logs

    def objective(self, mixture: Mixture, joint: Any = None) -> float:
        """Log-likelihood, and log prior where there is one, for each row."""
        joint = self.joint(mixture) if joint is None else joint
        pairs = zip(self.columns, mixture.parameters, strict=True)
        prior = sum(columns.log_prior(parameters) for columns, parameters in pairs)
        if self.smoothing:
            prior += self.smoothing * float(np.log(np.maximum(mixture.weights, 1e-300)).sum())
        return float((self.times @ logsumexp(joint, axis=1) + prior) / self.times.sum())

    def maximize(self, responsibilities: Any) -> Mixture:
        shares = responsibilities * self.times[:, None]
        totals = shares.sum(axis=0) + self.smoothing
        return Mixture(totals / totals.sum(), [columns.maximize(shares) for columns in self.columns])

    def fit(self, responsibilities: Any, *, max_iter: int = 500, tol: float = 1e-7) -> Mixture:
        """EM from these responsibilities until a step gains less than `tol` a row."""
        mixture, before = self.maximize(responsibilities), -np.inf
        for _ in range(max_iter):
            joint = self.joint(mixture)
            value = self.objective(mixture, joint)
            if value - before < tol:
                break
            before = value
            mixture = self.maximize(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))
        return mixture

    def random_start(self, k: int, seed: int) -> Any:
        return np.random.default_rng(seed).dirichlet(np.ones(k), len(self.times))


def indicators(codes: Any) -> tuple[Any, Any]:
    """Of codes (n, columns) from 0, NaN or negative where missing: indicators (n, m) and the column of each."""
    columns = [column[:, None] == np.arange(np.nanmax(column) + 1) for column in codes.T]
    blocks = np.repeat(np.arange(len(columns)), [column.shape[1] for column in columns])
    return np.hstack(columns).astype(float), blocks
