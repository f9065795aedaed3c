"""What a report shows of a model, family by family; the templates say how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


@dataclass(frozen=True)
class Inputs:
    """What was given to the report besides the model."""

    data: Any = None
    documents: Sequence[str] | Callable[[], Iterable[str]] | None = None
    vocabulary: Sequence[Any] | None = None
    feature_names: Sequence[Any] | None = None
    titles: Sequence[Any] | None = None
    dates: Sequence[Any] | None = None
    intervals: Intervals | None = None


@dataclass(frozen=True)
class Page:
    """The part of a report that depends on the family of the model.

    Attributes
    ----------
    title : str
        What was found, in a few words.
    lede : str
        A sentence or two on how to read it.
    template : str
    content : mapping
        What the template shows.
    figures : tuple of (str, str)
        Key numbers of the head: value and what it is.
    script_data : mapping or None
        What the page's script needs, as JSON.
    """

    title: str
    lede: str
    template: str
    content: Mapping[str, Any] = field(repr=False)
    figures: tuple[tuple[str, str], ...] = ()
    script_data: Mapping[str, Any] | None = field(default=None, repr=False)


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
