"""Replicates of a mixture from sums of blocks of rows: each block as often as it was drawn, and a Newton step.

The maximum of a weighted likelihood is a step from that of the likelihood itself: the weighted scores, over the
weighted information. Both are sums over rows, so blocks of rows are summed once, and a replicate costs a small linear
system. Its distance from the weighted maximum is of the order of the square of its step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import Entry, Free
from odeco.moments.passes import fill
from odeco.uncertainty.likelihood import determined
from odeco.uncertainty.mixture_scores import MixtureTold, coupled_pairs, own_entries
from odeco.uncertainty.opened import Opened
from odeco.uncertainty.scores import MOST_PAIRS

Floats = NDArray[np.float64]

# Blocks that rows are summed in: a hundred replicates of a hundred blocks know a deviation to 10 %, of 200 to 8 %.
# Each has rows enough that its sums cost less than the rows themselves.
BLOCKS, _ROWS = 200, 10
# Numbers of all information matrices at most: 160 MB.
_CELLS = 20_000_000
# Errors of coordinates (logarithms, logits, or deviations) up to which the likelihood is a parabola: what a Newton step
# misses is about half of its square, 10 % of the error at this bound.
_FLAT = 0.2


@dataclass(frozen=True, eq=False)
class WeightedFits:
    """Maxima of a likelihood on blocks drawn again: sums of the blocks, and the step to each of them.

    Attributes
    ----------
    blocks : MixtureTold
    steps : (R, p)
    """

    blocks: MixtureTold = field(repr=False)
    steps: Floats = field(repr=False)

    @property
    def totals(self) -> Floats:
        """Rows that each component has."""
        return self.blocks.totals

    def __iter__(self) -> Iterator[Any]:
        model, frees = self.blocks.model, self.blocks.model._free_parameters()
        return (moved_by(model, frees, self.blocks.coordinates, step) for step in self.steps)


def weighted_fits(data: Opened, n_replicates: int, rng: np.random.Generator) -> WeightedFits | None:
    """Maxima of the likelihood on blocks drawn with replacement, from one pass over the rows wherever they are; None
    where a Newton step would not do.
    """
    model = data.model
    frees = model._free_parameters()
    if frees is None or data.kind != "rows" or data.n < BLOCKS * _ROWS:
        return None
    pairs, p = len(coupled_pairs(own_entries(frees))), sum(free.values.size for free in frees)
    if not 0 < pairs <= MOST_PAIRS or BLOCKS * p**2 > _CELLS:
        return None
    told = fill(MixtureTold(model, BLOCKS, int(rng.integers(2**31))), data.source)
    times = rng.multinomial(BLOCKS, np.full(BLOCKS, 1 / BLOCKS), size=n_replicates)
    steps = newton_steps(told, times)
    if steps is None or steps.std(axis=0).max() > _FLAT:
        return None
    return WeightedFits(told, steps)


def newton_steps(blocks: MixtureTold, times: NDArray[np.int64]) -> Floats | None:
    """From the fit to the maxima with each block so many times (R, p); None where there is no maximum.

    What is left of the scores at the fit is the pull of smoothing, which no weights change.
    """
    told, observed = np.diagonal(blocks.outer.sum(axis=0)), blocks.observed()
    if observed is None:
        return None
    kept = determined(blocks.coordinates, told)
    scale = 1 / np.sqrt(np.maximum(told, 1e-300))[kept]
    scores = ((times - 1.0) @ blocks.score[:, kept]) * scale
    flat = np.ascontiguousarray(observed[:, kept][:, :, kept]).reshape(len(blocks.score), -1)
    weighted = (times.astype(np.float64) @ flat).reshape(len(times), len(kept), len(kept)) * np.outer(scale, scale)
    try:
        np.linalg.cholesky(weighted)  # says where there is no maximum
    except np.linalg.LinAlgError:
        return None
    steps = np.zeros((len(times), len(blocks.coordinates)))
    steps[:, kept] = np.linalg.solve(weighted, scores[..., None])[..., 0] * scale
    return steps


def moved_by(model: Any, frees: Sequence[Free], coordinates: Sequence[tuple[Entry, int | None]], step: Floats) -> Any:
    """The model a step away, components in their order."""
    steps = {free.name: np.zeros(free.values.shape) for free in frees}
    for (entry, component), size in zip(coordinates, step, strict=True):
        place: list[Any] = list(entry.place)
        if component is not None:
            place.insert(entry.free.axis or 0, component)
        steps[entry.free.name][tuple(place)] = size
    moved = model._moved({free.name: free.stepped(steps[free.name]) for free in frees})
    moved._in_order = True
    return moved
