"""What the objects of a model file are made of, in the words of `odeco.persistence.shapes`: one line per attribute.

Compiled loops go on with the sums of `partial_fit` and trust what they find, so that everything a file says of them is
compared with these lines first: types, shapes, ranges, finite values. Every class of the registry has its lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from odeco.persistence.registry import name_of
from odeco.persistence.shapes import Declared, Shapes

_ROWS = {"rows": "float n d", "weights": "?nonnegative n"}
_DENSE = {
    "n_features": "whole d",
    "n": "whole",
    "shift": "finite d",
    "weight": "finite-number",
    "dimension": "whole r",
}

_WORDS: Mapping[str, Declared] = {
    "Batch": ("d", {"counts": "sparse n d", "lengths": "nonnegative n", "weights": "?nonnegative n"}),
    "ScatterSum": ("d r", {"_total": "finite d r", "_copies": "finite c d r", "_n_pending": "whole"}),
    "TripleSums": ("r", {"first": "finite r", "pairs": "finite r r", "cubes": "finite r r r"}),
    "WordFrequencies": (
        "d",
        {
            "n_features": "whole d",
            "basis": "none",
            "n": "whole",
            "_sum": "finite d",
            "_weight": "finite-number",
            "n_at_least": "places 3",
            "n_words": "finite-number",
            "longest": "finite-number",
        },
    ),
    "WordPairs": (
        "d r",
        {
            "n_features": "whole d",
            "basis": "finite d r",
            "n": "whole",
            "_diagonal": "finite d",
            "_products": "ScatterSum d r",
            "_weight": "finite-number",
        },
    ),
    "WordTriples": (
        "d r",
        {
            "n_features": "whole d",
            "basis": "finite d r",
            "n": "whole",
            "_diagonals": "finite 2 d",
            "_weights": "finite 3",
            "_mixed": "ScatterSum d r",
            "_parts": "list of TripleSums r",
        },
    ),
    "WordSums": ("d r", {"pairs": "WordPairs d r", "triples": "WordTriples d r", "noise": "number"}),
    "WordStream": (
        "d",
        {
            "n_features": "whole d",
            "n_components": "positive-whole",
            "word_scale": "?number",
            "basis_size": "whole",
            "frequencies": "WordFrequencies d",
            "_seed": "whole",
            "_sums": "?WordSums d r",
            "_waiting": "list of Batch d",
            "_held": "whole",
        },
    ),
}

_ROW_SUMS: Mapping[str, Declared] = {
    "DenseBatch": ("d", _ROWS),
    "FixedBlocks": ("d", {"size": "positive-whole", "_waiting": "list of DenseBatch d"}),
    "SecondMoments": ("d", {**_DENSE, "basis": "none", "_gram": "finite d+1 d+1"}),
    "FourthMoments": ("d", {**_DENSE, "basis": "finite d r", "_gram": "finite p p"}),
    "VectorMoments": (
        "d",
        {
            **_DENSE,
            "basis": "finite d r",
            "_gram": "finite r+1 r+1",
            "_first": "finite d",
            "_cubes": "finite r r r",
            "_squares": "finite-number",
            "_radial": "finite r",
            "_cross": "?finite d r",
        },
    ),
    "GaussianStream": (
        "d",
        {
            "n_features": "whole d",
            "n_components": "positive-whole",
            "n": "whole",
            "_blocks": "FixedBlocks d",
            "_sums": "?VectorMoments d",
        },
    ),
    "IcaStream": (
        "d",
        {
            "n_features": "whole d",
            "n_components": "?positive-whole",
            "precision": "finite-number",
            "dimension": "whole",
            "n_held": "whole",
            "_held": "list of DenseBatch d",
            "_sums": "?(SecondMoments d; FourthMoments d)",
        },
    ),
}

_TABLES: Mapping[str, Declared] = {
    "Column": (
        "",
        {
            "name": "text",
            "family": "among gaussian bernoulli categorical poisson",
            "categories": "list of value",
            "missing": "flag",
        },
    ),
    "Schema": ("d", {"columns": "list d of Column"}),
    "Families": (
        "d",
        {
            "centre": "finite d",
            "scale": "positive d",
            "bernoulli": "places * < d",
            "categorical": "places c < d",
            "poisson": "places * < d",
            "gaussian": "places * < d",
            "sizes": "places c",
            "masked": "places * < d",
        },
    ),
    "ProductFeatures": (
        "d f",
        {"centre": "finite d", "scale": "positive d", "owner": "places f < d", "onehot": "flags f"},
    ),
    "ProductSummary": (
        "d f",
        {
            "features": "ProductFeatures d f",
            "mean": "finite f",
            "spread": "positive f",
            "variance": "nonnegative f",
            "shares": "finite d",
            "weight": "finite-number",
        },
    ),
    "ProductTriples": (
        "d f r",
        {
            "n_features": "whole d",
            "features": "ProductFeatures d f",
            "basis": "finite f r",
            "n": "whole",
            "weight": "finite-number",
            "observed": "finite d",
            "first": "finite f",
            "second": "finite f",
            "third": "finite f",
            "projected": "finite r",
            "squares": "finite f r",
            "cross": "finite f r",
            "cubes": "finite r r r",
        },
    ),
    "ProductSums": (
        "d",
        {
            "reference": "ProductSummary d f",
            "basis": "finite f r",
            "_triples": "ProductTriples d f r",
            "_blocks": "FixedBlocks d",
        },
    ),
    "DistinctRows": ("d", {"values": "float n d", "weights": "nonnegative n"}),
    "ProductStream": (
        "d",
        {
            "n_components": "positive-whole",
            "family": "value",
            "names": "?any d",
            "n_held": "whole",
            "seed": "whole",
            "n_rows": "whole",
            "schema": "?Schema d",
            "_held": "list of (value; ?nonnegative *)",
            "_sums": "?ProductSums d",
            "distinct": "?DistinctRows d",
        },
    ),
}

_VIEWS: Mapping[str, Declared] = {
    "ColumnSums": (
        "v",
        {
            "widths": "list v of whole w#",
            "n": "whole",
            "weight": "finite-number",
            "_shifts": "?list v of finite w#",
            "_sums": "list v of finite w#",
            "_squares": "list v of finite w#",
        },
    ),
    "ViewBasis": (
        "v",
        {"groups": "list 3 of list of whole", "directions": "list v of finite w# *", "shifts": "list v of finite w#"},
    ),
    "ViewBasisSearch": ("", {"basis": "ViewBasis", "singular_values": "float *", "n_passes": "whole"}),
    "ViewBatch": ("v", {"blocks": "list v of finite n *|sparse n *", "weights": "?nonnegative n"}),
    "ViewKinds": (
        "v",
        {
            "positive": "flags v",
            "whole": "flags v",
            "binary": "flags v",
            "sparse": "flags v",
            "_least_sum": "float v",
            "_most_sum": "float v",
        },
    ),
    "ViewModel": (
        "v",
        {
            "likelihoods": "list v of among gaussian bernoulli multinomial poisson",
            "centers": "list v of finite w#",
            "floors": "list v of nonnegative w#",
            "smoothing": "finite-number",
        },
    ),
    "ViewMoments": (
        "",
        {
            "basis": "ViewBasis",
            "n": "whole",
            "weight": "finite-number",
            "_first": "list of finite *",
            "_pairs": "list 3 of finite * *",
            "_projected": "list 3 of finite *",
            "_cross": "mapping",
            "_triples": "finite * *",
        },
    ),
    "ViewStream": (
        "v",
        {
            "widths": "list v of whole w#",
            "n_components": "positive-whole",
            "basis_size": "whole",
            "columns": "ColumnSums v",
            "kinds": "ViewKinds v",
            "_seed": "whole",
            "_held": "list of ViewBatch v",
            "_moments": "?ViewMoments",
            "_search": "?ViewBasisSearch",
        },
    ),
    "CrowdMoments": (
        "a l",
        {
            "n_classes": "positive-whole l",
            "groups": "places a < 3",
            "_sum": "sparse * *",
            "_views": "ViewMoments",
            "_votes": "finite * *",
        },
    ),
}

_CHAINS: Mapping[str, Declared] = {
    "Sequences": (
        "",
        {"values": "any m|any m d", "codes": "?places *", "offsets": "places s+1", "weights": "?nonnegative s"},
    ),
    "SymbolPairs": (
        "s",
        {
            "n_features": "whole s",
            "basis": "none",
            "n": "whole",
            "_single": "finite s",
            "_first": "finite s",
            "_counts": "finite s s|sparse s s",
            "_weight": "finite-number",
        },
    ),
    "SymbolTriples": (
        "s r",
        {"n_features": "whole s", "basis": "finite s r", "n": "whole", "_core": "finite r r r", "_weight": "number"},
    ),
    "SymbolStream": (
        "s",
        {
            "n_symbols": "whole s",
            "n_components": "positive-whole",
            "seed": "whole",
            "pairs": "SymbolPairs s",
            "triples": "?SymbolTriples s r",
            "_head": "?Sequences",
        },
    ),
    "SequenceFeatures": (
        "d",
        {"center": "finite d", "axes": "finite d d", "knots": "finite * d", "products": "places * 2 < d"},
    ),
    "FeatureBasis": (
        "d f r",
        {
            "features": "SequenceFeatures d",
            "mean": "finite f",
            "projection": "finite f r",
            "lift": "finite f r",
            "spectrum": "finite *",
        },
    ),
    "FeaturePairs": (
        "d f",
        {
            "features": "SequenceFeatures d",
            "weight": "finite-number",
            "pair_weight": "finite-number",
            "total": "finite f",
            "square": "finite f f",
            "lagged": "finite f f",
        },
    ),
    "FeatureTriples": (
        "d f",
        {
            "basis": "FeatureBasis d f r",
            "n": "whole",
            "pair_weight": "finite-number",
            "triple_weight": "finite-number",
            "pairs": "finite r+1 r+1",
            "triples": "finite r+1 r+1 r+1",
        },
    ),
    "FeatureMoments": (
        "d",
        {"pairs": "FeaturePairs d f", "triples": "list of FeatureTriples d f", "advice": "list of text"},
    ),
    "FeatureStream": (
        "d",
        {
            "n_components": "positive-whole",
            "correlated": "flag",
            "moments": "?FeatureMoments d",
            "_head": "?Sequences",
        },
    ),
}

_REPORTS: Mapping[str, Declared] = {
    "Certificate": ("", {"residuals": "float r", "contraction": "float r"}),
    "ConvergenceMonitor": (
        "",
        {"history": "list of number", "iter": "whole", "converged": "flag", "tol": "number", "n_iter": "whole"},
    ),
    "Diagnostics": (
        "",
        {
            "n_components": "?whole",
            "spectrum": "float *",
            "gap": "number",
            "condition": "number",
            "residual": "number",
            "clipped_mass": "number",
            "suggested_components": "?whole",
            "method": "text",
            "n_passes": "whole",
            "advice": "list of text",
            "details": "mapping",
        },
    ),
    "Record": ("", {"iteration": "whole", "value": "number", "gain": "number"}),
    "Status": ("", {"code": "StatusCode", "message": "text", "advice": "text"}),
    "StatusCode": ("", {}),
    "StopReason": ("", {}),
    "Trace": ("", {"records": "list of Record", "n_iter": "whole", "reason": "StopReason"}),
}

CLASSES: Mapping[str, Declared] = {**_WORDS, **_ROW_SUMS, **_TABLES, **_VIEWS, **_CHAINS, **_REPORTS}


def _sequences(data: Any) -> bool:
    """Offsets that ascend from 0 to the number of steps, and codes that are rows of the values."""
    offsets, codes, values = data.offsets, data.codes, data.values
    if offsets[0] != 0 or (np.diff(offsets.astype(np.int64)) <= 0).any():
        return False
    if codes is None:
        return bool(offsets[-1] == len(values))
    return _SHAPES.fits(codes, "places n < m", {"n": int(offsets[-1]), "m": len(values)})


def _symbols(stream: Any) -> bool:
    """Steps of a stream of symbols: those of the alphabet, then -1 for a missing one."""
    return stream._head is None or np.array_equal(stream._head.values, [*range(stream.n_symbols), -1])


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


# What words cannot say.
_RULES = {
    "Batch": _counts,
    "CrowdMoments": _crowd,
    "Families": _layout,
    "FourthMoments": _fourth,
    "ScatterSum": _scatter,
    "Sequences": _sequences,
    "SymbolStream": _symbols,
    "ViewBasis": _groups,
    "ViewMoments": _three_views,
    "WordStream": _documents,
    "WordTriples": _has_parts,
}
_SHAPES = Shapes(name_of, CLASSES, _RULES)
fits = _SHAPES.fits
