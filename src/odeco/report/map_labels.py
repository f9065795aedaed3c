"""Words beside the circles of a map, where there is room: below, above or to a side, never over another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, right, bottom

SIZE = 12.0  # of the letters, in units of the map
_LETTER = 0.62 * SIZE  # a mean letter is that wide
_GAP = 3.0


@dataclass(frozen=True)
class Label:
    """Where a text stands: its anchor, the middle of the foot of its letters."""

    text: str
    x: float
    y: float


def labels_beside(
    centres: Floats, radii: Floats, texts: Sequence[str], width: float, height: float
) -> dict[int, Label]:
    """Labels of the circles that have room for one, the largest first."""
    placed: dict[int, Label] = {}
    taken: list[Box] = []
    for i in np.argsort(-radii, kind="stable"):
        for box in _places(centres[i], float(radii[i]), len(texts[i]) * _LETTER):
            if _is_free(box, centres, radii, taken, width, height):
                taken.append(box)
                placed[int(i)] = Label(texts[i], (box[0] + box[2]) / 2, box[3] - 0.2 * SIZE)
                break
    return placed


def _places(centre: Floats, radius: float, width: float) -> list[Box]:
    x, y, away = float(centre[0]), float(centre[1]), radius + _GAP
    corners = [(x - width / 2, y + away), (x - width / 2, y - away - SIZE)]
    corners += [(x + away, y - SIZE / 2), (x - away - width, y - SIZE / 2)]
    return [(left, top, left + width, top + SIZE) for left, top in corners]


def _is_free(box: Box, centres: Floats, radii: Floats, taken: Sequence[Box], width: float, height: float) -> bool:
    left, top, right, bottom = box
    if left < 2 or top < 2 or right > width - 2 or bottom > height - 2:
        return False
    nearest = np.clip(centres, (left, top), (right, bottom))
    if (np.linalg.norm(centres - nearest, axis=1) < radii).any():
        return False
    return all(right < other[0] or left > other[2] or bottom < other[1] or top > other[3] for other in taken)
