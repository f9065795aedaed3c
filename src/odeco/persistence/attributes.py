"""What the estimators have learned, compared with their cards: when a model is saved and when it is loaded.

Compiled loops trust what stands there, and the sums of `partial_fit` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odeco.fitting.card import ByOption, Card, resolve
from odeco.persistence.classes import fits

_MAYBE = "maybe "


def check_learned(card: Card, parameters: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise ValueError for an attribute that the estimator does not have, or that is not what it should be."""
    sizes: dict[str, int] = {}
    known = card.attributes
    for name in state:
        if name not in known:
            raise ValueError(f"{card.class_name} has no attribute {name!r} that could be kept in a file.")
    for name in [name for name in known if name in state]:  # in this order: sizes before what has them
        expected = _expected(known[name], parameters)
        if not fits(state[name], expected, sizes):
            raise ValueError(f"{name} should be {expected!r}{_told(sizes)}, found {_describe(state[name])}.")
    missing = [name for name, shape in known.items() if name not in state and not _may_lack(shape)]
    if missing and "k" in sizes:
        raise ValueError(f"{missing[0]} is missing.")
    if card.check is not None:
        resolve(card.check)(parameters, state)


def _expected(shape: str | ByOption, parameters: Mapping[str, Any]) -> str:
    return shape.removeprefix(_MAYBE) if isinstance(shape, str) else shape.shapes[parameters[shape.name]]


def _may_lack(shape: str | ByOption) -> bool:
    return isinstance(shape, str) and shape.startswith(_MAYBE)


def _told(sizes: Mapping[str, int]) -> str:
    told = ", ".join(f"{letter} = {size}" for letter, size in sizes.items())
    return f" with {told}" if told else ""


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
