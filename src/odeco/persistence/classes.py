"""The classes whose objects a model file may hold, and what of them is kept: those of every model, and of the cards.

A file names a class by a word. Only words of registered cards are known: nothing is imported because a file says so.
Exactly the attributes that are declared are kept, so that a class that changes fails its tests until someone has said
what becomes of the files that are out there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from odeco.fitting.card import Card, Stored, path_of, resolve
from odeco.fitting.stored import SHARED
from odeco.models.cards import cards
from odeco.persistence.shapes import Shapes, Sizes


def classes() -> Mapping[str, Stored]:
    """What is declared of each class, by its name in files."""
    return _declared(cards())


@cache
def _declared(known: tuple[Card, ...]) -> Mapping[str, Stored]:
    return {**{name: stored for card in known for name, stored in card.stored.items()}, **SHARED}


@cache
def _names(known: tuple[Card, ...]) -> Mapping[str, str]:
    return {path_of(stored.kind): name for name, stored in _declared(known).items()}


def name_of(value: object) -> str | None:
    """The name under which files hold objects of this very class, None where they do not."""
    return _names(cards()).get(path_of(type(value)))


def class_of(name: str) -> type[Any]:
    """The class of this name; KeyError where there is none."""
    found: type[Any] = resolve(classes()[name].kind)
    return found


def state_of(value: object, name: str) -> dict[str, Any]:
    """The attributes of an object, no more and no fewer than are declared."""
    declared = classes()[name].attributes
    if not is_dataclass(value) and set(vars(value)) != set(declared):
        raise ValueError(f"{name} has attributes {sorted(vars(value))}, model files know {sorted(declared)}.")
    return {attribute: getattr(value, attribute) for attribute in declared}


def rebuild(name: str, state: dict[str, Any]) -> Any:
    """The object with this state; a field of a dataclass that the file does not know has its default."""
    kind, declared = class_of(name), classes()[name].attributes
    if issubclass(kind, Enum):
        raise ValueError(f"{name} has no state.")
    if is_dataclass(kind):
        return kind(**state)
    if set(state) != set(declared):
        raise ValueError(f"{name} needs {sorted(declared)}, the file has {sorted(state)}.")
    value = object.__new__(kind)
    for attribute, content in state.items():
        setattr(value, attribute, content)
    return value


def fits(value: Any, expected: str, sizes: Sizes) -> bool:
    """Whether a value is what is expected; sizes that it tells of are added to those that are known."""
    return Shapes(name_of, classes()).fits(value, expected, sizes)
