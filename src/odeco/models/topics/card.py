"""What the cards of both topic models say: topics over words, and the sums of a stream of documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odeco.fitting.card import Card, Stored, shapes


def _has_copies(total: Any) -> bool:
    return bool(len(total._copies) > 0)


def _has_parts(triples: Any) -> bool:
    return bool(triples._parts)


def _check(parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
    """Directions of words are enough for the components."""
    stream = learned.get("_stream")
    if stream is not None and stream.sums is not None:
        found, needed = stream.sums.pairs.basis.shape[1], stream.options.get("n_components", 0)
        if found < needed:
            raise ValueError(f"_stream has {found} directions for {needed} components.")


_STORED: Mapping[str, Stored] = {
    "ScatterSum": Stored(
        "odeco.moments.scatter:ScatterSum",
        "d r",
        shapes("_total: finite d r, _copies: finite c d r, _n_pending: whole"),
        _has_copies,
    ),
    "TripleSums": Stored(
        "odeco.moments.triples:_Sums", "r", shapes("first: finite r, pairs: finite r r, cubes: finite r r r")
    ),
    "WordFrequencies": Stored(
        "odeco.moments.words:WordFrequencies",
        "d",
        shapes(
            "n_features: whole d, basis: none, n: whole, _sum: finite d, _weight: finite-number, "
            "n_at_least: integers 3, n_words: finite-number, longest: finite-number"
        ),
    ),
    "WordPairs": Stored(
        "odeco.moments.words:WordPairs",
        "d r",
        shapes(
            "n_features: whole d, basis: finite d r, n: whole, _diagonal: finite d, _products: ScatterSum d r, "
            "_weight: finite-number"
        ),
    ),
    "WordTriples": Stored(
        "odeco.moments.triples:WordTriples",
        "d r",
        shapes(
            "n_features: whole d, basis: finite d r, n: whole, _diagonals: finite 2 d, _weights: finite 3, "
            "_mixed: ScatterSum d r, _parts: list of TripleSums r"
        ),
        _has_parts,
    ),
    "StreamedWords": Stored(
        "odeco.models.topics.stream:StreamedWords",
        "d",
        shapes(
            "frequencies: WordFrequencies d, pairs: WordPairs d r, triples: WordTriples d r, noise: number, "
            "half_length: finite-number"
        ),
    ),
}


def topic_card(name: str, estimator: str, summary: str, *, learned: Mapping[str, str], **own: Any) -> Card:
    """A card with all that topic models have in common."""
    stream = "maybe stream StreamedWords d; Batch d"
    return Card(
        name,
        f"odeco.models.{estimator}",
        "counts",
        "topic",
        summary,
        learned={"components_": "simplex k d", "_stream": stream, **learned},
        stored=_STORED,
        check=_check,
        parts="odeco.plots.parts:topics",
        frame="odeco.plots.frames:word_frame",
        page="odeco.report.topics:topic_page",
        plots=("topic_shares", "topic_use"),
        **own,
    )
