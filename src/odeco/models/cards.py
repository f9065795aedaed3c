"""The cards of all models: odeco's own, those of installed packages, those that were registered by hand.

A package brings models of its own by an entry point of the group "odeco.models" that names a `Card` or several:

    [project.entry-points."odeco.models"]
    geometric = "package.card:CARD"
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from odeco.fitting.card import Card
from odeco.fitting.stored import SHARED
from odeco.models.dawid_skene.card import CARD as DAWID_SKENE
from odeco.models.gaussian_mixture.card import CARD as GAUSSIAN_MIXTURE
from odeco.models.hmm.card import CARDS as HMM
from odeco.models.ica.card import CARD as ICA
from odeco.models.lda.card import CARD as LDA
from odeco.models.multiview.card import CARD as MULTIVIEW
from odeco.models.product_mixture.card import CARD as PRODUCT_MIXTURE
from odeco.models.single_topic.card import CARD as SINGLE_TOPIC

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "odeco.models"

# In the order in which people meet them.
OWN: tuple[Card, ...] = (
    LDA,
    SINGLE_TOPIC,
    GAUSSIAN_MIXTURE,
    PRODUCT_MIXTURE,
    MULTIVIEW,
    DAWID_SKENE,
    *HMM,
    ICA,
)
_registered: dict[str, Card] = {}


def cards() -> tuple[Card, ...]:
    """All cards."""
    return (*OWN, *_installed(), *_registered.values())


def card_named(name: str) -> Card | None:
    """The card of this name on the command line, None where there is none."""
    return next((card for card in cards() if card.name == name), None)


def card_of_class(name: str) -> Card | None:
    """The card whose estimator has this name, None where there is none."""
    return next((card for card in cards() if card.class_name == name), None)


def card_of(model: Any) -> Card | None:
    """The card of an estimator, or of the nearest class that it derives from; None for anything else."""
    for kind in type(model).__mro__:
        card = card_of_class(kind.__name__)
        if card is not None and card.load() is kind:
            return card
    return None


def known_card(model: Any) -> Card:
    """The card of an estimator; ValueError where it has none."""
    card = card_of(model)
    if card is None:
        kinds = ", ".join(known.class_name for known in cards())
        raise ValueError(f"model must be one of {kinds}, got {type(model).__name__}.")
    return card


def register(card: Card) -> None:
    """Make a model known until Python ends: for notebooks and tests. One of the same name is replaced, unless it is
    odeco's own or that of an installed package.
    """
    replaced = _registered.get(card.name) if isinstance(card, Card) else None
    _check(card, [other for other in cards() if other is not replaced])
    _registered[card.name] = card


def unregister(name: str) -> None:
    """Forget a model that was registered."""
    if name not in _registered:
        raise ValueError(f"no model {name!r} was registered: there are {', '.join(_registered) or 'none'}.")
    del _registered[name]


@cache
def _installed() -> tuple[Card, ...]:
    """The cards of installed packages; one that cannot be used is left out, and a warning says so."""
    from importlib.metadata import entry_points  # takes longer to load than all of odeco's cards

    found: list[Card] = []
    for entry_point in entry_points(group=GROUP):
        try:
            for card in _loaded(entry_point):
                _check(card, [*OWN, *found])
                found.append(card)
        except Exception as error:  # whatever a package does when it is imported: odeco goes on without it
            warnings.warn(
                f"the model {entry_point.name!r} ({GROUP} = {entry_point.value}) is left out, for its card cannot be "
                f"used ({type(error).__name__}: {error}): mend or remove the package that brings it.",
                stacklevel=2,
            )
    return tuple(found)


def _loaded(entry_point: EntryPoint) -> list[Any]:
    found = entry_point.load()
    return [found] if isinstance(found, Card) or not isinstance(found, Iterable) else list(found)


def _check(card: Any, others: Sequence[Card]) -> None:
    """Raise ValueError for what is no card, or for names that mean something else already."""
    if not isinstance(card, Card):
        raise ValueError(f"a Card is expected, got {card!r}.")
    for other in others:
        if card.name == other.name:
            raise ValueError(f"there is a model {card.name!r} already ({other.class_name}): choose another name.")
        if card.class_name == other.class_name:
            raise ValueError(f"{card.class_name} is the class of the model {other.name!r} already: rename it.")
    known = {**{name: stored for other in others for name, stored in other.stored.items()}, **SHARED}
    for name in card.stored.keys() & known.keys():
        if card.stored[name] != known[name]:
            raise ValueError(f"files hold another {name!r} already: choose another name in stored of {card.name!r}.")
