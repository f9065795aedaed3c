"""The figures of a report as SVG: spectrum, convergence, map of topics, chains, sources. Colours come from the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from odeco.plots.fit import Convergence, Spectrum
from odeco.plots.samples import Scatter
from odeco.plots.signals import Sources
from odeco.plots.topics import TopicMap
from odeco.report.map_labels import Label, labels_beside
from odeco.report.svg import Scale, axis_numbers, figure, group, number, path, percent, tag

Floats = NDArray[np.float64]

N_COLOURS = 10
_WIDTH, _HEIGHT = 460.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 14.0, 18.0, 42.0
_MOST_EIGENVALUES = 80


def colour(component: int) -> str:
    """The class that gives a component its colour."""
    return f"c{component % N_COLOURS}"


def frame(x: Scale, y: Scale, x_label: str, y_label: str, x_ticks: list[float] | None = None) -> Markup:
    """Axes: ticks with light lines across, and their names."""
    parts = []
    ticks = y.ticks()
    for value, text in zip(ticks, axis_numbers(ticks), strict=True):
        place = float(y(value))
        parts.append(tag("line", x1=x.start, x2=x.stop, y1=place, y2=place, class_="grid"))
        parts.append(tag("text", text, x=x.start - 8, y=place + 4, class_="tick end"))
    ticks = x.ticks() if x_ticks is None else x_ticks
    for value, text in zip(ticks, axis_numbers(ticks), strict=True):
        parts.append(tag("text", text, x=float(x(value)), y=y.start + 18, class_="tick middle"))
    parts.append(tag("line", x1=x.start, x2=x.stop, y1=y.start, y2=y.start, class_="axis"))
    parts.append(tag("text", x_label, x=(x.start + x.stop) / 2, y=y.start + 36, class_="label middle"))
    parts.append(tag("text", y_label, x=x.start - 8, y=y.stop - 8, class_="label"))
    return group(*parts)


def spectrum_chart(found: Spectrum) -> Markup | None:
    """Eigenvalues, those used filled, with the cut between the last used and the first dropped."""
    values = found.values[: max(_MOST_EIGENVALUES, found.kept + 10)]
    if values.size == 0:
        return None
    positive = values[values > 0]
    log = positive.size > 1 and positive.max() / max(positive.min(), 1e-300) > 50
    values = values[values > positive.max() * 1e-6] if log else values
    low = float(values.min()) * 0.7 if log else min(0.0, float(values.min()))
    if found.noise is not None and log:
        low = min(low, found.noise * 0.7)
    high = float(values.max()) * (1.5 if log else 1.08)
    x = Scale(0.5, values.size + 0.5, _LEFT, _WIDTH - _RIGHT)
    y = Scale(low, high if high > low else low + 1, _HEIGHT - _BOTTOM, _TOP + 14, log)
    parts = [_noise_band(found, x, y), frame(x, y, "component", "eigenvalue", _whole_ticks(values.size))]
    parts.append(tag("path", d=path(x(np.arange(1, values.size + 1)), y(values)), class_="line quiet"))
    if found.kept < values.size:
        cut = float(x(found.kept + 0.5))
        parts.append(tag("line", x1=cut, x2=cut, y1=y.start, y2=y.stop, class_="cut"))
        side = "end" if cut > _WIDTH / 2 else ""
        text = f"gap {percent(found.gap)}" if np.isfinite(found.gap) else "cut"
        parts.append(tag("text", text, x=cut + (-6 if side else 6), y=y.stop + 10, class_=f"note {side}"))
    radius = 4.0 if values.size <= 30 else 2.6
    for i, value in enumerate(values):
        used = i < found.kept
        title = tag("title", f"{i + 1}: {number(float(value))}{'' if used else ' (not used)'}")
        parts.append(
            tag("circle", title, cx=float(x(i + 1)), cy=float(y(value)), r=radius, class_="dot" if used else "dot open")
        )
    label = f"Spectrum: {found.kept} of {values.size} eigenvalues are used, gap {number(found.gap)}."
    return figure(_WIDTH, _HEIGHT, label, *parts)


def _noise_band(found: Spectrum, x: Scale, y: Scale) -> Markup | None:
    if found.noise is None or found.noise <= y.low:
        return None
    top = float(y(min(found.noise, y.high)))
    label = y.start - 6 if y.start - top > 18 else top - 5
    return group(
        tag("rect", x=x.start, width=x.stop - x.start, y=top, height=y.start - top, class_="band"),
        tag("text", "within sampling noise", x=x.start + 6, y=label, class_="note quiet"),
    )


def _whole_ticks(n: int) -> list[float]:
    if n <= 12:
        return [float(i) for i in range(1, n + 1)]
    return [t for t in Scale(1, n, 0, 1).ticks(6) if t == int(t) and t >= 1]


def convergence_chart(found: Convergence) -> tuple[Markup | None, str]:
    """Values of the monitor over the steps, and a word on those that are off the chart."""
    steps, values = found.steps, found.values
    if values.size < 2:
        return None, ""
    note = ""
    while values.size > 3 and np.ptp(values) > 25 * max(np.ptp(values[1:]), 1e-300):
        note = f"The first looks ({number(float(found.values[0]))} at the start) are far below and left out."
        steps, values = steps[1:], values[1:]
    spread = max(float(np.ptp(values)), 1e-6 * max(abs(float(values.max())), 1e-3))
    y = Scale(float(values.min()) - 0.06 * spread, float(values.max()) + 0.08 * spread, _HEIGHT - _BOTTOM, _TOP + 14)
    widest = max(map(len, axis_numbers(y.ticks())))
    x = Scale(float(steps[0]), float(steps[-1]), max(_LEFT, 16 + 7.2 * widest), _WIDTH - _RIGHT - 6)
    ticks = [t for t in x.ticks(6) if t == int(t)] or [float(steps[0]), float(steps[-1])]
    parts = [frame(x, y, "step", found.objective, ticks), tag("path", d=path(x(steps), y(values)), class_="line")]
    dropped = found.values.size - values.size
    for start in (s - dropped for s in found.starts):
        if 0 < start < steps.size:
            place = float(x(steps[start]))
            parts.append(tag("line", x1=place, x2=place, y1=y.start, y2=y.stop, class_="cut quiet"))
    if values.size <= 60:
        for step, value in zip(steps, values, strict=True):
            title = tag("title", f"step {int(step)}: {float(value):.6g}")
            parts.append(tag("circle", title, cx=float(x(step)), cy=float(y(value)), r=3.0, class_="dot"))
    label = f"Convergence: {found.objective}, from {number(float(values[0]))} to {number(float(values[-1]))}."
    return figure(_WIDTH, _HEIGHT, label, *parts), note


def topic_map_chart(found: TopicMap, labels: Sequence[str], words: Sequence[str] = ()) -> Markup:
    """Topics as circles, each a link to its own part of the page, with words beside those that have room for them."""
    width, height, margin = 520.0, 440.0, 14.0
    k = len(found.shares)
    share = np.maximum(found.shares, 1e-4)
    largest = min(58.0, np.sqrt(0.16 * width * height / np.pi * share.max()))  # areas add up to a sixth of the map
    radii = np.maximum(largest * np.sqrt(share / share.max()), 7.0)
    centres = _spread(_fit(found.positions, radii, width, height, margin), radii, width, height, margin)
    beside = labels_beside(centres, radii, words, width, height) if words else {}
    nodes = []
    for i in np.argsort(-radii, kind="stable"):
        x, y, r = float(centres[i, 0]), float(centres[i, 1]), float(radii[i])
        nodes.append(
            tag(
                "a",
                tag("title", f"Topic {i} ({percent(float(found.shares[i]))}): {labels[i]}"),
                tag("circle", cx=x, cy=y, r=r),
                tag("text", str(i), x=x, y=y + min(r * 0.36, 6), class_="middle", font_size=float(np.clip(r, 10, 17))),
                *_beside(beside.get(int(i))),
                href=f"#topic-{i}",
                class_=f"node {colour(int(i))}",
                data_topic=int(i),
                aria_label=f"Topic {i}: {labels[i]}",
            )
        )
    return tag(
        "svg",
        *nodes,
        viewBox=f"0 0 {width:g} {height:g}",
        role="group",
        class_="figure map",
        aria_label=f"Map of {k} topics; neighbours use similar words, areas are shares",
    )


def _beside(label: Label | None) -> list[Markup]:
    return [] if label is None else [tag("text", label.text, x=label.x, y=label.y, class_="middle beside")]


def _fit(positions: Floats, radii: Floats, width: float, height: float, margin: float) -> Floats:
    """Positions in pixels, both axes to the same scale, turned so that the larger spread lies along the width."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = np.maximum(high - low, 1e-12)
    room = np.array([width, height]) - 2 * (margin + radii.max() * 0.6)
    scale = float(min(room / span)) if len(positions) > 1 else 1.0
    centred = (positions - (low + high) / 2) * scale
    return np.asarray(centred * [1, -1] + np.array([width, height]) / 2)


def _spread(centres: Floats, radii: Floats, width: float, height: float, margin: float) -> Floats:
    """Circles pushed apart until they hardly overlap: a number that is covered cannot be read or clicked."""
    home, moved = centres.copy(), centres.copy()
    k = len(radii)
    reach = 0.92 * (radii[:, None] + radii[None, :])
    for _ in range(300 if k > 1 else 0):
        offsets = moved[:, None] - moved[None, :]
        offsets[np.arange(k), np.arange(k)] = 1e9
        distances = np.sqrt((offsets**2).sum(axis=2)) + 1e-9
        push = np.maximum(reach - distances, 0) / distances
        heavy = radii[None, :] ** 2 / (radii[:, None] ** 2 + radii[None, :] ** 2)
        moved = moved + 0.6 * (offsets * (push * heavy)[:, :, None]).sum(axis=1) + 0.02 * (home - moved)
        lowest = (margin + radii)[:, None]
        moved = np.clip(moved, lowest, np.array([width, height]) - lowest)
    return moved


def sparkline(values: Floats, label: str, *, width: float = 460.0, height: float = 64.0) -> Markup:
    """A small area under a curve."""
    x = Scale(0, max(len(values) - 1, 1), 0, width)(np.arange(len(values)))
    y = Scale(0, max(float(np.max(values)), 1e-12), height - 1, 4)(values)
    area = path(np.concatenate([[x[0]], x, [x[-1]]]), np.concatenate([[height], y, [height]]), closed=True)
    return figure(
        width,
        height,
        label,
        tag("path", d=area, class_="area"),
        tag("path", d=path(x, y), class_="line"),
        class_="spark",
        stretched=True,
    )


def scatter_chart(found: Scatter) -> Markup:
    """Samples and an ellipse of two standard deviations for each component."""
    spread = 2 * found.deviations
    everything = np.vstack([found.points, found.centres + spread, found.centres - spread])
    low, high = np.nanmin(everything, axis=0), np.nanmax(everything, axis=0)
    x = Scale(float(low[0]), float(high[0]), _LEFT, 520.0 - _RIGHT)
    y = Scale(float(low[1]), float(high[1]), 400.0 - _BOTTOM, _TOP + 14)
    parts = [frame(x, y, found.names[0], found.names[1])]
    for i in range(len(found.centres)):
        mine = found.points[found.labels == i]
        dots = [
            tag("circle", cx=float(a), cy=float(b), r=2.6) for a, b in zip(x(mine[:, 0]), y(mine[:, 1]), strict=True)
        ]
        parts.append(group(*dots, class_=f"samples {colour(i)}"))
    turn = np.linspace(0, 2 * np.pi, 49)
    for i, (centre, size, tilt) in enumerate(zip(found.centres, spread, found.correlations, strict=True)):
        first = centre[0] + size[0] * np.cos(turn)
        second = centre[1] + size[1] * (tilt * np.cos(turn) + np.sqrt(max(1 - tilt**2, 0.0)) * np.sin(turn))
        parts.append(tag("path", d=path(x(first), y(second), closed=True), class_=f"ellipse {colour(i)}"))
        parts.append(badge(float(x(centre[0])), float(y(centre[1])), i))
    label = f"{len(found.points)} samples by {found.names[0]} and {found.names[1]}, coloured by component."
    return figure(520, 400, label, *parts)


def badge(x: float, y: float, component: int, radius: float = 11.0) -> Markup:
    """The number of a component in a disc of its colour."""
    return group(
        tag("circle", cx=x, cy=y, r=radius),
        tag("text", str(component), x=x, y=y + 4.5, class_="middle"),
        class_=f"badge {colour(component)}",
    )


def series_chart(found: Sources, source: int) -> Markup:
    """One source over time: the range of its values in every stretch."""
    low, high = found.low[:, source], found.high[:, source]
    width, height = 640.0, 84.0
    x = Scale(0, max(len(low) - 1, 1), 0, width)(np.arange(len(low)))
    y = Scale(float(low.min()), float(high.max()), height - 3, 3)
    shape = path(np.concatenate([x, x[::-1]]), np.concatenate([y(high), y(low)[::-1]]), closed=True)
    ends = f"{number(float(low.min()))} to {number(float(high.max()))}"
    label = f"Source {source} over {found.n_samples:,} samples, from {ends}."
    return figure(width, height, label, tag("path", d=shape, class_="trace"), class_="series", stretched=True)


def histogram_chart(found: Sources, source: int) -> Markup:
    """Density of one standardized source, and the Gaussian that it would be without any kurtosis."""
    width, height = 150.0, 84.0
    heights, edges = found.histogram[:, source], found.edges
    top = max(float(heights.max()), 0.4)
    x, y = Scale(float(edges[0]), float(edges[-1]), 0, width), Scale(0, top * 1.05, height - 1, 2)
    steps_x, steps_y = np.repeat(x(edges), 2), np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    bell_x = np.linspace(float(edges[0]), float(edges[-1]), 61)
    bell = np.exp(-(bell_x**2) / 2) / np.sqrt(2 * np.pi)
    return figure(
        width,
        height,
        f"Density of source {source} beside a Gaussian.",
        tag("path", d=path(steps_x, y(steps_y), closed=True), class_="area"),
        tag("path", d=path(x(bell_x), y(bell)), class_="line bell"),
        class_="spark",
        stretched=True,
    )
