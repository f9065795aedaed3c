"""The pages of mixtures, views and crowds: classes and their profiles, annotators and their confusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.columns import Profile, profiles, view_profiles
from odeco.plots.crowds import Annotators, annotators
from odeco.plots.samples import Membership, membership, scatter, some_rows
from odeco.report.charts import colour, scatter_chart
from odeco.report.page import Inputs, Page, plural
from odeco.report.sure import Sure, mean_of
from odeco.report.svg import Scale, number, percent

Floats = NDArray[np.float64]

_MOST_COLUMNS = 36
_MOST_VIEW_COLUMNS = 15
_MOST_ANNOTATORS = 200
_DOUBTFUL_ITEMS = 12
_WHISKERS = 1.0  # standard deviations
_MOST_ROWS = 8  # components of a card; more make a table


def mixture_page(model: Any, inputs: Inputs) -> Page:
    """Classes of a `GaussianMixture` or `ProductMixture`."""
    found = profiles(model, inputs.feature_names)
    shown = profiles(model, inputs.feature_names, most=_MOST_COLUMNS)
    rows = None if inputs.data is None else some_rows(model, inputs.data)
    use = None if rows is None else membership(model, rows)
    picture = None if rows is None else scatter(model, rows, found)
    sure = Sure(inputs.intervals)
    content = {
        "classes": class_rows(model.weights_, use, _class_words(shown), sure),
        "scatter": None if picture is None else scatter_chart(picture),
        "groups": [profile_group("", shown, len(found), sure)],
        "level": sure.level,
        "use": use,
        "score": "" if use is None else number(use.score),
    }
    return Page(
        title=plural(len(model.weights_), "class", "classes"),
        lede="Every sample comes from one of them; what a column looks like in each is its profile below.",
        template="classes.html.jinja",
        content=content,
        figures=_class_figures(len(model.weights_), len(found), use),
    )


def multiview_page(model: Any, inputs: Inputs) -> Page:
    """Classes of a `MultiViewMixture`, view by view."""
    every = view_profiles(model, inputs.feature_names)
    shown = view_profiles(model, inputs.feature_names, most=_MOST_VIEW_COLUMNS)
    use = None if inputs.data is None else membership(model, some_rows(model, inputs.data))
    sure = Sure(inputs.intervals)
    groups = [
        profile_group(f"View {t} ({model.likelihoods_[t]})", view, len(every[t]), sure) for t, view in enumerate(shown)
    ]
    content = {
        "classes": class_rows(model.weights_, use, _class_words([p for view in shown for p in view]), sure),
        "scatter": None,
        "groups": groups,
        "level": sure.level,
        "use": use,
        "score": "" if use is None else number(use.score),
    }
    return Page(
        title=f"{plural(len(model.weights_), 'class', 'classes')} seen in {plural(len(shown), 'view')}",
        lede="Every sample comes from one class, and its views are independent of each other given the class.",
        template="classes.html.jinja",
        content=content,
        figures=_class_figures(len(model.weights_), sum(map(len, every)), use),
    )


def _class_figures(k: int, columns: int, use: Membership | None) -> tuple[tuple[str, str], ...]:
    figures = [(str(k), "classes" if k > 1 else "class"), (f"{columns:,}", "columns")]
    if use is not None:
        figures.insert(1, (f"{use.n_samples:,}", "samples looked at"))
    return tuple(figures)


def class_rows(
    weights: Sequence[float] | Floats, use: Membership | None, words: list[str], sure: Sure
) -> list[dict[str, Any]]:
    """One row for each class: share, samples, certainty, and what sets it apart."""
    rows = []
    for i, weight in enumerate(np.asarray(weights, dtype=np.float64)):
        row = {
            "number": i,
            "colour": sure.colour(i),
            "lost": sure.lost(i),
            "share": percent(float(weight)),
            "bar": float(weight),
            "sure": sure.share("weights_", (i,)),
            "reach": sure.reach(Scale(0, 1, 0, 100), "weights_", (i,)),
            "words": words[i],
        }
        if use is not None:
            row |= {"count": f"{int(use.counts[i]):,}", "certainty": percent(float(use.certainty[i]))}
        rows.append(row)
    return rows


def _class_words(shown: list[Profile], most: int = 4) -> list[str]:
    """For each class the columns in which it is farthest from the others, in words."""
    k = len(shown[0].means) if shown else 0
    lines = []
    for i in range(k):
        scored = []
        for p in shown:
            if p.kind == "categories":
                excess = p.table[i] - np.delete(p.table, i, axis=0).mean(axis=0) if k > 1 else p.table[i]
                best = int(np.argmax(excess))
                scored.append((float(excess[best]), f"{p.name} = {p.categories[best]}"))
            elif k > 1:
                others = np.delete(p.means, i)
                scale = float(np.sqrt(np.mean(p.deviations**2) + np.var(p.means))) or 1.0
                z = float(p.means[i] - others.mean()) / scale
                scored.append((abs(z) / 2, f"{'high' if z > 0 else 'low'} {p.name}"))
        scored.sort(key=lambda pair: -pair[0])
        lines.append(", ".join(text for score, text in scored[:most] if score > 0.15))
    return lines


def profile_group(title: str, shown: list[Profile], n_columns: int, sure: Sure) -> dict[str, Any]:
    """Columns of one view or table: a card for each, or one table where there are many components."""
    many = len(shown[0].means) > _MOST_ROWS
    return {
        "title": title,
        "count": len(shown),
        "left_out": n_columns - len(shown),
        "profiles": [] if many else [profile_card(p, sure) for p in shown],
        "components": [(i, sure.colour(i)) for i in range(len(shown[0].means))] if many else [],
        "lines": [(p.name, percent(p.telling), _cells(p, sure)) for p in shown] if many else [],
    }


def _cells(profile: Profile, sure: Sure) -> list[tuple[float, str, str]]:
    """For each component how far it is from the middle of all, 1 being two standard deviations, and two texts."""
    if profile.kind == "categories":
        best = profile.table.argmax(axis=1)
        return [
            (float(profile.table[i, b]), profile.categories[b], sure.share("probabilities_", (i, int(b)), profile.item))
            for i, b in enumerate(best)
        ]
    offsets = profile.means - profile.means.mean()
    scale = 2 * float(np.sqrt(np.mean(profile.deviations**2) + np.var(profile.means))) or 1.0
    show = percent if profile.kind == "probability" else number
    places = np.clip(offsets / scale, -1, 1)
    return [
        (float(place), show(float(profile.means[i])), _interval(profile, i, sure)) for i, place in enumerate(places)
    ]


def _interval(profile: Profile, i: int, sure: Sure) -> str:
    """The interval of a mean, in words."""
    name, item = mean_of(profile, sure.found)
    return (sure.share if profile.kind == "probability" else sure.number)(name, (i, profile.column), item)


def profile_card(profile: Profile, sure: Sure) -> dict[str, Any]:
    """One column in all components: places in percent of the card's width."""
    card: dict[str, Any] = {
        "name": profile.name,
        "kind": profile.kind,
        "telling": percent(profile.telling),
        "categories": profile.categories,
    }
    k = len(profile.means)
    if profile.kind == "categories":
        card["rows"] = [{"number": i, "colour": sure.colour(i), "parts": _parts(profile, i, sure)} for i in range(k)]
        return card
    if profile.kind == "probability":
        scale = Scale(0, 1, 0, 100)
        low, high = np.zeros(k), profile.means
    else:
        low, high = profile.means - _WHISKERS * profile.deviations, profile.means + _WHISKERS * profile.deviations
        scale = Scale(float(low.min()), float(high.max()), 1, 99)
    name, item = mean_of(profile, sure.found)
    card["rows"] = [
        {
            "number": i,
            "colour": sure.colour(i),
            "left": float(scale(low[i])),
            "width": float(scale(high[i]) - scale(low[i])),
            "dot": float(scale(profile.means[i])),
            "value": percent(float(profile.means[i])) if profile.kind == "probability" else number(profile.means[i]),
            "spread": "" if profile.kind == "probability" else number(profile.deviations[i]),
            "reach": sure.reach(scale, name, (i, profile.column), item),
            "sure": _interval(profile, i, sure),
        }
        for i in range(k)
    ]
    return card


def _parts(profile: Profile, i: int, sure: Sure) -> list[tuple[float, str, str]]:
    """Shares of the categories in a component, and their intervals in words."""
    return [
        (float(p), percent(float(p)), sure.share("probabilities_", (i, c), profile.item))
        for c, p in enumerate(profile.table[i])
    ]


def crowd_page(model: Any, inputs: Inputs) -> Page:
    """Classes and annotators of a `DawidSkene`."""
    found = annotators(model, inputs.data)
    classes = [str(c) for c in np.asarray(model.classes_).tolist()]
    labels = [str(c) for c in np.asarray(model.given_labels_).tolist()]
    w = len(found.names)
    places = list(range(w))
    if w > _MOST_ANNOTATORS:
        places = [*places[: _MOST_ANNOTATORS // 2], *places[-_MOST_ANNOTATORS // 2 :]]
    weights, sure = np.asarray(model.weights_), Sure(inputs.intervals)
    average = found.confusion.mean(axis=0)
    content = {
        "classes": [
            {
                "number": c,
                "colour": sure.colour(i),
                "lost": sure.lost(i),
                "share": percent(float(weights[i])),
                "bar": float(weights[i]),
                "sure": sure.share("weights_", (i,)),
                "reach": sure.reach(Scale(0, 1, 0, 100), "weights_", (i,)),
            }
            for i, c in enumerate(classes)
        ],
        "labels": labels,
        "average": [[(float(p), percent(float(p))) for p in row] for row in average],
        "annotators": [_annotator(found, i, classes, labels, sure) for i in places],
        "left_out": w - len(places),
        "counted": found.n_labels is not None,
        "doubtful": [] if inputs.data is None else _doubtful(model, inputs.data, classes),
    }
    figures = [(str(len(classes)), "classes"), (f"{w:,}", "annotators")]
    if found.n_labels is not None:
        items = [(f"{len(model.items_):,}", "items")] if len(model.items_) else []
        figures += [*items, (f"{int(found.n_labels.sum()):,}", "labels")]
    return Page(
        title=f"{plural(len(classes), 'class', 'classes')}, {plural(w, 'annotator')}",
        lede="The true class of every item, and how each annotator confuses the classes, from labels alone.",
        template="crowd.html.jinja",
        content=content,
        figures=tuple(figures),
    )


def _annotator(found: Annotators, i: int, classes: list[str], labels: list[str], sure: Sure) -> dict[str, Any]:
    worker = int(found.order[i])
    cells = [
        [
            (float(p), f"true {classes[a]}, given {labels[b]}: {percent(float(p))}{_in_brackets(sure, worker, a, b)}")
            for b, p in enumerate(found.confusion[i, a])
        ]
        for a in range(len(classes))
    ]
    return {
        "name": found.names[i],
        "reliability": percent(float(found.reliability[i])),
        "bar": float(found.reliability[i]),
        "bits": f"{found.information[i]:.2f}",
        "labels": "" if found.n_labels is None else f"{int(found.n_labels[i]):,}",
        "cells": cells,
    }


def _in_brackets(sure: Sure, *place: int) -> str:
    text = sure.share("confusion_", place)
    return f" ({text})" if text else ""


def _doubtful(model: Any, data: Any, classes: list[str]) -> list[dict[str, Any]]:
    """The items whose class is least certain."""
    shares = np.asarray(model.predict_proba(data))
    names = np.asarray(model.items_).tolist() if len(model.items_) == len(shares) else list(range(len(shares)))
    order = np.argsort(shares.max(axis=1), kind="stable")[:_DOUBTFUL_ITEMS]
    return [
        {
            "name": str(names[i]),
            "best": classes[int(shares[i].argmax())],
            "shares": [(colour(j), float(p), f"{classes[j]}: {percent(float(p))}") for j, p in enumerate(shares[i])],
            "certainty": percent(float(shares[i].max())),
        }
        for i in order
    ]
