"""Pairs of columns as one column, where single ones are too few (the tensor products of section 4.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.families.tables import Families
from odeco.models.product_mixture.policy import POLICY
from odeco.sources.dense import DenseBatch
from odeco.sources.tables import Column, Schema

Floats = NDArray[np.float64]


def needs_pairs(schema: Schema, n_components: int) -> bool:
    """Whether the columns are discrete, at least six, and have too few free features for three views of rank k - 1."""
    sizes = [column.n_categories for column in schema.columns]
    if min(sizes) == 0 or len(sizes) < 6 or sorted(sizes)[-1] * sorted(sizes)[-2] > POLICY.most_joint:
        return False
    return sum(size - 1 for size in sizes) < 3 * (n_components - 1) + 1


class ColumnPairs:
    """Columns 0 and 1, 2 and 3, ... joined: E[a (x) b | i] = E[a | i] (x) E[b | i] raises the rank up to its square."""

    def __init__(self, schema: Schema) -> None:
        self.original = schema
        J = len(schema)
        self.pairs = [(j, j + 1) if j + 1 < J else (j,) for j in range(0, J, 2)]
        self._sizes = [column.n_categories for column in schema.columns]
        columns = []
        for pair in self.pairs:
            parts = [schema.columns[j] for j in pair]
            joint = tuple(range(int(np.prod([self._sizes[j] for j in pair]))))
            columns.append(
                Column("+".join(part.name for part in parts), "categorical", joint, any(part.missing for part in parts))
            )
        self.schema = Schema(tuple(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the pairs."""
        return tuple(column.name for column in self.schema.columns)

    def __call__(self, batch: DenseBatch) -> DenseBatch:
        """Rows of joint codes; missing where either is."""
        values = np.asarray(batch.rows, dtype=np.float64)
        columns = [
            values[:, p[0]] * self._sizes[p[1]] + values[:, p[1]] if len(p) == 2 else values[:, p[0]]
            for p in self.pairs
        ]
        return DenseBatch(np.column_stack(columns), batch.weights)

    def marginal(self, paired: Families, table: Floats, families: Families) -> Floats:
        """Parameters of the single columns from those of the pairs."""
        probabilities: dict[int, Floats] = {}
        for pair, start, size in zip(self.pairs, paired.blocks, paired.sizes, strict=True):
            joint = table[:, start : start + size]
            if len(pair) == 1:
                probabilities[pair[0]] = joint
                continue
            square = joint.reshape(len(table), self._sizes[pair[0]], self._sizes[pair[1]])
            probabilities[pair[0]], probabilities[pair[1]] = square.sum(axis=2), square.sum(axis=1)
        bernoulli = [probabilities[j][:, 1:] for j in families.bernoulli]
        categorical = [probabilities[j] for j in families.categorical]
        return families.project(np.concatenate([*bernoulli, *categorical], axis=1))
