"""What a model has learned, part by part: for people as lines, for programs as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import odeco
from odeco.cli.inputs import READERS
from odeco.cli.model_file import Saved
from odeco.diagnostics import Verdict
from odeco.fitting.card import Part, resolve
from odeco.plots.crowds import annotators

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


def summary(saved: Saved, top: int, intervals: Intervals | None = None) -> list[str]:
    """The lines that `odeco show` prints; with intervals, which parts replicate."""
    card, estimator, fitted = saved.card, saved.estimator, saved.metadata.get("fitted", {})
    found = parts(saved, top)
    head = [f"{type(estimator).__name__}: {len(found)} {card.plural}"]
    if fitted.get("rows"):
        head[0] += f", fitted to {fitted['rows']:,} {READERS[card.rows].rows} in {fitted['seconds']:.1f} s"
    if "command" in fitted:
        head.append(fitted["command"])
    lines = [*head, "", *_table(card.part, found if intervals is None else _replicated(found, intervals))]
    if intervals is not None:
        lines += ["", *_replication_lines(card.part, intervals)]
    if "annotators" in card.plots:
        lines += ["", *_annotator_lines(estimator, top)]
    return [*lines, "", "How far to trust it", *str(estimator.diagnostics_).split("\n")]


def _replicated(found: Sequence[Part], intervals: Intervals) -> list[Part]:
    """Parts with what is known of how well they come back from halves of the data."""
    return [
        replace(part, facts={**part.facts, "replicates": float(value)})
        for part, value in zip(found, intervals.replication, strict=True)
    ]


def _replication_lines(part: str, intervals: Intervals) -> list[str]:
    """Which parts did not come back."""
    lost = np.flatnonzero(~intervals.replicated).tolist()
    words = [
        f"{part} {i} did not replicate: halves of the data do not show it (trust nothing said of it)" for i in lost
    ]
    return words or [str(intervals)]


def part_lines(saved: Saved, top: int) -> list[str]:
    """The parts alone, one line each."""
    return _table(saved.card.part, parts(saved, top))


def everything(saved: Saved, top: int, intervals: Intervals | None = None) -> dict[str, Any]:
    """What `odeco show --json` prints: the parts, all parameters, the diagnostics, the metadata."""
    estimator, card = saved.estimator, saved.card
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    learned.pop("diagnostics_", None)
    return {
        "model": card.name,
        "estimator": type(estimator).__name__,
        "odeco": odeco.__version__,
        card.plural: [
            {card.part: each.name, **each.facts, _items_name(saved): each.items} for each in parts(saved, top)
        ],
        "options": estimator.get_params(),
        "parameters": learned,
        "diagnostics": estimator.diagnostics_,
        "verdict": _verdict(estimator.diagnostics_.verdict),
        "metadata": saved.metadata,
        **({} if intervals is None else {"intervals": intervals}),
    }


def _verdict(found: Verdict) -> dict[str, Any]:
    reasons = [{"field": reason.field, "text": reason.text} for reason in found.reasons]
    return {"trust": found.trust.name.lower(), "text": found.trust.value, "reasons": reasons}


def parts(saved: Saved, top: int) -> list[Part]:
    """The parts of a fitted model."""
    found: list[Part] = resolve(saved.card.parts)(saved.estimator, saved.metadata, top)
    return found


def _items_name(saved: Saved) -> str:
    names = {"counts": "words", "symbols": "symbols", "signals": "channels", "labels": "labels"}
    return names.get(saved.card.rows, "columns")


def _table(part: str, found: Sequence[Part]) -> list[str]:
    """The parts as lines: numbers aligned, then the items."""
    facts = list(found[0].facts)
    width = max(len(part), *(len(str(each.name)) for each in found))
    lines = ["  ".join([part.rjust(width), *(name.rjust(8) for name in facts)])]
    for each in found:
        numbers = [_fact(name, each.facts[name]).rjust(8) for name in facts]
        lines.append("  ".join([str(each.name).rjust(width), *numbers, item_words(each.items)]))
    return lines


def _fact(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name == "share" else f"{value:.3g}"


def item_words(items: Sequence[Mapping[str, Any]]) -> str:
    """Words as they are; columns with what they are in this part."""
    shown = []
    for item in items:
        if "mean" in item:
            shown.append(f"{item['name']} {item['mean']:.3g} ± {item['deviation']:.2g}")
        elif "weight" in item:
            shown.append(f"{item['name']} {item['weight']:+.3g}")
        elif "said" in item or "share" in item:
            shown.append(f"{item['name']} {100 * item.get('said', item.get('share')):.0f} %")
        elif " = " in item["name"]:
            shown.append(f"{item['name']} ({100 * item['probability']:.0f} %)")
        else:
            shown.append(repr(item["name"]) if not item["name"].strip() else item["name"])
    return (", " if any(" " in each for each in shown) else " ").join(shown)


def _annotator_lines(estimator: Any, top: int) -> list[str]:
    """How often the labels of the annotators are right: the best and the worst of them."""
    found = annotators(estimator)
    pairs = [f"{name} {100 * right:.0f} %" for name, right in zip(found.names, found.reliability, strict=True)]
    if len(pairs) <= 2 * top:
        return ["annotators, labels that are right: " + ", ".join(pairs)]
    return ["best annotators:  " + ", ".join(pairs[:top]), "worst annotators: " + ", ".join(pairs[-top:])]
