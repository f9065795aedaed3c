"""The card of `DawidSkene`."""

from __future__ import annotations

from typing import Any

from odeco.fitting.card import Card, Option, Stored, shapes
from odeco.models.card_parts import EFFORT, MAX_ITER, MIXTURE, SMOOTHING, TOL, refine
from odeco.models.multiview.card import THREE_VIEWS


def _in_columns_of_groups(moments: Any) -> bool:
    """Labels of each annotator go to the columns of his group."""
    import numpy as np

    labels, width, found = moments.n_classes, moments.n_classes + 1, moments._sum
    n_votes = len(moments.groups) * labels
    if moments._votes.shape != (n_votes, 3 * width + 1) or found.shape != (n_votes, 3 * labels):
        return False
    columns = np.repeat(moments.groups, labels) * labels + np.tile(np.arange(labels), len(moments.groups))
    once = np.array_equal(found.indptr, np.arange(n_votes + 1)) and np.array_equal(found.indices, columns)
    return once and bool((found.data == 1).all()) and moments._views.basis.widths == (width,) * 3


CARD = Card(
    "dawid-skene",
    "odeco.models.dawid_skene.estimator:DawidSkene",
    "labels",
    "class",
    "True classes of items from the labels of annotators who err.",
    options=(
        Option("n_init", int, "Random groupings of the annotators to start from.", "--starts", least=1),
        refine("em", "one-step", "least-squares"),
        EFFORT,
        SMOOTHING,
        MAX_ITER,
        TOL,
    ),
    examples=(
        "odeco fit dawid-skene labels.csv --out crowd.odeco",
        "odeco fit dawid-skene wide.csv --layout wide -k 2 --out crowd.odeco",
    ),
    count="n_classes",
    count_required=False,
    learned={
        **MIXTURE,
        "confusion_": "simplex d k l",
        "classes_": "any k",
        "given_labels_": "any l",
        "annotators_": "any d",
        "items_": "any *|plain",
        "layout_": "text",
        "_stream": "maybe stream StreamedVotes d l; VoteBatch",
    },
    stored={
        **THREE_VIEWS,
        "CrowdMoments": Stored(
            "odeco.moments.crowd:CrowdMoments",
            "a l",
            shapes(
                "n_classes: positive-whole l, groups: places a < 3, _sum: sparse * *, _views: ViewMoments, "
                "_votes: finite * *"
            ),
            _in_columns_of_groups,
        ),
        "StreamedVotes": Stored(
            "odeco.models.dawid_skene.stream:StreamedVotes",
            "a l",
            shapes("n_labels: positive-whole l, groups: list g of places a < 3, groupings: list g of CrowdMoments a l"),
        ),
    },
    parts="odeco.plots.parts:crowd_classes",
    frame="odeco.plots.frames:crowd_frame",
    page="odeco.report.classes:crowd_page",
    plots=("annotators",),
    objective="log posterior per item",
)
