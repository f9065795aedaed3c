"""The card of `SingleTopicModel`."""

from __future__ import annotations

from odeco.models.card_parts import EFFORT, MAX_ITER, SMOOTHING, TOL, refine
from odeco.models.topics.card import topic_card

CARD = topic_card(
    "single-topic",
    "single_topic.estimator:SingleTopicModel",
    "Documents of one topic each (a mixture of multinomials): short texts, titles, tickets.",
    options=(refine("em", "one-step"), EFFORT, SMOOTHING, MAX_ITER, TOL),
    examples=(
        "odeco fit single-topic titles.txt -k 15 --out titles.odeco",
        "zcat titles.txt.gz | odeco fit single-topic - -k 15 --out titles.odeco",
    ),
    learned={"weights_": "simplex k"},
    objective="log-likelihood per document",
)
