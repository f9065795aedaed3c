"""The parts of a fitted model, as its card has them: each topic, component, class, state or source in a few numbers.

Every function takes the model, the names that are known ("vocabulary", "symbols", "feature_names") and how many words,
symbols, columns or channels of a part to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.card import Part
from odeco.plots.chains import transitions
from odeco.plots.columns import Profile, component_weights, profiles, view_profiles
from odeco.plots.signals import mixing
from odeco.plots.topics import relevance, top_words, topic_shares, word_frequencies

Floats = NDArray[np.float64]
Names = Mapping[str, Any]


def shares(model: Any, names: Names, top: int) -> list[Part]:
    """Components of any model: their weights, where it has them."""
    weights = getattr(model, "weights_", None)
    if weights is None:
        return [Part(i, {}) for i in range(model.diagnostics_.n_components)]
    return [Part(i, {"share": float(weight)}) for i, weight in enumerate(weights)]


def topics(model: Any, names: Names, top: int) -> list[Part]:
    """Topics and their most telling words."""
    sizes, components = topic_shares(model), np.asarray(model.components_)
    words = names.get("vocabulary") or [f"word {j}" for j in range(components.shape[1])]
    items = _telling(words, components, sizes, top)
    return [Part(i, {"share": float(size)}, items[i]) for i, size in enumerate(sizes)]


def columns(model: Any, names: Names, top: int) -> list[Part]:
    """Components of a table, and the columns that tell them best apart."""
    return _profile_parts(component_weights(model), profiles(model, names.get("feature_names"), most=top))


def view_columns(model: Any, names: Names, top: int) -> list[Part]:
    """Components of several views, and the columns of each that tell them best apart."""
    views = view_profiles(model, names.get("feature_names"), most=top)
    return _profile_parts(np.asarray(model.weights_), [each for view in views for each in view])


def symbol_states(model: Any, names: Names, top: int) -> list[Part]:
    """States and their most telling symbols."""
    emissions = np.asarray(model.emissionprob_)
    symbols = names.get("symbols") or list(range(emissions.shape[1]))
    return _states(model, _telling(symbols, emissions, transitions(model).stationary, top))


def column_states(model: Any, names: Names, top: int) -> list[Part]:
    """States that emit numbers, and the columns that tell them best apart."""
    return _states(model, [part.items for part in columns(model, names, top)])


def crowd_classes(model: Any, names: Names, top: int) -> list[Part]:
    """Classes of a crowd, and the labels that its annotators give to each on average."""
    said = np.asarray(model.confusion_).mean(axis=0)
    labels = np.asarray(model.given_labels_).tolist()
    return [
        Part(
            str(label),
            {"share": float(model.weights_[i])},
            [{"name": str(labels[j]), "said": float(said[i, j])} for j in np.argsort(-said[i], kind="stable")[:top]],
        )
        for i, label in enumerate(np.asarray(model.classes_).tolist())
    ]


def sources(model: Any, names: Names, top: int) -> list[Part]:
    """Sources, and the channels that they reach most."""
    found = mixing(model, names.get("feature_names"))
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


def _telling(names: Sequence[Any], rows: Floats, weights: Floats, top: int) -> list[list[dict[str, Any]]]:
    """The most telling columns of each row of probabilities: frequent in it and rarer elsewhere."""
    best = top_words(relevance(rows, word_frequencies(rows, weights)), top)
    return [
        [{"name": str(names[j]), "probability": float(row[j])} for j in chosen]
        for row, chosen in zip(rows, best, strict=True)
    ]


def _states(model: Any, items: Sequence[Sequence[Mapping[str, Any]]]) -> list[Part]:
    graph = transitions(model)
    facts = [{"share": float(a), "steps": float(b)} for a, b in zip(graph.stationary, graph.stays, strict=True)]
    return [Part(i, fact, items[i]) for i, fact in enumerate(facts)]


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
