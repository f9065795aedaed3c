"""Which numbers of components are looked at: checked, few at first, then those around the best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

# Numbers up to which every one is looked at.
_ALL = 12
# Those of a longer list that are looked at first grow by this factor: one in three is, around ten.
_GROWTH = 1.4
# Numbers in a row, of these, that are no better, each further from the best: then those beyond are not looked at.
_IN_VAIN = 3


def check_candidates(candidates: Any) -> list[int]:
    """Numbers of components as they were given, ascending; ValueError for what are none."""
    if isinstance(candidates, (str, bytes)) or not isinstance(candidates, Iterable):
        raise ValueError(f"candidates must be several numbers of components, such as range(2, 31), got {candidates!r}.")
    found = list(candidates)
    if not found:
        raise ValueError("candidates is empty: give the numbers of components to choose from, such as range(2, 31).")
    for each in found:
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)) or each < 1:
            raise ValueError(f"candidates must be positive integers, got {each!r}.")
    if len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise ValueError(f"candidates has {int(twice)} more than once: give each number once.")
    return sorted(int(each) for each in found)


class Looking(Protocol):
    """What is looked at, and what that has taught so far."""

    def look(self, k: int, /, *, quick: bool = False) -> None:
        """Gather the evidence for k components, by a quick fit or by a thorough one."""

    def best(self) -> int | None:
        """The best number so far; None where nothing is known."""

    def seen(self, *, thoroughly: bool = False) -> Collection[int]:
        """The numbers that were looked at."""


def explore(candidates: Sequence[int], looking: Looking, *, every: bool) -> None:
    """Look at all candidates if they are few, else at some, downwards until fewer are worse and worse; then closer and
    closer around the best of these.
    """
    some, in_vain = not every and len(candidates) > _ALL, 0
    for k in reversed(_spread(candidates) if some else candidates):  # the largest first: it shares its moments
        if k in looking.seen(thoroughly=True):
            continue
        looking.look(k)
        in_vain = 0 if looking.best() in (k, None) else in_vain + 1
        if some and in_vain == _IN_VAIN:
            break
    _close_in(candidates, looking)


def screen(candidates: Sequence[int], looking: Looking) -> None:
    """Quick looks at some candidates, upwards until more are worse and worse; then thorough ones around the best."""
    in_vain = 0
    for k in _spread(candidates):
        if k in looking.seen():
            continue
        looking.look(k, quick=True)
        in_vain = 0 if looking.best() in (k, None) else in_vain + 1
        if in_vain == _IN_VAIN:
            break
    _close_in(candidates, looking)


def _close_in(candidates: Sequence[int], looking: Looking) -> None:
    """Look closer around the best until it and its neighbours were looked at thoroughly."""
    while (best := looking.best()) is not None:
        known = looking.seen(thoroughly=True)
        missing = [k for k in _neighbours(candidates, best) if k not in known]
        if not missing:
            return
        far = _halfway(candidates, looking.seen(), best)
        for k in far:
            looking.look(k, quick=True)
        if not far:
            looking.look(missing[0])


def _neighbours(candidates: Sequence[int], best: int) -> list[int]:
    """The one above, the best itself, the one below: a fit begins where that of the next larger number ended, too."""
    place = candidates.index(best)
    return [candidates[i] for i in (place + 1, place, place - 1) if 0 <= i < len(candidates)]


def _spread(candidates: Sequence[int]) -> list[int]:
    """Some of the candidates, with gaps that grow with the number; the first and the last among them."""
    chosen = [candidates[0]]
    for k in candidates[1:-1]:
        if k >= chosen[-1] * _GROWTH:
            chosen.append(k)
    return [*chosen, candidates[-1]] if len(candidates) > 1 else chosen


def _halfway(candidates: Sequence[int], seen: Collection[int], best: int) -> list[int]:
    """Halfway to the next number that was looked at, below and above; none where the best has its neighbours."""
    place = candidates.index(best)
    below = [i for i in range(place) if candidates[i] in seen]
    above = [i for i in range(place + 1, len(candidates)) if candidates[i] in seen]
    halfway = [(place + below[-1]) // 2] if below and place - below[-1] > 2 else []
    halfway += [(place + above[0] + 1) // 2] if above and above[0] - place > 2 else []
    return [candidates[i] for i in halfway]
