"""Elements of SVG, scales and ticks: as much as the figures of a report need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """One element; text and attributes are escaped. ``class_`` is class, ``stroke_width`` is stroke-width."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"')
    inside = "".join(str(escape(child)) for child in children if child is not None)
    parts.append(f">{inside}</{name}>" if inside or name in ("svg", "text", "g") else "/>")
    return Markup("".join(parts))  # every part has been escaped above


def group(*children: Any, **attributes: Any) -> Markup:
    """A ``g`` element."""
    return tag("g", *children, **attributes)


def figure(
    width: float, height: float, label: str, *children: Any, class_: str = "", stretched: bool = False
) -> Markup:
    """A picture that grows with its column, `stretched` to any shape, and has words for those who do not see it."""
    return tag(
        "svg",
        tag("title", label),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        preserveAspectRatio="none" if stretched else None,
        class_=f"figure {class_}".strip(),
        aria_label=label,
    )


def path(x: Floats, y: Floats, *, closed: bool = False) -> str:
    """The ``d`` of a line through points."""
    points = "L".join(f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True))
    return f"M{points}{'Z' if closed else ''}"


def number(value: float) -> str:
    """Three digits that a person can read: 0.0123, 12.3, 1,230, 1.2e-07."""
    if value is None or not np.isfinite(value):
        return "–" if value is None or np.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-4:
        return f"{value:.2g}".replace("-", "−", 1) if value < 0 else f"{value:.2g}"
    digits = max(0, 2 - int(np.floor(np.log10(size))))
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def percent(value: float) -> str:
    """A share in percent, with a digit more near 0 and near 1."""
    if not np.isfinite(value):
        return "–"
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value:.1%}" if 0 < value < 0.1 or 0.99 <= value < 1 else f"{value:.0%}"


@dataclass(frozen=True)
class Scale:
    """Data coordinates low to high, drawn from start to stop."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Any) -> Any:
        values = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log10(values), np.log10(low), np.log10(high)
        span = high - low if high > low else 1.0
        return self.start + (values - low) / span * (self.stop - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers within the scale."""
        if self.log:
            powers = range(int(np.ceil(np.log10(self.low) - 1e-9)), int(np.floor(np.log10(self.high) + 1e-9)) + 1)
            decades = [10.0**p for p in powers]
            if len(decades) >= 2:
                return decades[:: -(-len(decades) // about)]
            return _within([m * 10.0**p for p in range(-12, 13) for m in (1, 2, 5)], self.low, self.high)
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        step = 10 ** np.floor(np.log10(span / about))
        step *= min((m for m in (1, 2, 2.5, 5, 10) if span / (m * step) <= about + 0.5), default=10)
        first, last = int(np.ceil(self.low / step - 1e-9)), int(np.floor(self.high / step + 1e-9))
        return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def axis_numbers(ticks: list[float]) -> list[str]:
    """Labels of ticks, with the digits that tell neighbours apart; powers of ten as such where they are far from 1."""
    powers = [round(np.log10(t)) if t > 0 else 0 for t in ticks]
    if len(ticks) > 1 and all(abs(t / 10.0**p - 1) < 1e-9 for t, p in zip(ticks, powers, strict=True)):
        raised = min(powers) < -3 or max(powers) > 5
        return [f"10{str(p).translate(_RAISED)}" if raised else number(10.0**p) for p in powers]
    if len(ticks) < 2 or ticks[0] <= 0 < ticks[-1] / 1e4 or (ticks[0] > 0 and ticks[-1] / ticks[0] > 1e3):
        return [number(t) for t in ticks]
    digits = max(0, -int(np.floor(np.log10(min(np.diff(ticks))) + 1e-9)))
    if digits <= 8 and any(abs(round(t, digits) - t) > 1e-9 * max(abs(t), 1e-12) for t in ticks):
        digits += 1  # steps of 2.5
    return [f"{t:,.{digits}f}".replace("-", "−") if digits <= 8 else number(t) for t in ticks]


def _within(values: list[float], low: float, high: float) -> list[float]:
    return [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]


def _short(value: Any) -> str:
    if not isinstance(value, (float, np.floating)):
        return str(value)
    text = f"{float(value):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
