"""What a model has learned, part by part: for people as lines, for programs as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import odeco
from odeco.cli.inputs import READERS
from odeco.cli.model_file import Saved
from odeco.diagnostics import Verdict
from odeco.plots.chains import transitions
from odeco.plots.columns import Profile, component_weights, profiles, view_profiles
from odeco.plots.crowds import annotators
from odeco.plots.signals import mixing
from odeco.plots.topics import relevance, top_words, topic_shares, word_frequencies

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One topic, component, class, state or source.

    Attributes
    ----------
    name : int or str
        Its number in the model, or the label of a class.
    facts : dict
        Its share and what else is said in numbers.
    items : list of dict
        The words, symbols, columns or channels that tell most of it, most telling first.
    """

    name: int | str
    facts: Mapping[str, float]
    items: Sequence[Mapping[str, Any]] = field(default_factory=list)


def summary(saved: Saved, top: int) -> list[str]:
    """The lines that `odeco show` prints."""
    model, estimator, fitted = saved.model, saved.estimator, saved.metadata.get("fitted", {})
    found = parts(saved, top)
    head = [f"{type(estimator).__name__}: {len(found)} {model.parts}"]
    if fitted.get("rows"):
        head[0] += f", fitted to {fitted['rows']:,} {READERS[model.reads].rows} in {fitted['seconds']:.1f} s"
    if "command" in fitted:
        head.append(fitted["command"])
    lines = [*head, "", *_table(model.part, found)]
    if type(estimator).__name__ == "DawidSkene":
        lines += ["", *_annotator_lines(estimator, top)]
    return [*lines, "", "How far to trust it", *str(estimator.diagnostics_).split("\n")]


def part_lines(saved: Saved, top: int) -> list[str]:
    """The parts alone, one line each."""
    return _table(saved.model.part, parts(saved, top))


def everything(saved: Saved, top: int) -> dict[str, Any]:
    """What `odeco show --json` prints: the parts, all parameters, the diagnostics, the metadata."""
    estimator, model = saved.estimator, saved.model
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    learned.pop("diagnostics_", None)
    return {
        "model": model.name,
        "estimator": type(estimator).__name__,
        "odeco": odeco.__version__,
        model.parts: [
            {model.part: each.name, **each.facts, _items_name(saved): each.items} for each in parts(saved, top)
        ],
        "options": estimator.get_params(),
        "parameters": learned,
        "diagnostics": estimator.diagnostics_,
        "verdict": _verdict(estimator.diagnostics_.verdict),
        "metadata": saved.metadata,
    }


def _verdict(found: Verdict) -> dict[str, Any]:
    reasons = [{"field": reason.field, "text": reason.text} for reason in found.reasons]
    return {"trust": found.trust.name.lower(), "text": found.trust.value, "reasons": reasons}


def parts(saved: Saved, top: int) -> list[Part]:
    """The parts of a fitted model."""
    return _FAMILIES[saved.model.name](saved, top)


def _items_name(saved: Saved) -> str:
    names = {"counts": "words", "symbols": "symbols", "signals": "channels", "labels": "labels"}
    return names.get(saved.model.reads, "columns")


def _topics(saved: Saved, top: int) -> list[Part]:
    estimator = saved.estimator
    shares, components = topic_shares(estimator), np.asarray(estimator.components_)
    words = saved.metadata.get("vocabulary") or [f"word {j}" for j in range(components.shape[1])]
    return [
        Part(i, {"share": float(share)}, _chosen(words, components[i], best))
        for i, (share, best) in enumerate(zip(shares, _telling(components, shares, top), strict=True))
    ]


def _telling(rows: Floats, shares: Floats, top: int) -> list[NDArray[np.intp]]:
    """The most telling columns of each row of probabilities: frequent in it and rarer elsewhere."""
    return top_words(relevance(rows, word_frequencies(rows, shares)), top)


def _chosen(names: Sequence[Any], values: Floats, chosen: NDArray[np.intp]) -> list[dict[str, Any]]:
    return [{"name": str(names[j]), "probability": float(values[j])} for j in chosen]


def _table_parts(saved: Saved, top: int) -> list[Part]:
    """Mixtures of tables, and states that emit numbers: the columns that tell them best apart."""
    estimator = saved.estimator
    found = profiles(estimator, saved.metadata.get("feature_names"), most=top)
    return _profile_parts(component_weights(estimator), found)


def _view_parts(saved: Saved, top: int) -> list[Part]:
    estimator = saved.estimator
    views = view_profiles(estimator, saved.metadata.get("feature_names"), most=top)
    return _profile_parts(np.asarray(estimator.weights_), [each for view in views for each in view])


def _profile_parts(weights: Floats, found: Sequence[Profile]) -> list[Part]:
    return [
        Part(i, {"share": float(weight)}, [_column(profile, i) for profile in found])
        for i, weight in enumerate(weights)
    ]


def _column(profile: Profile, i: int) -> dict[str, Any]:
    if profile.kind == "probability":
        return {"name": profile.name, "share": float(profile.means[i])}
    if not profile.categories:
        return {"name": profile.name, "mean": float(profile.means[i]), "deviation": float(profile.deviations[i])}
    best = int(np.argmax(profile.table[i]))
    return {"name": f"{profile.name} = {profile.categories[best]}", "probability": float(profile.table[i, best])}


def _states(saved: Saved, top: int) -> list[Part]:
    graph = transitions(saved.estimator)
    if saved.model.name == "hmm":
        emissions = np.asarray(saved.estimator.emissionprob_)
        symbols = saved.metadata.get("symbols") or list(range(emissions.shape[1]))
        chosen = _telling(emissions, graph.stationary, top)
        items: Sequence[Any] = [_chosen(symbols, row, best) for row, best in zip(emissions, chosen, strict=True)]
    else:
        items = [part.items for part in _table_parts(saved, top)]
    return [
        Part(i, {"share": float(graph.stationary[i]), "steps": float(graph.stays[i])}, items[i])
        for i in range(len(items))
    ]


def _classes(saved: Saved, top: int) -> list[Part]:
    """Classes of a crowd, and the labels that its annotators give to each on average."""
    estimator = saved.estimator
    said = np.asarray(estimator.confusion_).mean(axis=0)
    labels = np.asarray(estimator.given_labels_).tolist()
    return [
        Part(
            str(label),
            {"share": float(estimator.weights_[i])},
            [{"name": str(labels[j]), "said": float(said[i, j])} for j in np.argsort(-said[i], kind="stable")[:top]],
        )
        for i, label in enumerate(np.asarray(estimator.classes_).tolist())
    ]


def _sources(saved: Saved, top: int) -> list[Part]:
    found = mixing(saved.estimator, saved.metadata.get("feature_names"))
    return [
        Part(
            i,
            {"share": float(found.power[i]), "kurtosis": float(found.kurtosis[i])},
            [
                {"name": found.channels[j], "weight": float(found.matrix[j, i])}
                for j in np.argsort(-np.abs(found.matrix[:, i]), kind="stable")[:top]
            ],
        )
        for i in range(found.matrix.shape[1])
    ]


_FAMILIES = {
    "lda": _topics,
    "single-topic": _topics,
    "gaussian-mixture": _table_parts,
    "product-mixture": _table_parts,
    "multiview": _view_parts,
    "dawid-skene": _classes,
    "hmm": _states,
    "gaussian-hmm": _states,
    "poisson-hmm": _states,
    "ica": _sources,
}


def _table(part: str, found: Sequence[Part]) -> list[str]:
    """The parts as lines: numbers aligned, then the items."""
    facts = list(found[0].facts)
    width = max(len(part), *(len(str(each.name)) for each in found))
    lines = ["  ".join([part.rjust(width), *(name.rjust(8) for name in facts)])]
    for each in found:
        numbers = [_fact(name, each.facts[name]).rjust(8) for name in facts]
        lines.append("  ".join([str(each.name).rjust(width), *numbers, _item_words(each.items)]))
    return lines


def _fact(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name == "share" else f"{value:.3g}"


def _item_words(items: Sequence[Mapping[str, Any]]) -> str:
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
