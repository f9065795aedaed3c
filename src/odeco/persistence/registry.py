"""The classes whose objects a model file may hold, and what of them is kept.

A file names a class by the left column. Only these are known: nothing is imported because a file says so. Dataclasses
are rebuilt from their fields; of the others exactly the attributes listed here are kept, so that a class that changes
fails its tests until someone has said what becomes of the files that are out there.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

# Name in the file: (class, attributes; dataclasses have fields).
_CLASSES: dict[str, tuple[str, str]] = {
    "Batch": ("sources.base.Batch", ""),
    "Certificate": ("decomposition.result.Certificate", ""),
    "Column": ("sources.tables.Column", ""),
    "ColumnSums": ("moments.views.ColumnSums", "widths n weight _shifts _sums _squares"),
    "ConvergenceMonitor": ("models.hmm.base.ConvergenceMonitor", ""),
    "CrowdMoments": ("moments.crowd.CrowdMoments", "groups n_classes _sum _views _votes"),
    "DenseBatch": ("sources.dense.DenseBatch", ""),
    "Diagnostics": ("diagnostics.Diagnostics", ""),
    "DistinctRows": ("models.product_mixture.table.DistinctRows", ""),
    "Families": ("refinement.families.Families", ""),
    "FeatureBasis": ("moments.sequence_features.FeatureBasis", ""),
    "FeatureMoments": ("models.hmm.starts.FeatureMoments", ""),
    "FeaturePairs": (
        "moments.sequence_features.FeaturePairs",
        "features weight pair_weight total square lagged",
    ),
    "FeatureTriples": (
        "moments.sequence_features.FeatureTriples",
        "basis n pair_weight triple_weight first_weight pairs triples first seen values seen_products products",
    ),
    "FourthMoments": ("moments.cumulants.FourthMoments", "n_features basis n dimension shift weight _gram"),
    "MomentStream": ("fitting.stream.MomentStream", "seed options n sums first _waiting"),
    "ProductFeatures": ("moments.products.FeatureMap", ""),
    "ProductSummary": ("models.product_mixture.solve.Summary", ""),
    "ProductTriples": (
        "moments.products.ProductTriples",
        "n_features basis n weight features observed first second third projected squares cross cubes",
    ),
    "Record": ("refinement.loop.Record", ""),
    "ScatterSum": ("moments.scatter.ScatterSum", "_total _copies _n_pending"),
    "Schema": ("sources.tables.Schema", ""),
    "SecondMoments": ("moments.cumulants.SecondMoments", "n_features basis n dimension shift weight _gram"),
    "SequenceFeatures": ("moments.sequence_features.FeatureMap", ""),
    "Sequences": ("sources.sequences.Sequences", ""),
    "Status": ("decomposition.result.Status", ""),
    "StatusCode": ("decomposition.result.StatusCode", ""),
    "StopReason": ("refinement.loop.StopReason", ""),
    "StreamedChannels": ("models.ica.data.StreamedChannels", "second fourth precision"),
    "StreamedFeatures": ("models.hmm.stream.StreamedFeatures", "triples found"),
    "StreamedSymbols": ("models.hmm.stream.StreamedSymbols", "pairs triples"),
    "StreamedTable": (
        "models.product_mixture.stream.StreamedTable",
        "schema reference basis most_distinct triples distinct",
    ),
    "StreamedViews": ("models.multiview.stream.StreamedViews", "search look moments"),
    "StreamedVotes": ("models.dawid_skene.stream.StreamedVotes", "groups n_labels groupings"),
    "StreamedWords": ("models.topics.stream.StreamedWords", "frequencies pairs triples noise half_length"),
    "SymbolPairs": ("moments.sequences.SymbolPairs", "n_features basis n _counts _single _first _weight"),
    "SymbolTriples": ("moments.sequences.SymbolTriples", "n_features basis n _core _weight"),
    "TableChunk": ("sources.rows.TableChunk", ""),
    "TablePiece": ("sources.rows.TablePiece", ""),
    "Trace": ("refinement.loop.Trace", ""),
    "TripleSums": ("moments.triples._Sums", "first pairs cubes"),
    "VectorMoments": (
        "moments.vectors.VectorMoments",
        "n_features basis n dimension shift weight _gram _first _cubes _squares _radial _cross",
    ),
    "ViewBasis": ("moments.views.ViewBasis", ""),
    "ViewBasisSearch": ("models.multiview.moments.BasisSearch", ""),
    "ViewBatch": ("sources.views.ViewBatch", ""),
    "ViewKinds": ("models.multiview.likelihoods.ViewKinds", "positive whole binary sparse _least_sum _most_sum"),
    "ViewLook": ("models.multiview.likelihoods.ViewLook", "columns kinds"),
    "ViewModel": ("refinement.views.ViewModel", ""),
    "ViewMoments": ("moments.views.ViewMoments", "basis n weight _first _pairs _projected _cross _triples"),
    "VoteBatch": ("sources.votes.VoteBatch", ""),
    "WordFrequencies": (
        "moments.words.WordFrequencies",
        "n_features basis n longest n_at_least n_words _sum _weight",
    ),
    "WordPairs": ("moments.words.WordPairs", "n_features basis n _diagonal _products _weight"),
    "WordTriples": ("moments.triples.WordTriples", "n_features basis n _diagonals _mixed _parts _weights"),
}
_NAMES = {f"odeco.{path}": name for name, (path, _) in _CLASSES.items()}


def name_of(value: object) -> str | None:
    """The name under which files hold objects of this very class, None where they do not."""
    kind = type(value)
    return _NAMES.get(f"{kind.__module__}.{kind.__qualname__}")


@cache
def class_of(name: str) -> type[Any]:
    """The class of this name; KeyError where there is none."""
    module, _, attribute = _CLASSES[name][0].rpartition(".")
    return getattr(import_module(f"odeco.{module}"), attribute)  # type: ignore[no-any-return]


@cache
def attributes_of(name: str) -> tuple[str, ...]:
    """What is kept of objects of this class."""
    kind = class_of(name)
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else tuple(_CLASSES[name][1].split())


def state_of(value: object, name: str) -> dict[str, Any]:
    """The attributes of an object, no more and no fewer than are declared."""
    declared = attributes_of(name)
    if not is_dataclass(value) and set(vars(value)) != set(declared):
        raise ValueError(f"{name} has attributes {sorted(vars(value))}, model files know {sorted(declared)}.")
    return {attribute: getattr(value, attribute) for attribute in declared}


def rebuild(name: str, state: dict[str, Any]) -> Any:
    """The object with this state; a field of a dataclass that the file does not know has its default."""
    kind = class_of(name)
    if issubclass(kind, Enum):
        raise ValueError(f"{name} has no state.")
    if is_dataclass(kind):
        return kind(**state)
    if set(state) != set(attributes_of(name)):
        raise ValueError(f"{name} needs {sorted(attributes_of(name))}, the file has {sorted(state)}.")
    value = object.__new__(kind)
    for attribute, content in state.items():
        setattr(value, attribute, content)
    return value
