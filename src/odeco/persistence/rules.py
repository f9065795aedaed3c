"""What the words of `odeco.persistence.shapes` cannot say of an object: a function per class, True for sound ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


def _sequences(data: Any) -> bool:
    """Offsets that ascend from 0 to the number of steps, and codes that are rows of the values."""
    offsets, codes, values = data.offsets, data.codes, data.values
    if offsets[0] != 0 or (np.diff(offsets) <= 0).any():
        return False
    if codes is None:
        return bool(offsets[-1] == len(values))
    inside = codes.shape == (offsets[-1],) and (codes >= 0).all() and (codes < len(values)).all()
    return bool(inside)


def _symbols(stream: Any) -> bool:
    """Steps of a stream of symbols: those of the alphabet, then -1 for a missing one."""
    return stream._head is None or np.array_equal(stream._head.values, [*range(stream.n_symbols), -1])


def _features(stream: Any) -> bool:
    """Steps of a stream of numbers: rows of them."""
    return stream._head is None or (stream._head.values.ndim == 2 and stream._head.values.dtype.kind == "f")


def _scatter(total: Any) -> bool:
    return bool(len(total._copies) > 0)


def _has_parts(triples: Any) -> bool:
    return bool(triples._parts)


def _documents(stream: Any) -> bool:
    """As many documents wait as it says, and its directions are enough for the components."""
    enough = stream._sums is None or stream._sums.pairs.basis.shape[1] >= stream.n_components
    return enough and bool(stream._held == sum(map(len, stream._waiting)))


def _counts(batch: Any) -> bool:
    return bool((batch.counts.data >= 0).all())


def _fourth(moments: Any) -> bool:
    return bool(len(moments._gram) == moments._n_products(moments.dimension))


def _layout(families: Any) -> bool:
    """Each column belongs to one family."""
    columns = np.concatenate([families.numbers, families.categorical])
    return bool((np.sort(columns) == np.arange(families.centre.size)).all()) and bool((families.sizes > 0).all())


def _complete(batches: Iterable[Any]) -> bool:
    """Rows of models that know no missing values."""
    return all(bool(np.isfinite(batch.rows).all()) for batch in batches)


def _table_rows(stream: Any) -> bool:
    """Rows that are held side by side, or sums over the features of the columns."""
    if stream._sums is None:
        rows = [rows for rows, _ in stream._held]
        tables = bool(rows) and all(getattr(part, "ndim", 0) == 2 for part in rows)
        return tables and len({part.shape[1] for part in rows}) == 1 and sum(map(len, rows)) == stream.n_rows
    if stream.schema is None:
        return False
    found = stream._sums.reference.features, stream._sums._triples.features
    expected = [type(features).of(stream.schema, features.centre, features.scale) for features in found]
    return all(
        np.array_equal(a.owner, b.owner) and np.array_equal(a.onehot, b.onehot)
        for a, b in zip(found, expected, strict=True)
    )


def _groups(basis: Any) -> bool:
    """Three groups that share out the views; those of a group have as many directions."""
    views = sorted(view for group in basis.groups for view in group)
    if views != list(range(len(basis.directions))) or not all(basis.groups):
        return False
    return all(len({basis.directions[view].shape[1] for view in group}) == 1 for group in basis.groups)


def _three_views(moments: Any) -> bool:
    """Sums of the sizes that the basis asks for."""
    widths, (a, b, c) = moments.basis.widths, moments.basis.ranks()
    outside = [(t, g) for t in range(len(widths)) for g in range(3) if t not in moments.basis.groups[g]]
    return (
        _shapes_of(moments._first) == [(width,) for width in widths]
        and _shapes_of(moments._projected) == [(a,), (b,), (c,)]
        and _shapes_of(moments._pairs) == [(a, b), (a, c), (b, c)]
        and moments._triples.shape == (a * b, c)
        and list(moments._cross) == outside
        and _shapes_of(moments._cross.values()) == [(widths[t], (a, b, c)[g]) for t, g in outside]
    )


def _shapes_of(arrays: Iterable[Any]) -> list[tuple[int, ...]]:
    return [np.shape(array) for array in arrays]


def _crowd(moments: Any) -> bool:
    """Labels of each annotator go to the columns of his group."""
    labels, width, found = moments.n_classes, moments.n_classes + 1, moments._sum
    n_votes = len(moments.groups) * labels
    if moments._votes.shape != (n_votes, 3 * width + 1) or found.shape != (n_votes, 3 * labels):
        return False
    columns = np.repeat(moments.groups, labels) * labels + np.tile(np.arange(labels), len(moments.groups))
    once = np.array_equal(found.indptr, np.arange(n_votes + 1)) and np.array_equal(found.indices, columns)
    return once and bool((found.data == 1).all()) and moments._views.basis.widths == (width,) * 3


RULES: Mapping[str, Callable[[Any], bool]] = {
    "Batch": _counts,
    "CrowdMoments": _crowd,
    "Families": _layout,
    "FeatureStream": _features,
    "FourthMoments": _fourth,
    "GaussianStream": lambda stream: _complete(stream._blocks._waiting),
    "IcaStream": lambda stream: _complete(stream._held),
    "ProductStream": _table_rows,
    "ScatterSum": _scatter,
    "Sequences": _sequences,
    "SymbolStream": _symbols,
    "ViewBasis": _groups,
    "ViewMoments": _three_views,
    "WordStream": _documents,
    "WordTriples": _has_parts,
}
