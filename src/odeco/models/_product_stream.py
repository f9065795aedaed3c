"""One pass over rows that are not kept: the sums of `ProductMixture.partial_fit`.

The first rows, a fixed number whatever the chunks, are held: as long as there are no more, fitting them is all there is
to do. From them come the families and categories of the columns, a reference point and about 2k directions. Rows
after that only add to sums on those directions; tables with few distinct rows go on being held as counts.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.models._product_moments import explicit_pairs, first_look, implicit_pairs, one_component, summarize
from odeco.models._product_solve import ProductStart, Summary, WhiteTriples, solve_triples
from odeco.models._product_table import DistinctRows, distinct_rows
from odeco.models._shared_basis import SharedBasis
from odeco.models.mixture_base import FixedBlocks
from odeco.moments.products import MOST_EXPLICIT, ProductMarginals, ProductPairs, ProductTriples
from odeco.sources.dense import DenseBatch, DenseSource
from odeco.sources.tables import Schema, infer_schema
from odeco.whitening.completed import CompletedPairs, check_completed, completed_range

Floats = NDArray[np.float64]
Chunk = tuple[Any, Floats | None]

# Rows of a block of sums: any chunks add up to the same blocks.
_BLOCK = 4096
# Rounds of filling the products of a column with itself.
_FILLS = 20


class ProductStream(SharedBasis):
    """Rows that arrive in chunks."""

    def __init__(self, n_components: int, family: Any, n_held: int, names: Any, seed: int) -> None:
        self.n_components, self.family, self.n_held, self.names, self.seed = n_components, family, n_held, names, seed
        self.n_rows = 0
        self.schema: Schema | None = None
        self._held: list[Chunk] = []
        self._sums: _Sums | None = None
        self.distinct: DistinctRows | None = None

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self._held[0][0].shape[1]) if self.schema is None else len(self.schema)

    @property
    def n(self) -> int:
        """Rows so far."""
        return self.n_rows

    @property
    def started(self) -> bool:
        return self._sums is not None

    def settle(self) -> None:
        if self._sums is None and self._held:
            self._begin()
        if self._sums is not None:
            self._sums.settle()
        self.distinct = None  # they are rows

    def _emptied(self) -> ProductStream:
        assert self._sums is not None
        empty = copy(self)
        empty._sums, empty.n_rows = self._sums.emptied(), 0
        return empty

    def _merge(self, other: ProductStream) -> None:
        assert self._sums is not None
        assert other._sums is not None
        if _columns(self.schema) != _columns(other.schema):
            raise ValueError("cannot merge moments of different columns: make the basis once, then split the data.")
        self._sums.merge(other._sums)
        self.n_rows += other.n_rows

    @property
    def complete(self) -> bool:
        """Whether all rows so far are held, as rows or as counts."""
        return self._sums is None or self.distinct is not None

    def update(self, rows: Any, weights: Floats | None) -> None:
        """Add a chunk; `rows` is an array or DataFrame that the stream may keep."""
        n = rows.shape[0]
        room = self.n_held - self.n_rows if self._sums is None else 0
        if self._sums is None:
            self.n_rows += min(n, room)
            self._held.append((_cut(rows, 0, room), None if weights is None else weights[:room]))
            if n <= room:
                return
            self._begin()
            rows, weights = _cut(rows, room, n), None if weights is None else weights[room:]
        assert self._sums is not None
        assert self.schema is not None
        self.push(DenseBatch(self.schema.read(rows), weights))

    def push(self, batch: DenseBatch) -> None:
        """Add rows as the schema reads them, where there is one."""
        assert self._sums is not None
        self.n_rows += len(batch)
        self._sums.push(batch)
        self._count(np.asarray(batch.rows, dtype=np.float64), batch.weights)

    def table(self) -> tuple[Schema, DenseSource]:
        """All rows, where they are held."""
        if self._sums is None:
            schema = infer_schema([rows for rows, _ in self._held], self.family, self.names)
            return schema, DenseSource(lambda: [self._read(schema)])
        assert self.distinct is not None
        assert self.schema is not None
        return self.schema.with_missing(self.distinct.values), self.distinct.source()

    def start(self, rng: np.random.Generator) -> ProductStart:
        """The moment estimate of all rows, where they are not held."""
        assert self._sums is not None
        return self._sums.start(self.n_components, rng)

    def _read(self, schema: Schema) -> DenseBatch:
        parts = [(schema.read(rows), weights) for rows, weights in self._held]
        weighted = any(weights is not None for _, weights in parts)
        masses = [np.ones(len(values)) if weights is None else weights for values, weights in parts]
        return DenseBatch(np.concatenate([v for v, _ in parts]), np.concatenate(masses) if weighted else None)

    def _begin(self) -> None:
        """Families, reference and directions from the rows held so far."""
        found = infer_schema([rows for rows, _ in self._held], self.family, self.names)
        self.schema = Schema(found.columns)  # without notes: later rows may be different
        batch = self._read(self.schema)
        self._sums = _Sums(self.schema, batch, self.n_components, np.random.default_rng(self.seed))
        self._held = []
        self.distinct = distinct_rows(np.asarray(batch.rows, dtype=np.float64), batch.weights)
        self._sums.push(batch)

    def _count(self, values: Floats, weights: Floats | None) -> None:
        """Keep distinct rows as long as there are no more of them than rows would be held."""
        if self.distinct is None:
            return
        mass = np.ones(len(values)) if weights is None else weights
        joined = distinct_rows(
            np.concatenate([self.distinct.values, values]), np.concatenate([self.distinct.weights, mass])
        )
        self.distinct = joined if len(joined) <= self.n_held else None


class _Sums:
    """Moments on fixed directions, in fixed blocks."""

    def __init__(self, schema: Schema, batch: DenseBatch, n_components: int, rng: np.random.Generator) -> None:
        source = DenseSource(lambda: [batch], max(len(batch), 1))
        features = first_look(source, schema)
        rank = max(n_components - 1, 1)
        if features.n_features <= MOST_EXPLICIT:
            pairs = ProductPairs(features).update(batch)
            self.reference = summarize(pairs, np.diag(pairs.covariance()))
            known = explicit_pairs(pairs, self.reference)
        else:
            marginals = ProductMarginals(features).update(batch)
            self.reference = summarize(marginals, marginals.variance)
            known = implicit_pairs(source, self.reference)
        self.basis = completed_range(known, rank, rank + 10, rng, max_iter=30)[1]
        self._clear()

    def _clear(self) -> None:
        self._triples = ProductTriples(self.reference.features, self.reference.table(self.basis))
        self._blocks = FixedBlocks(_BLOCK)

    def emptied(self) -> _Sums:
        """The same directions without any rows."""
        empty = copy(self)
        empty._clear()
        return empty

    def settle(self) -> None:
        """Add the rows that wait for a block."""
        if self._blocks.waiting is not None:
            self._triples.update(self._blocks.waiting)
            self._blocks = FixedBlocks(_BLOCK)

    def merge(self, other: _Sums) -> None:
        """Add the sums of other rows, none of which wait."""
        self._triples.merge(other._triples)

    def push(self, batch: DenseBatch) -> None:
        for block in self._blocks.push(batch):
            self._triples.update(block)

    def start(self, k: int, rng: np.random.Generator) -> ProductStart:
        """Whiten within the directions, with pairs completed from their products with them (Nystrom), then solve."""
        triples, rest = self._triples, self._blocks.waiting
        if rest is not None:
            triples = deepcopy(triples).update(rest)
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
        return solve_triples(white, self.reference, rng, values, 1)

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


def _columns(schema: Schema | None) -> list[tuple[str, list[Any]]]:
    return [] if schema is None else [(column.family, list(column.categories)) for column in schema.columns]


def _cut(rows: Any, start: int, stop: int) -> Any:
    return deepcopy(rows.iloc[start:stop]) if hasattr(rows, "iloc") else np.array(rows[start:stop])
