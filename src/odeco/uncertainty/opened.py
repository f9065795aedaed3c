"""The data of intervals, opened where they lie: how much there is, and units of it that fit into memory."""

from __future__ import annotations

import pickle
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.exceptions import MomentWarning
from odeco.fitting.card import Card
from odeco.moments.base import Additive
from odeco.moments.passes import fill
from odeco.sources.base import require_passes
from odeco.sources.chains import Chains
from odeco.sources.kinds import Checkpointed
from odeco.sources.partitions import Partitioned
from odeco.sources.sequences import Sequences
from odeco.uncertainty.units import Units, cut_steps, units_of_rows, units_of_sequences, units_of_time

SEQUENCES = ("symbols", "features", "events")
# Sequences fewer than this are cut into so many blocks of steps; of samples in time as many blocks are drawn.
BLOCKS = 100
# Steps of a block at least: what a block has of the chain must outweigh what is cut off at its ends.
_STEPS = 20
# What of the data is brought into memory at most, where units have to be drawn from it: then a sample.
MOST_BYTES = 2**28


class Size(Additive):
    """How many units there are, those without weight left out, and what they take in memory."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "nbytes")
    _on: ClassVar[tuple[str, ...]] = ("length",)

    def __init__(self, length: int | None = None) -> None:
        self.length, self.n, self.nbytes = length, 0, 0

    def update(self, batch: Any) -> Self:
        """Add those of a batch."""
        self.nbytes += _nbytes(batch)
        if isinstance(batch, Sequences):
            batch = batch if self.length is None else cut_steps(batch, self.length)
            n = batch.n_sequences
        else:
            n = len(batch)
        self.n += n if batch.weights is None else int(np.count_nonzero(batch.weights))
        return self


def _nbytes(batch: Any) -> int:
    """Bytes of the rows of a batch, dense ones in double precision."""
    if isinstance(batch, Sequences):
        return 8 * len(batch) * int(np.prod(batch.values.shape[1:], dtype=np.int64))
    blocks = getattr(batch, "blocks", None) or [getattr(batch, "counts", None)]
    return sum(
        int(12 * block.nnz) if sparse.issparse(block) else 8 * len(batch) * batch.n_features // len(blocks)
        for block in blocks
    )


@dataclass(frozen=True, eq=False)
class Opened:
    """Data in the form of a fit, wherever they are.

    Attributes
    ----------
    model : the coded copy of the fitted model (`MomentEstimator._coded`)
    source : source
    kind : {"rows", "time", "sequences"}
        What is drawn again, or left out: rows, blocks of time, whole sequences or blocks of their steps.
    n : int
        Number of units.
    length : int or None
        Steps of a block of a sequence; None for whole sequences.
    nbytes : int
    """

    model: Any
    source: Any = field(repr=False)
    kind: str
    n: int
    length: int | None = None
    nbytes: int = 0
    _held: dict[str, Units] = field(default_factory=dict, repr=False)

    @property
    def fits(self) -> bool:
        """Whether all units may be held in memory."""
        return self.nbytes <= MOST_BYTES

    def units(self, rng: np.random.Generator) -> Units:
        """All units in memory, or as many as may be, drawn at random."""
        if "units" not in self._held:
            share = min(MOST_BYTES / max(self.nbytes, 1), 1.0)
            self._held["units"] = self._units(share, int(rng.integers(2**31)))
        return self._held["units"]

    def _units(self, share: float, seed: int) -> Units:
        if self.kind == "sequences":
            n_steps = len(self.source)
            batches = list(batches_of(self.source)) if share == 1 else [self.source.sample(int(share * n_steps))]
            return units_of_sequences(batches, self.length, sum(map(len, batches)) / n_steps)
        batches = list(batches_of(self.source, None if share == 1 else Thinned(share, seed, self._stretch)))
        batches = [batch for batch in batches if len(batch)]
        if self.kind == "time":
            return units_of_time(batches, self.n, share)
        found = units_of_rows(self.model, batches)
        return Units(found.data, found.n, found.kind, found.weights, share=found.n / self.n)

    @property
    def _stretch(self) -> int | None:
        """Samples that stay together."""
        return self.length if self.kind == "time" else None

    def announce(self) -> None:
        """Say where a sample stands for all."""
        if not self.fits:
            warnings.warn(
                f"X takes {self.nbytes / 2**20:,.0f} MB, and replicates need rows in memory: they are drawn from "
                f"{MOST_BYTES / self.nbytes:.1%} of them, and errors are scaled to all. Fit with refine=None, or give "
                "files of moments, for replicates of all data.",
                MomentWarning,
                stacklevel=5,
            )


@dataclass(frozen=True)
class Thinned:
    """A share of the rows of a batch, by lot; or of every stretch of them its beginning."""

    share: float
    seed: int
    stretch: int | None = None

    def __call__(self, batch: Any) -> Any:
        """Those of the batch."""
        if self.stretch is not None:
            inside = np.arange(len(batch)) % self.stretch
            return batch.take(np.flatnonzero(inside < self.share * self.stretch))
        return batch.take(np.flatnonzero(lots_of(batch, self.seed).random(len(batch)) < self.share))


def lots_of(batch: Any, seed: int) -> np.random.Generator:
    """A generator for the rows of a batch, the same wherever the batch is: engines may work on it twice."""
    first = batch.observations(0, 1) if isinstance(batch, Sequences) else batch.take(slice(0, 1))
    return np.random.default_rng([seed, len(batch), zlib.crc32(pickle.dumps(first))])


def blocks_by_lot(batch: Any, n: int, n_blocks: int, seed: int) -> NDArray[np.intp]:
    """The block of each of the n units of a batch; those of one batch are shared out evenly."""
    rng = lots_of(batch, seed) if n else np.random.default_rng(seed)
    return np.asarray((rng.permutation(n) + rng.integers(n_blocks)) % n_blocks)


def open_again(card: Card, model: Any, X: Any, lengths: Any, weights: ArrayLike | None) -> Opened:
    """Data of the form that a model was fitted to."""
    if isinstance(X, Checkpointed):
        raise ValueError("checkpoints keep the sums of one fit, and intervals make many: give the data themselves.")
    if hasattr(X, "__next__"):
        raise ValueError(
            "X is an iterator, which can be read only once, and intervals read the data again and again: give an "
            "array, a list of batches, or a function that returns a new iterator at each call."
        )
    if card.rows in SEQUENCES:
        return _open_chains(model, model._reopen(X, lengths=lengths, sequence_weight=weights), weights)
    if lengths is not None:
        raise ValueError(f"lengths says nothing to {card.class_name}, whose rows are no sequences: leave it out.")
    source = model._reopen(X, sample_weight=weights)
    require_passes(source, 2)
    size = fill(Size(), source)
    if size.n == 0 and weights is not None:
        raise ValueError("sample_weight is 0 for every row of X: give some of them weight.")
    coded = model._coded()
    if card.rows == "signals" and not _independent(model, size.n):
        if weights is not None:
            raise ValueError(
                "sample_weight is not used for intervals of signals, which are drawn in blocks: leave it out."
            )
        n = max(min(BLOCKS, size.n), 1)
        return Opened(coded, source, "time", n, max(size.n // n, 1), size.nbytes)
    return Opened(coded, source, "rows", size.n, None, size.nbytes)


def _independent(model: Any, n: int) -> bool:
    """Whether samples of signals tell as much as if neighbours were strangers."""
    return bool(model.diagnostics_.details.get("effective_samples", 0) > 0.9 * n)


def n_sequences(source: Chains) -> int:
    """How many there are."""
    return source.n_sequences if isinstance(source, Sequences) else source.extent.n_sequences


def _open_chains(model: Any, source: Any, weights: ArrayLike | None) -> Opened:
    """Whole sequences where there are enough, else blocks of steps."""
    n_steps = len(source)
    whole = weights is not None or n_sequences(source) >= BLOCKS
    length = None if whole else max(n_steps // BLOCKS, _STEPS)
    size = fill(Size(length), source)
    return Opened(model._coded(), source, "sequences", size.n, length, size.nbytes)


def batches_of(source: Any, function: Any = None) -> Iterator[Any]:
    """The batches of a source one after the other, through a function where they lie."""
    if isinstance(source, Sequences):
        yield source
    else:
        mapped: Any = source.map if isinstance(source, Partitioned) else lambda run: map(run, source)
        yield from source if function is None else mapped(function)


def stretches(batch: Any, length: int | None) -> NDArray[np.intp]:
    """The number of the unit that each row of a batch belongs to, from 0."""
    return np.arange(len(batch)) if length is None else np.arange(len(batch)) // length
