"""Intervals as the pages of a report want them: beside bars, in cells, on cards; nothing where there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odeco.report.charts import colour
from odeco.report.svg import number, percent

if TYPE_CHECKING:
    from odeco.plots.columns import Profile
    from odeco.uncertainty import Intervals

Floats = NDArray[np.float64]
Place = tuple[int, ...]
Text = Callable[[float], str]


@dataclass(frozen=True, eq=False)
class Sure:
    """What is known of how sure the numbers of a page are."""

    found: Intervals | None = None

    @property
    def level(self) -> str:
        """The level in words; empty where there are no intervals."""
        return "" if self.found is None else f"{self.found.level:.0%}"

    def bounds(self, name: str, place: Place, item: int | None = None) -> tuple[float, float] | None:
        """Both ends of the interval of a number."""
        if self.found is None or name not in self.found.low:
            return None
        low, high = (each[name] if item is None else each[name][item] for each in (self.found.low, self.found.high))
        return float(np.asarray(low)[place]), float(np.asarray(high)[place])

    def share(self, name: str, place: Place, item: int | None = None, *, text: Text = percent) -> str:
        """The interval of a share in words: 12–15%."""
        ends = self.bounds(name, place, item)
        return "" if ends is None else f"{text(ends[0]).rstrip('%')}–{text(ends[1])}"

    def number(self, name: str, place: Place, item: int | None = None) -> str:
        """The interval of a number in words: −1.2 to 3."""
        ends = self.bounds(name, place, item)
        return "" if ends is None else f"{number(ends[0])} to {number(ends[1])}"

    def reach(
        self, scale: Callable[[Any], Any], name: str, place: Place, item: int | None = None
    ) -> tuple[float, float] | None:
        """Where an interval begins and how wide it is, in percent of a bar or card."""
        ends = self.bounds(name, place, item)
        if ends is None:
            return None
        left, right = np.clip([float(scale(ends[0])), float(scale(ends[1]))], 0.0, 100.0)
        return float(left), float(right - left)

    def largest(self, name: str, i: int, columns: Any, values: Floats) -> float:
        """The largest value of a part in some columns, or the end of its interval: what the longest bar stands for."""
        if not len(columns):
            return 1.0
        ends = [self.bounds(name, (i, int(c))) or (0.0, 0.0) for c in columns]
        return float(max(values[i, columns].max(), max(high for _, high in ends))) or 1.0

    def lost(self, i: int) -> str:
        """Words for a part that did not come back from halves of the data."""
        return "" if self.found is None or self.found.replicated[i] else "did not replicate"

    def colour(self, i: int) -> str:
        """The classes of a part: its colour, and whether it did not replicate."""
        return f"{colour(i)} lost" if self.lost(i) else colour(i)


def mean_of(profile: Profile, found: Intervals | None) -> tuple[str, int | None]:
    """The attribute that holds the means of a column, and which item of it."""
    return ("lambdas_" if found is not None and "lambdas_" in found.value else "means_"), profile.item
