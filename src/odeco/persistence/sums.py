"""What the objects of a model file are made of, in the words of `odeco.persistence.shapes`: one line per attribute.

Compiled loops go on with the sums of `partial_fit` and trust what they find, so that everything a file says of them is
compared with these lines first: types, shapes, ranges, finite values. Every class of the registry has its lines.
"""

from __future__ import annotations

from collections.abc import Mapping

from odeco.persistence.registry import name_of
from odeco.persistence.rules import RULES
from odeco.persistence.shapes import Declared, Shapes

_ROWS = {"rows": "values n d", "weights": "?nonnegative n"}
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
            "n_at_least": "integers 3",
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
    "StreamedWords": (
        "d",
        {
            "frequencies": "WordFrequencies d",
            "pairs": "WordPairs d r",
            "triples": "WordTriples d r",
            "noise": "number",
            "half_length": "finite-number",
        },
    ),
}

_ROW_SUMS: Mapping[str, Declared] = {
    "DenseBatch": ("d", _ROWS),
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
    "StreamedChannels": (
        "d",
        {"second": "SecondMoments d", "fourth": "FourthMoments d", "precision": "finite-number"},
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
    "Schema": ("d", {"columns": "list d of Column", "notes": "list of text"}),
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
    "DistinctRows": ("d", {"values": "values n d", "weights": "nonnegative n"}),
    "StreamedTable": (
        "d",
        {
            "schema": "Schema d",
            "reference": "ProductSummary d f",
            "basis": "finite f r",
            "most_distinct": "whole",
            "triples": "ProductTriples d f r",
            "distinct": "?DistinctRows d",
        },
    ),
    "TablePiece": ("", {"rows": "value", "weights": "?nonnegative *", "read": "flag"}),
    "TableChunk": ("d", {"pieces": "list of TablePiece"}),
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
    "StreamedViews": (
        "v",
        {"search": "ViewBasisSearch", "look": "ViewLook v", "moments": "ViewMoments"},
    ),
    "StreamedVotes": (
        "a l",
        {
            "n_labels": "positive-whole l",
            "groups": "list g of places a < 3",
            "groupings": "list g of CrowdMoments a l",
        },
    ),
    "ViewLook": ("v", {"columns": "ColumnSums v", "kinds": "ViewKinds v"}),
    "VoteBatch": ("", {"votes": "sparse n *", "weights": "?nonnegative n"}),
}

_CHAINS: Mapping[str, Declared] = {
    "Sequences": (
        "d",
        {"values": "any m|any m d", "codes": "?places *", "offsets": "integers s+1", "weights": "?nonnegative s"},
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
            "first_weight": "finite-number",
            "pairs": "finite r+1 r+1",
            "triples": "finite r+1 r+1 r+1",
            "first": "finite r+1",
            "seen": "finite h d",
            "values": "finite h d",
            "seen_products": "finite h d|finite h d d",
            "products": "finite h d|finite h d d",
        },
    ),
    "FeatureMoments": (
        "d",
        {"pairs": "FeaturePairs d f", "triples": "list of FeatureTriples d f", "advice": "list of text"},
    ),
    "StreamedFeatures": ("d", {"found": "FeatureMoments d", "triples": "list of FeatureTriples d f"}),
    "StreamedSymbols": ("s", {"pairs": "SymbolPairs s", "triples": "SymbolTriples s r"}),
}

_STREAMS: Mapping[str, Declared] = {
    "MomentStream": (
        "",
        {
            "seed": "whole",
            "options": "mapping",
            "n": "whole",
            "sums": "value",
            "first": "value",
            "_waiting": "list of value",
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

CLASSES: Mapping[str, Declared] = {
    **_WORDS,
    **_ROW_SUMS,
    **_TABLES,
    **_VIEWS,
    **_CHAINS,
    **_STREAMS,
    **_REPORTS,
}

fits = Shapes(name_of, CLASSES, RULES).fits
