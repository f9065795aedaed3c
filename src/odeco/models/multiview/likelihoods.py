"""What a view holds, and so which likelihood it is given; parameters that the moments leave outside their range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.models.multiview.policy import POLICY
from odeco.moments.base import Additive
from odeco.moments.views import ColumnSums
from odeco.refinement.views import LIKELIHOODS, ViewModel, ViewParameters
from odeco.sources.scale import check_columns
from odeco.sources.views import ViewBatch

Floats = NDArray[np.float64]

_NEEDS = {
    "bernoulli": "only 0 and 1",
    "multinomial": "no negative numbers",
    "poisson": "no negative numbers",
}


class ViewKinds:
    """What the values of each view are like; flags that any order of batches and merges leaves the same."""

    def __init__(self, n_views: int) -> None:
        self.positive = np.ones(n_views, dtype=bool)
        """No negative numbers."""
        self.whole = np.ones(n_views, dtype=bool)
        """Whole numbers, none negative."""
        self.binary = np.ones(n_views, dtype=bool)
        """Only 0 and 1."""
        self.sparse = np.zeros(n_views, dtype=bool)
        self._least_sum, self._most_sum = np.full(n_views, np.inf), np.full(n_views, -np.inf)

    def update(self, batch: ViewBatch) -> None:
        """Look at a batch."""
        for t, block in enumerate(batch.blocks):
            values: NDArray[Any] = np.asarray(block.data if sparse.issparse(block) else block)
            self.sparse[t] |= sparse.issparse(block)
            self.positive[t] = self.positive[t] and (not values.size or bool(values.min() >= 0))
            # What is no longer so is not looked for again: on measurements this costs nothing.
            self.whole[t] = self.whole[t] and self.positive[t] and bool((values == np.round(values)).all())
            self.binary[t] = self.binary[t] and self.whole[t] and (not values.size or bool(values.max() <= 1))
            if self.whole[t]:
                sums = np.asarray(block.sum(axis=1)).ravel()
                self._least_sum[t] = min(self._least_sum[t], float(sums.min()))
                self._most_sum[t] = max(self._most_sum[t], float(sums.max()))

    def merge(self, other: ViewKinds) -> None:
        """Add what was seen elsewhere."""
        self.positive, self.whole, self.binary = (
            self.positive & other.positive,
            self.whole & other.whole,
            self.binary & other.binary,
        )
        self.sparse = self.sparse | other.sparse
        self._least_sum = np.minimum(self._least_sum, other._least_sum)
        self._most_sum = np.maximum(self._most_sum, other._most_sum)

    @property
    def flags(self) -> list[Any]:
        """All that was seen, as numbers of which the largest counts."""
        return [~self.positive, ~self.whole, ~self.binary, self.sparse, -self._least_sum, self._most_sum]

    @flags.setter
    def flags(self, values: list[Any]) -> None:
        negative, broken, more, self.sparse, least, self._most_sum = values
        self.positive, self.whole, self.binary, self._least_sum = ~negative, ~broken, ~more, -least

    def row_sum(self, view: int) -> float | None:
        """The sum of every row of a view of counts, None where they differ."""
        same = self.whole[view] and self._least_sum[view] == self._most_sum[view]
        return float(self._least_sum[view]) if same else None

    def guess(self, view: int) -> str:
        """The likelihood that the values suggest."""
        if not self.whole[view]:
            return "gaussian"
        if self.binary[view]:
            return "multinomial" if self.row_sum(view) == 1 else "bernoulli"
        return "multinomial" if self.sparse[view] else "poisson"

    def choose(self, likelihood: Any) -> tuple[str, ...]:
        """Likelihoods of all views from the option of that name."""
        n_views = len(self.whole)
        given: Sequence[Any] = [likelihood] * n_views if isinstance(likelihood, str) else list(likelihood)
        if len(given) != n_views:
            raise ValueError(
                f"likelihood has {len(given)} entries for {n_views} views: give one per view, or one for all."
            )
        chosen = []
        for t, name in enumerate(given):
            if name not in ("auto", *LIKELIHOODS):
                raise ValueError(f"likelihood must be 'auto' or one of {', '.join(LIKELIHOODS)}, got {name!r}.")
            name = self.guess(t) if name == "auto" else name
            if (name == "bernoulli" and not self.binary[t]) or (name != "gaussian" and not self.positive[t]):
                raise ValueError(f"view {t} must hold {_NEEDS[name]} for likelihood={name!r}: use 'gaussian'.")
            chosen.append(name)
        return tuple(chosen)


class ViewLook(Additive):
    """Both at once, for threads and machines to share the batches."""

    _sums: ClassVar[tuple[str, ...]] = ("totals",)
    _maxima: ClassVar[tuple[str, ...]] = ("flags",)
    _by_threads: ClassVar[bool] = True

    def __init__(self, widths: Sequence[int], first: ViewBatch | None = None) -> None:
        self.columns, self.kinds = ColumnSums(widths, first), ViewKinds(len(widths))

    @property
    def totals(self) -> list[Any]:
        """What adds up."""
        return self.columns.totals

    @totals.setter
    def totals(self, values: list[Any]) -> None:
        self.columns.totals = values

    @property
    def flags(self) -> list[Any]:
        """What is largest."""
        return self.kinds.flags

    @flags.setter
    def flags(self, values: list[Any]) -> None:
        self.kinds.flags = values

    def update(self, batch: ViewBatch) -> None:
        for piece in batch.pieces():
            self.columns.update(piece)
            self.kinds.update(piece)

    def merge(self, other: Self) -> Self:
        self.columns.merge(other.columns)
        self.kinds.merge(other.kinds)
        return self


def view_model(likelihoods: tuple[str, ...], columns: ColumnSums, smoothing: float) -> ViewModel:
    """The likelihoods with what they need of the columns; constant columns get a variance of 1, they tell nothing."""
    floors = []
    for t, (mean, variance) in enumerate(zip(columns.means, columns.variances, strict=True)):
        check_columns(np.abs(mean) + np.sqrt(variance), f"view {t}")
        floors.append(np.where(variance > 0, POLICY.least_variance * variance, 1.0))
    return ViewModel(likelihoods, tuple(columns.means), tuple(floors), smoothing)


def within_range(
    weights: Floats, means: Sequence[Floats], variances: Sequence[Floats], model: ViewModel
) -> tuple[ViewParameters, float]:
    """Moment estimates put where parameters must be, and the largest share of a component that was cut off."""
    inside: list[Floats] = []
    spread: list[Floats | None] = []
    clipped = 0.0
    for likelihood, mean, variance, floor in zip(model.likelihoods, means, variances, model.floors, strict=True):
        if likelihood == "gaussian":
            inside.append(mean)
            spread.append(np.tile(np.maximum(variance, floor), (len(mean), 1)))
            continue
        kept = np.clip(mean, 0.0, 1.0 if likelihood == "bernoulli" else None)
        total = np.maximum(mean.sum(axis=1, keepdims=True), 0.0)
        if likelihood == "multinomial":  # the expected length stays what it was
            sums = kept.sum(axis=1, keepdims=True)
            kept = np.where(sums > 0, kept * total / np.where(sums > 0, sums, 1.0), kept)
        negative = np.maximum(-mean, 0.0).sum(axis=1)
        clipped = max(clipped, float((negative / np.maximum(np.abs(mean).sum(axis=1), 1e-300)).max()))
        inside.append(kept)
        spread.append(None)
    return ViewParameters(weights, tuple(inside), tuple(spread)), clipped


def em_start(parameters: ViewParameters, model: ViewModel) -> ViewParameters:
    """The same with a share of the overall means mixed into views of counts."""
    means = tuple(
        mean if likelihood == "gaussian" else (1 - POLICY.start_share) * mean + POLICY.start_share * center
        for likelihood, mean, center in zip(model.likelihoods, parameters.means, model.centers, strict=True)
    )
    return ViewParameters(parameters.weights, means, parameters.variances)
