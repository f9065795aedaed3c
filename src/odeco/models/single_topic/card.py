"""The card of `SingleTopicModel`."""

from __future__ import annotations

from odeco.fitting.card import Card
from odeco.models.card_parts import MAX_ITER, SMOOTHING, TOL, refine
from odeco.models.topics.card import LEARNED, PLOTS, STORED

CARD = Card(
    "single-topic",
    "odeco.models.single_topic.estimator:SingleTopicModel",
    "counts",
    "topic",
    "Documents of one topic each (a mixture of multinomials): short texts, titles, tickets.",
    options=(refine("em", "one-step"), SMOOTHING, MAX_ITER, TOL),
    examples=(
        "odeco fit single-topic titles.txt -k 15 --out titles.odeco",
        "zcat titles.txt.gz | odeco fit single-topic - -k 15 --out titles.odeco",
    ),
    learned={**LEARNED, "weights_": "simplex k"},
    stored=STORED,
    parts="odeco.plots.parts:topics",
    page="odeco.report.topics:topic_page",
    plots=PLOTS,
    objective="log-likelihood per document",
)
