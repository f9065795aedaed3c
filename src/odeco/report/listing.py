"""The page of a model that brings none of its own: its parts in a table."""

from __future__ import annotations

from typing import Any

from odeco.fitting.card import Part, resolve
from odeco.models.cards import known_card
from odeco.report.page import Inputs, Page
from odeco.report.sure import Sure
from odeco.report.svg import number, percent

_MOST_ITEMS = 10


def listing_page(model: Any, inputs: Inputs) -> Page:
    """Parts of any model, as ``odeco show`` has them."""
    card = known_card(model)
    names = {"vocabulary": inputs.vocabulary, "symbols": inputs.vocabulary, "feature_names": inputs.feature_names}
    found: list[Part] = resolve(card.parts)(model, names, _MOST_ITEMS)
    return Page(
        title=f"{len(found):,} {card.noun(len(found))}",
        lede=card.summary,
        template="listing.html.jinja",
        content={
            "part": card.part,
            "parts": card.plural,
            "facts": list(found[0].facts) if found else [],
            "rows": [_row(i, part, Sure(inputs.intervals)) for i, part in enumerate(found)],
        },
        figures=((str(len(found)), card.noun(len(found))),),
    )


def _row(i: int, part: Part, sure: Sure) -> dict[str, Any]:
    return {
        "name": part.name,
        "colour": sure.colour(i),
        "lost": sure.lost(i),
        "facts": [percent(value) if name == "share" else number(value) for name, value in part.facts.items()],
        "items": ", ".join(str(item["name"]) for item in part.items),
    }
