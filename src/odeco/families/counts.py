"""Yes or no, counts and categories: exponential families with one parameter for each column, its mean.

``log density = values . slopes + constants + base``. So the M step is a ratio of sums, and a conjugate prior is a few
observations more: what they add to the sums, and the logarithm of their density.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco._random import draw_counts
from odeco.simulate import draw_symbols

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# Counts below this have their factorials looked up, where there are more counts than that: ten times as fast.
_FACTORIALS = 1024


class CountFamily(ABC):
    """Columns of one kind, independent given the component; means are (k, d)."""

    @abstractmethod
    def natural(self, means: Floats) -> tuple[Floats, Floats]:
        """Slopes (k, d), and constants (k, d) that count where a column is observed; of means that are `inside`."""

    @abstractmethod
    def inside(self, means: Floats, floor: float) -> Floats:
        """Means with no probability and no rate below `floor`: what was never seen stays possible."""

    @abstractmethod
    def pseudo(self, strength: float, means: Floats, floor: float) -> tuple[Any, Any]:
        """Sums and totals of a prior of about `strength` observations; `means` (d,) are those of all data."""

    def n_free(self, width: int) -> int:
        """Free parameters of a component."""
        return width

    def base(self, values: Any) -> Any:
        """The part of the log density that no parameter enters, (n,) or 0, of values (n, d), dense or sparse."""
        return 0.0

    @abstractmethod
    def draw(self, means: Floats, components: Labels, rng: np.random.Generator) -> NDArray[Any]:
        """One row for each component that is named."""


class Bernoulli(CountFamily):
    """0 or 1 in each column."""

    def natural(self, means: Floats) -> tuple[Floats, Floats]:
        against = np.log1p(-means)
        return np.log(means) - against, against

    def inside(self, means: Floats, floor: float) -> Floats:
        return np.clip(means, floor, 1 - floor)

    def pseudo(self, strength: float, means: Floats, floor: float) -> tuple[Any, Any]:
        """Each outcome `strength` times."""
        return strength, 2 * strength

    def draw(self, means: Floats, components: Labels, rng: np.random.Generator) -> NDArray[Any]:
        return np.asarray(rng.random((len(components), means.shape[1])) < means[components])


class Poisson(CountFamily):
    """A count in each column."""

    def natural(self, means: Floats) -> tuple[Floats, Floats]:
        return np.log(means), -means

    def inside(self, means: Floats, floor: float) -> Floats:
        return np.maximum(means, floor)

    def pseudo(self, strength: float, means: Floats, floor: float) -> tuple[Any, Any]:
        """`strength` events, in the time in which all data have as many."""
        return strength, strength / np.maximum(means, floor)

    def base(self, values: Any) -> Any:
        from scipy.special import gammaln  # slow to import

        if not sparse.issparse(values):
            if values.size > _FACTORIALS and values.min() >= 0 and values.max() < _FACTORIALS:
                places = values.astype(np.intp)
                if (places == values).all():
                    return -gammaln(np.arange(1.0, _FACTORIALS + 1.0))[places].sum(axis=1)
            return -gammaln(values + 1.0).sum(axis=1)
        logs = values.copy()
        logs.data = gammaln(logs.data + 1.0)
        return -np.asarray(logs.sum(axis=1)).ravel()

    def draw(self, means: Floats, components: Labels, rng: np.random.Generator) -> NDArray[Any]:
        return draw_counts(rng, means[components])


class Categorical(CountFamily):
    """One category of d, or words in their order; a column is the indicator, or the count, of one of them."""

    def natural(self, means: Floats) -> tuple[Floats, Floats]:
        return np.log(means), np.zeros((len(means), 1))

    def inside(self, means: Floats, floor: float) -> Floats:
        """Shares of the sums of rows, even ones where a row has nothing."""
        totals = means.sum(axis=1, keepdims=True)
        even = np.full_like(means, 1 / means.shape[1])
        return np.maximum(np.where(totals > 0, means / np.where(totals > 0, totals, 1.0), even), floor)

    def pseudo(self, strength: float, means: Floats, floor: float) -> tuple[Any, Any]:
        """Each category `strength` times."""
        return strength, strength * means.size

    def n_free(self, width: int) -> int:
        return width - 1

    def draw(self, means: Floats, components: Labels, rng: np.random.Generator) -> NDArray[Any]:
        """Codes (n,)."""
        return draw_symbols(means, components, rng)


BERNOULLI, POISSON, CATEGORICAL = Bernoulli(), Poisson(), Categorical()
