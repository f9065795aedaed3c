"""Figures of hidden Markov models as SVG: the graph of transitions and a decoded sequence."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from odeco.plots.chains import DecodedSequence, Transitions
from odeco.report.charts import colour
from odeco.report.svg import Scale, axis_numbers, figure, group, number, path, percent, tag

Floats = NDArray[np.float64]

_FAINTEST = 0.01  # probability below which an arrow is left out
_MOST_ARROWS = 60


def transition_chart(found: Transitions) -> Markup:
    """States around a circle, arrows as strong as their probabilities; the disc's area is the time spent there."""
    size, k = 460.0, len(found.stationary)
    centre, ring = size / 2, (0.0 if k == 1 else size * 0.31)
    places = np.column_stack([centre + ring * found.positions[:, 0], centre - ring * found.positions[:, 1]])
    largest = 46.0 if k <= 6 else 260.0 / k
    radii = np.maximum(largest * np.sqrt(found.stationary / found.stationary.max()), 13.0)
    parts: list[Markup | None] = [_arrow(found, places, radii, i, j) for i, j in _arrows(found.matrix)]
    for i in range(k):
        x, y, r = float(places[i, 0]), float(places[i, 1]), float(radii[i])
        title = (
            f"State {i}: {percent(float(found.stationary[i]))} of the time, stays {number(float(found.stays[i]))} steps"
        )
        parts.append(_loop(found, places, radii, i, centre))
        parts.append(
            group(
                tag("title", title),
                tag("circle", cx=x, cy=y, r=r),
                tag("text", str(i), x=x, y=y + 6, class_="middle"),
                class_=f"state {colour(i)}",
            )
        )
    return figure(size, size, f"Graph of the transitions between {k} states.", *parts, class_="graph")


def _arrows(matrix: Floats) -> list[tuple[int, int]]:
    """Pairs of different states, the strongest arrows last so that they lie on top."""
    off = matrix - np.diag(np.diagonal(matrix))
    strong = [(int(i), int(j)) for i, j in np.argwhere(off >= _FAINTEST)]
    return sorted(strong, key=lambda pair: float(off[pair]))[-_MOST_ARROWS:]


def _arrow(found: Transitions, places: Floats, radii: Floats, i: int, j: int) -> Markup:
    """A curved arrow from i to j, bent to its right so that the way back does not cover it."""
    probability = float(found.matrix[i, j])
    start, end = places[i], places[j]
    along = (end - start) / np.linalg.norm(end - start)
    across = np.array([-along[1], along[0]])
    bend = 0.16 * np.linalg.norm(end - start)
    turn = 0.42  # radians by which arrows leave the line between the centres
    head = 5.0 + 5.0 * np.sqrt(probability)
    leave = start + radii[i] * (np.cos(turn) * along + np.sin(turn) * across)
    arrive = end + (radii[j] + head) * (-np.cos(turn) * along + np.sin(turn) * across)
    control = (leave + arrive) / 2 + bend * across
    middle = 0.25 * leave + 0.5 * control + 0.25 * arrive
    direction = (arrive - control) / np.linalg.norm(arrive - control)
    side = np.array([-direction[1], direction[0]])
    tip = arrive + head * direction
    corners = np.array([tip, arrive + 0.5 * head * side, arrive - 0.5 * head * side])
    curve = "M{:.1f},{:.1f}Q{:.1f},{:.1f} {:.1f},{:.1f}".format(*leave, *control, *arrive)
    label = None
    if probability >= 0.05 and len(radii) <= 8:
        x, y = middle + 9 * across
        label = tag("text", percent(probability), x=float(x), y=float(y) + 4, class_="middle tick halo")
    return group(
        tag("title", f"{i} to {j}: {percent(probability)}"),
        tag("path", d=curve, fill="none", stroke_width=0.8 + 7 * probability),
        tag("path", d=path(corners[:, 0], corners[:, 1], closed=True), class_="head"),
        label,
        class_=f"arrow {colour(i)}",
    )


def _loop(found: Transitions, places: Floats, radii: Floats, i: int, centre: float) -> Markup | None:
    """The probability of staying: a loop on the outer side of a state."""
    stay = float(found.matrix[i, i])
    if stay < _FAINTEST:
        return None
    outward = places[i] - centre
    length = float(np.linalg.norm(outward))
    outward = outward / length if length > 0 else np.array([0.0, -1.0])
    size = max(float(radii[i]) * 0.55, 11.0)
    x, y = places[i] + (float(radii[i]) + 0.45 * size) * outward
    reach = float(radii[i]) + 1.45 * size + 12 + 12 * abs(float(outward[0]))
    text_x, text_y = places[i] + reach * outward
    label = tag("text", percent(stay), x=float(text_x), y=float(text_y) + 4, class_="middle tick")
    return group(
        tag("title", f"stays in {i}: {percent(stay)}"),
        tag("circle", cx=float(x), cy=float(y), r=size, fill="none", stroke_width=0.8 + 7 * stay),
        label if len(radii) <= 8 else None,
        class_=f"arrow {colour(i)}",
    )


def state_runs(states: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """(state, first step, one past the last) of every run of equal states."""
    firsts = np.flatnonzero(np.diff(states, prepend=-1))
    ends = [*firsts[1:].tolist(), len(states)]
    return [(int(states[a]), int(a), int(b)) for a, b in zip(firsts, ends, strict=True)]


def sequence_chart(found: DecodedSequence, columns: list[tuple[int, str]]) -> Markup:
    """States as a coloured ribbon over the observations of some columns."""
    width, left, ribbon, lane = 960.0, 58.0, 26.0, 120.0
    n = len(found.states)
    height = ribbon + 18 + lane * len(columns) + 34
    x = Scale(0, n, left, width - 8)
    parts = []
    for state, first, end in state_runs(found.states):
        a, b = float(x(first)), float(x(end))
        title = tag("title", f"state {state}: steps {first} to {end - 1}")
        parts.append(tag("rect", title, x=a, y=4, width=b - a, height=ribbon, class_=f"run {colour(state)}"))
        if b - a > 16:
            parts.append(tag("text", str(state), x=(a + b) / 2, y=4 + ribbon / 2 + 5, class_="middle on-colour"))
        parts.append(
            tag("rect", x=a, y=4 + ribbon, width=b - a, height=height - ribbon - 38, class_=f"wash {colour(state)}")
        )
    for row, (column, name) in enumerate(columns):
        top = ribbon + 22 + lane * row
        parts.append(_lane(found.observations[:, column], name, x, top, lane - 18))
    ticks = [t for t in Scale(0, n, 0, 1).ticks(8) if t < n and t == int(t)]
    for value, text in zip(ticks, axis_numbers(ticks), strict=True):
        parts.append(tag("text", text, x=float(x(value + 0.5)), y=height - 18, class_="tick middle"))
    parts.append(tag("text", "step", x=(left + width) / 2, y=height - 2, class_="label middle"))
    return figure(width, height, f"{n} steps and their states.", *parts, class_="wide")


def _lane(values: NDArray[np.generic], name: str, x: Scale, top: float, height: float) -> Markup:
    numbers = np.asarray(values, dtype=np.float64)
    seen = np.isfinite(numbers)
    low, high = (float(numbers[seen].min()), float(numbers[seen].max())) if seen.any() else (0.0, 1.0)
    y = Scale(low, high if high > low else low + 1, top + height, top + 14)
    places = x(np.flatnonzero(seen) + 0.5)
    ends = [tag("text", number(v), x=x.start - 8, y=float(y(v)) + 4, class_="tick end") for v in (y.low, y.high)]
    return group(
        *ends,
        tag("path", d=path(places, y(numbers[seen])), class_="line ink") if seen.any() else None,
        tag("text", name, x=x.start + 4, y=top + 8, class_="label"),
    )
