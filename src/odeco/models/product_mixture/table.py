"""Rows of a table for a fit: checked, and those that repeat counted once, which makes many starts cheap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_feature_names, validate_data

from odeco.fitting.rows import check_width, take_names
from odeco.models.product_mixture.policy import POLICY
from odeco.sources.counts import check_weights
from odeco.sources.dense import DenseBatch, DenseSource, is_matrix, join_batches
from odeco.sources.kinds import fitted_by
from odeco.sources.partitions import is_elsewhere
from odeco.sources.rows import TableChunk, TablePiece
from odeco.sources.tables import Schema, TableSource, open_table
from odeco.sources.values import is_frame, plain_array

Floats = NDArray[np.float64]


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
    if values.size <= POLICY.most_compared_cells:
        return True
    first = row_hashes(values[: POLICY.first_compared])
    return (
        "gaussian" not in schema.families and np.unique(first).size < POLICY.most_distinct_share * POLICY.first_compared
    )


def gather(source: DenseSource) -> DenseBatch | None:
    """All rows as one batch; None where they are elsewhere, or too many."""
    if is_elsewhere(source):
        return None
    parts: list[DenseBatch] = []
    cells = 0
    for batch in source:
        cells += batch.rows.size
        if cells > POLICY.most_cells:
            return None
        parts.append(batch)
    return _undivided(parts) or join_batches(parts)


def _undivided(parts: list[DenseBatch]) -> DenseBatch | None:
    """The table that these are cut from, if there is one: rows in memory are not copied."""
    whole, start = parts[0].rows.base, 0
    for part in parts:
        rows = part.rows
        if whole is None or rows.base is not whole or part.weights is not None or rows.strides != whole.strides:
            return None
        if rows.shape[1:] != whole.shape[1:] or rows.ctypes.data != whole.ctypes.data + start * whole.strides[0]:
            return None
        start += len(rows)
    return DenseBatch(whole) if whole is not None and start == len(whole) else None


def joined(schema: Schema, batch: DenseBatch) -> TableSource:
    """A source of one batch, in which equal rows are joined where that is worth it."""
    values, weights = np.asarray(batch.rows, dtype=np.float64), batch.weights
    if worth_joining(schema, values):
        rows = distinct_rows(values, weights)
        values, weights = rows.values, None if (rows.weights == 1.0).all() else rows.weights
    whole = DenseBatch(values, weights)
    return TableSource(schema, lambda: [whole], batch_size=max(len(whole), 1))


def open_rows(model: Any, X: Any, sample_weight: ArrayLike | None = None, schema: Schema | None = None) -> Any:
    """A source of a table to fit on, one matrix checked as scikit-learn does; labels keep their columns as they are.

    With a schema the columns must be those of the fit that it comes from.
    """
    names, reset = None, schema is None
    if is_matrix(X):
        X = check_matrix(model, X, reset=reset)
        names = getattr(model, "feature_names_in_", None)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, X.shape[0])
    take_names(model, X, reset=reset)
    source = open_table(fitted_by(model, X), model.family, sample_weight, schema=schema, names=names)
    if reset:
        model.n_features_in_ = source.n_features
    check_width(model, source.n_features)
    return source


def row_chunks(
    model: Any, X: Any, schema: Schema | None, sample_weight: ArrayLike | None, *, reset: bool
) -> Iterator[TableChunk]:
    """The same for a stream: rows as they are, or as a schema reads them once it is known, so that what does not fit
    is told at once.
    """
    if not is_matrix(X):
        for batch in open_table(X, model.family, sample_weight, schema=schema):
            yield TableChunk((TablePiece(batch.rows, batch.weights, read=schema is not None),))
        return
    table = check_matrix(model, X, reset=reset)
    model.n_features_in_ = table.shape[1]
    weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
    yield TableChunk((TablePiece(table if schema is None else schema.read(table), weights, read=schema is not None),))


def check_matrix(model: Any, X: Any, *, reset: bool) -> Any:
    """One table, with names and number of columns checked; numbers as scikit-learn reads them."""
    array = X if is_frame(X) or hasattr(X, "tocsr") else plain_array(X)
    if hasattr(X, "tocsr") or _is_numeric(array):
        block = X if hasattr(X, "columns") else array  # a DataFrame of any library has names
        checked = validate_data(model, block, dtype="numeric", ensure_all_finite="allow-nan", reset=reset)
        return array if isinstance(array, np.ndarray) and array.dtype.kind in "biu" else checked
    _check_feature_names(model, X, reset=reset)
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    if not reset:
        check_width(model, array.shape[1])
    return array


def _is_numeric(X: Any) -> bool:
    """Whether the types of an array or of a DataFrame's columns are those of numbers: no need to look at values."""
    return all(getattr(dtype, "kind", "O") in "biuf" for dtype in (X.dtypes if is_frame(X) else [X.dtype]))
