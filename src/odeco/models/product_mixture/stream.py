"""One pass over rows of a table that are not kept: the sums of `partial_fit`.

From the first rows come the families and categories of the columns, a reference point and about 2k directions. Rows
only add to sums on those directions; those of tables with few distinct rows are held as counts beside them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import StreamPlan
from odeco.models.product_mixture.moments import feature_map, pair_passes
from odeco.models.product_mixture.policy import POLICY
from odeco.models.product_mixture.solve import CompletedMoments, Summary, WhiteTriples
from odeco.models.product_mixture.table import DistinctRows, distinct_rows, joined
from odeco.moments.base import Additive, PackedSums
from odeco.moments.passes import Passes, run_passes
from odeco.moments.products import FeatureMap, ProductTriples
from odeco.sources.dense import DenseBatch, join_batches
from odeco.sources.rows import TABLES, TableChunk
from odeco.sources.tables import Schema, TableSource, infer_schema
from odeco.whitening.completed import check_completed, completed_range, sparse_blocks

Floats = NDArray[np.float64]


def table_plan(
    n_components: int, family: Any, names: Any, n_first: int, known: Schema | None = None
) -> StreamPlan[TableChunk, StreamedTable]:
    """How product mixtures take rows in chunks; their columns are those of the first, unless they are `known`."""

    def learn(first: TableChunk, rng: np.random.Generator) -> StreamedTable:
        schema, batch = read_table(first, family, names) if known is None else (known, read_rows(first, known))
        schema = Schema(schema.columns)  # without notes: later rows may be different
        directions = _directions(feature_map(batch, schema), max(n_components - 1, 1), rng)
        reference, basis = run_passes(directions, [batch])
        return StreamedTable(schema, reference, basis, n_first)

    return StreamPlan(TABLES, n_first, learn)


def read_table(chunk: TableChunk, family: Any, names: Any) -> tuple[Schema, DenseBatch]:
    """Rows that are held, and what their columns are."""
    schema = infer_schema([piece.rows for piece in chunk.pieces], family, names)
    return schema, read_rows(chunk, schema)


def read_rows(chunk: TableChunk, schema: Schema) -> DenseBatch:
    """Rows as a schema reads them."""
    return join_batches(
        [DenseBatch(piece.rows if piece.read else schema.read(piece.rows), piece.weights) for piece in chunk.pieces]
    )


def _directions(features: FeatureMap, rank: int, rng: np.random.Generator) -> Passes[tuple[Summary, Floats]]:
    """A reference point and scale, and leading directions (D, r')."""
    reference, pairs = yield from pair_passes(features)
    slack, most = rank + POLICY.stream_slack, POLICY.stream_iterations
    _, basis = yield from completed_range(pairs, rank, slack, rng, max_iter=most)
    return reference, basis


class StreamedTable(Additive):
    """Moments on fixed directions; and while no more than `most_distinct` rows differ, these rows with their counts."""

    _on: ClassVar[tuple[str, ...]] = ("schema", "reference", "basis", "most_distinct")

    def __init__(self, schema: Schema, reference: Summary, basis: Floats, most_distinct: int) -> None:
        self.schema, self.reference, self.basis, self.most_distinct = schema, reference, basis, most_distinct
        self.triples = ProductTriples(reference.features, reference.table(basis))
        self.distinct: DistinctRows | None = DistinctRows(np.empty((0, len(schema))), np.empty(0))

    def update(self, chunk: TableChunk) -> Self:
        """Add the rows of a chunk."""
        batch = read_rows(chunk, self.schema)
        self.triples.update(batch)
        self.distinct = self._counted(batch)
        return self

    def emptied(self) -> Self:
        """The same directions without rows; counts are rows, and sums made apart keep none."""
        empty = super().emptied()
        empty.distinct = None
        return empty

    def merge(self, other: Self) -> Self:
        """Add the sums of other rows."""
        if _columns(self.schema) != _columns(other.schema):
            raise ValueError("cannot merge moments of different columns: make the basis once, then split the data.")
        self.triples.merge(other.triples)
        self.distinct = None if other.distinct is None else self._counted(other.distinct.batch())
        return self

    def pack(self) -> PackedSums:
        return self.triples.pack()

    def unpack(self, packed: PackedSums) -> Self:
        self.triples.unpack(packed)
        return self

    def held(self, waiting: TableChunk | None) -> TableSource | None:
        """All rows, with those that wait, as long as they are held."""
        counted = self.distinct if waiting is None else self._counted(read_rows(waiting, self.schema))
        return None if counted is None else joined(self.schema.with_missing(counted.values), counted.batch())

    def _counted(self, more: DenseBatch) -> DistinctRows | None:
        """Distinct rows, as long as all are known and there are no more of them than rows would be held."""
        if self.distinct is None:
            return None
        rows = join_batches([self.distinct.batch(), more])
        found = distinct_rows(np.asarray(rows.rows, dtype=np.float64), rows.weights)
        return found if len(found) <= self.most_distinct else None

    def moments(self, k: int) -> CompletedMoments:
        """Whitened within the directions, with pairs completed from their products with them (Nystrom)."""
        triples = self.triples
        summary = self._summary(triples)
        if k == 1:
            return CompletedMoments(summary, 1)
        known = self._products(triples, summary)
        rows, columns, fill = summary.within()
        values, turn, product = np.zeros(0), self.basis, known
        for _ in range(POLICY.stream_fills):
            product = known + sparse_blocks(len(known), rows, columns, fill) @ self.basis
            values, turn = np.linalg.eigh(self.basis.T @ product)
            values, turn = values[::-1], turn[:, ::-1]
            check_completed(values, k - 1)
            half = product @ (turn[:, : k - 1] / np.sqrt(values[: k - 1]))
            fill = np.einsum("ar,ar->a", half[rows], half[columns])
        white_turn = turn[:, : k - 1] / np.sqrt(values[: k - 1])
        white = WhiteTriples.of(triples, self.reference, self.basis, product).turned(white_turn, product @ white_turn)
        return CompletedMoments(self.reference, 1, white, values)

    def _summary(self, triples: ProductTriples) -> Summary:
        """Means and variances of all rows, in the scale of the reference."""
        features = self.reference.features
        known = np.maximum(triples.observed, 1e-300)[features.owner]
        variance = np.maximum(triples.second / known - triples.mean**2, 0.0)
        return Summary(features, triples.mean, self.reference.spread, variance, self.reference.shares, triples.weight)

    def _products(self, triples: ProductTriples, summary: Summary) -> Floats:
        """Covariances of different columns times the directions, (D, r')."""
        features, owner = summary.features, summary.features.owner
        shares, onehot = summary.shares[owner], features.onehot[:, None]
        cross = triples.cross / triples.weight
        offset = features.column_sums(cross)[owner] * self.reference.mean[:, None]
        cross = (cross - offset * onehot) / (summary.spread * shares)[:, None]
        shift = (triples.mean - self.reference.mean) / summary.spread
        rows, columns, within = summary.within()
        # A column with itself is observed once, not twice: its product is too large by one share.
        inside = sparse_blocks(len(cross), rows, columns, within / shares[rows]) @ self.basis
        middle = triples.projected / triples.weight
        return np.asarray(cross - np.outer(shift, middle) - inside)


def _columns(schema: Schema) -> list[tuple[str, list[Any]]]:
    return [(column.family, list(column.categories)) for column in schema.columns]
