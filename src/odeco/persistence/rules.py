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


def _stream(stream: Any) -> bool:
    """Samples that wait are all there are until there are sums; rows are complete, tables and symbols alike."""
    held = [*stream._waiting, *([] if stream.first is None else [stream.first])]
    if stream.sums is None and stream.n != sum(map(len, stream._waiting)):
        return False
    rows = [chunk.rows for chunk in held if hasattr(chunk, "rows")]
    steps = [chunk for chunk in held if hasattr(chunk, "offsets")]
    return all(bool(np.isfinite(part).all()) for part in rows) and _alike(steps) and _enough(stream)


def _alike(steps: list[Any]) -> bool:
    """Symbols of one alphabet, then -1 for a missing one; or rows of numbers."""
    if any(data.codes is not None for data in steps):
        alphabet = [*range(len(steps[0].values) - 1), -1]
        return all(data.values.dtype.kind == "i" and np.array_equal(data.values, alphabet) for data in steps)
    return all(data.values.ndim == 2 and data.values.dtype.kind == "f" for data in steps)


def _enough(stream: Any) -> bool:
    """Directions of words are enough for the components."""
    pairs = getattr(stream.sums, "pairs", None)
    basis = None if pairs is None or stream.first is not None else pairs.basis
    return basis is None or bool(basis.shape[1] >= stream.options.get("n_components", 0))


def _neighbours(triples: Any) -> bool:
    """Observations beside the steps before and after, and products as the features have them."""
    ndim = 3 if len(triples.basis.features.products) else 2
    same = triples.products.ndim == triples.seen_products.ndim == ndim
    return same and bool(len(triples.values) == 2 * len(triples.pairs))


def _scatter(total: Any) -> bool:
    return bool(len(total._copies) > 0)


def _has_parts(triples: Any) -> bool:
    return bool(triples._parts)


def _counts(batch: Any) -> bool:
    return bool((batch.counts.data >= 0).all())


def _fourth(moments: Any) -> bool:
    return bool(len(moments._gram) == moments._n_products(moments.dimension))


def _layout(families: Any) -> bool:
    """Each column belongs to one family."""
    columns = np.concatenate([families.numbers, families.categorical])
    return bool((np.sort(columns) == np.arange(families.centre.size)).all()) and bool((families.sizes > 0).all())


def _chunk(chunk: Any) -> bool:
    """Rows side by side, each with its weight."""
    tables = [piece.rows for piece in chunk.pieces]
    sound = all(getattr(rows, "ndim", 0) == 2 for rows in tables) and len({rows.shape[1] for rows in tables}) == 1
    return sound and all(piece.weights is None or len(piece.weights) == len(piece.rows) for piece in chunk.pieces)


def _table(sums: Any) -> bool:
    """Sums over the features of the columns."""
    found = sums.reference.features, sums.triples.features
    expected = [type(features).of(sums.schema, features.centre, features.scale) for features in found]
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
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in moments._cross.values())
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
    "FeatureTriples": _neighbours,
    "FourthMoments": _fourth,
    "MomentStream": _stream,
    "ScatterSum": _scatter,
    "Sequences": _sequences,
    "StreamedTable": _table,
    "TableChunk": _chunk,
    "ViewBasis": _groups,
    "ViewMoments": _three_views,
    "WordTriples": _has_parts,
}
