"""One pass over rows of a table that are not kept: the sums of `partial_fit`.

From the first rows come the families and categories of the columns, a reference point and about 2k directions. Rows
only add to sums on those directions; those of tables with few distinct rows are held as counts beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.fitting.stream import StreamPlan
from odeco.models.product_mixture.moments import explicit_pairs, first_look, implicit_pairs, one_component, summarize
from odeco.models.product_mixture.solve import ProductStart, Summary, WhiteTriples, solve_triples
from odeco.models.product_mixture.table import DistinctRows, distinct_rows
from odeco.moments.base import Additive, PackedSums
from odeco.moments.products import MOST_EXPLICIT, ProductMarginals, ProductPairs, ProductTriples
from odeco.sources.dense import DenseBatch, DenseSource, join_batches
from odeco.sources.rows import TABLES, TableChunk
from odeco.sources.tables import Schema, infer_schema
from odeco.whitening.completed import CompletedPairs, check_completed, completed_range

Floats = NDArray[np.float64]

# Rounds of filling the products of a column with itself.
_FILLS = 20


def table_plan(n_components: int, family: Any, names: Any, n_first: int) -> StreamPlan[TableChunk, StreamedTable]:
    """How product mixtures take rows in chunks."""

    def learn(first: TableChunk, rng: np.random.Generator) -> StreamedTable:
        schema, batch = read_table(first, family, names)
        schema = Schema(schema.columns)  # without notes: later rows may be different
        reference, basis = _directions(schema, batch, n_components, rng)
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


def _directions(
    schema: Schema, batch: DenseBatch, n_components: int, rng: np.random.Generator
) -> tuple[Summary, Floats]:
    """A reference point and scale, and leading directions (D, r')."""
    source = DenseSource(lambda: [batch], max(len(batch), 1))
    features = first_look(source, schema)
    rank = max(n_components - 1, 1)
    if features.n_features <= MOST_EXPLICIT:
        pairs = ProductPairs(features).update(batch)
        reference = summarize(pairs, np.diag(pairs.covariance()))
        known = explicit_pairs(pairs, reference)
    else:
        marginals = ProductMarginals(features).update(batch)
        reference = summarize(marginals, marginals.variance)
        known = implicit_pairs(source, reference)
    return reference, completed_range(known, rank, rank + 10, rng, max_iter=30)[1]


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
        if self.distinct is not None:
            self._count([self.distinct, distinct_rows(np.asarray(batch.rows, dtype=np.float64), batch.weights)])
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
        if self.distinct is not None and other.distinct is not None:
            self._count([self.distinct, other.distinct])
        else:
            self.distinct = None
        return self

    def pack(self) -> PackedSums:
        return self.triples.pack()

    def unpack(self, packed: PackedSums) -> Self:
        self.triples.unpack(packed)
        return self

    def _count(self, parts: Iterable[DistinctRows]) -> None:
        """Keep distinct rows as long as there are no more of them than rows would be held."""
        parts = list(parts)
        joined = distinct_rows(
            np.concatenate([part.values for part in parts]), np.concatenate([part.weights for part in parts])
        )
        self.distinct = joined if len(joined) <= self.most_distinct else None

    def start(self, k: int, rng: np.random.Generator, method: Decomposer = AUTO) -> ProductStart:
        """Whiten within the directions, with pairs completed from their products with them (Nystrom), then solve."""
        triples = self.triples
        summary = self._summary(triples)
        if k == 1:
            return one_component(summary, 1)
        known = self._products(triples, summary)
        rows, columns, fill = summary.within()
        places = CompletedPairs(len(known), lambda V: V, rows, columns, fill)
        values, turn, product = np.zeros(0), self.basis, known
        for _ in range(_FILLS):
            product = known + places.filled(fill) @ self.basis
            values, turn = np.linalg.eigh(self.basis.T @ product)
            values, turn = values[::-1], turn[:, ::-1]
            check_completed(values, k - 1)
            half = product @ (turn[:, : k - 1] / np.sqrt(values[: k - 1]))
            fill = np.einsum("ar,ar->a", half[rows], half[columns])
        white_turn = turn[:, : k - 1] / np.sqrt(values[: k - 1])
        matrix, lift = self.basis @ white_turn, product @ white_turn
        white = WhiteTriples.of(triples, self.reference, matrix, lift, white_turn)
        return solve_triples(white, self.reference, rng, values, 1, method=method)

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
        own = CompletedPairs(len(cross), lambda V: V, rows, columns, within)
        # A column with itself is observed once, not twice: its product is too large by one share.
        inside = own.filled(within / shares[rows]) @ self.basis
        middle = triples.projected / triples.weight
        return np.asarray(cross - np.outer(shift, middle) - inside)


def _columns(schema: Schema) -> list[tuple[str, list[Any]]]:
    return [(column.family, list(column.categories)) for column in schema.columns]
