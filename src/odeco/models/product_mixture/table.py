"""Rows that repeat, counted once: what makes many starts cheap on tables with few distinct rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.sources.dense import DenseBatch, DenseSource
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

# Cells up to which rows are always compared, and first rows that decide for larger tables.
MOST_CELLS = 2**18
_FIRST = 1000


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows of values (U, J) in an order that depends on them alone, and their total weights (U,)."""

    values: Floats = field(repr=False)
    weights: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def batch(self) -> DenseBatch:
        """The rows as a batch."""
        return DenseBatch(self.values, self.weights)

    def source(self) -> DenseSource:
        """The rows as a source."""
        return DenseSource(lambda: [self.batch()], max(len(self), 1))


def distinct_rows(values: Floats, weights: Floats | None) -> DistinctRows:
    """Join equal rows; rows of weight 0 are dropped, so that weights count as repetitions do."""
    mass = np.ones(len(values)) if weights is None else weights
    if not (mass > 0).all():
        values, mass = values[mass > 0], mass[mass > 0]
    _, first, inverse = np.unique(row_hashes(values), return_index=True, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=mass, minlength=len(first))
    return DistinctRows(values[first], totals.astype(np.float64))


def row_hashes(values: Floats) -> NDArray[np.uint64]:
    """A 64-bit number for each row, equal for equal rows: an exact linear hash of the bits, then mixed."""
    bits = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0)).view(np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, size=values.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(29))) * factors
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed.sum(axis=1, dtype=np.uint64))


def worth_joining(schema: Schema, values: Floats) -> bool:
    """Whether equal rows are looked for: always in small tables, in large ones where the first rows have some."""
    if values.size <= MOST_CELLS:
        return True
    return "gaussian" not in schema.families and np.unique(row_hashes(values[:_FIRST])).size < 0.99 * _FIRST


def gather(source: DenseSource, most_cells: int) -> DenseBatch | None:
    """All rows of a source as one batch, or None where there are too many."""
    parts: list[DenseBatch] = []
    cells = 0
    for batch in source:
        cells += batch.rows.size
        if cells > most_cells:
            return None
        parts.append(batch)
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([np.ones(len(p)) if p.weights is None else p.weights for p in parts])
    return DenseBatch(np.concatenate([part.rows for part in parts]), weights)
