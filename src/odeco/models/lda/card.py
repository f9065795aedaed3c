"""The card of `LatentDirichletAllocation`."""

from __future__ import annotations

from odeco.fitting.card import Option
from odeco.models.card_parts import MAX_ITER, TOL, refine
from odeco.models.topics.card import topic_card

CARD = topic_card(
    "lda",
    "lda.estimator:LatentDirichletAllocation",
    "Topics of documents, each document a mixture of them (latent Dirichlet allocation).",
    options=(
        Option(
            "alpha0",
            float,
            "Sum of the Dirichlet parameters, or auto: small where documents have few topics.",
            word="auto",
        ),
        Option("eta", float, "Dirichlet parameter of the words in a topic.", least=0),
        refine("cvb0", "vb", "map"),
        MAX_ITER,
        TOL,
    ),
    examples=(
        "odeco fit lda articles.txt -k 20 --out topics.odeco",
        "odeco fit lda reviews.csv --column review --stop-words english -k 30 --out topics.odeco",
        "odeco fit lda docword.nips.txt.gz -k 50 --out nips.odeco",
    ),
    learned={
        "alpha_": "nonnegative k",
        "alpha0_": "finite-number",
        "eta_": "finite-number|nonnegative d",
    },
    objective="log probability of a held-out word",
)
