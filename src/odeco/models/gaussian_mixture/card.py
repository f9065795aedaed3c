"""The card of `GaussianMixture`."""

from __future__ import annotations

from odeco.fitting.card import ByOption, Card, Stored, shapes
from odeco.models.card_parts import COVARIANCES, EFFORT, MAX_ITER, MIXTURE, TOL, covariance, refine
from odeco.models.product_mixture.card import TABLES

CARD = Card(
    "gaussian-mixture",
    "odeco.models.gaussian_mixture.estimator:GaussianMixture",
    "table",
    "component",
    "Clusters of measurements (a mixture of Gaussians).",
    options=(covariance(*COVARIANCES), refine("em", "one-step"), EFFORT, MAX_ITER, TOL),
    examples=(
        "odeco fit gaussian-mixture penguins.csv -k 3 --covariance full --out penguins.odeco",
        "odeco fit gaussian-mixture embeddings.npy -k 20 --out clusters.odeco",
    ),
    learned={
        **MIXTURE,
        "means_": "finite k d",
        "covariances_": ByOption("covariance_type", COVARIANCES),
        "_stream": "maybe stream VectorMoments d; DenseBatch d|stream StreamedTable d; TableChunk d",
    },
    stored={
        **TABLES,  # with "diag": columns that are independent of each other
        "VectorMoments": Stored(
            "odeco.moments.vectors:VectorMoments",
            "d",
            shapes(
                "n_features: whole d, n: whole, shift: finite d, weight: finite-number, dimension: whole r, "
                "basis: finite d r, _gram: finite r+1 r+1, _first: finite d, _cubes: finite r r r, "
                "_squares: finite-number, _radial: finite r, _cross: ?finite d r"
            ),
        ),
    },
    parts="odeco.plots.parts:columns",
    frame="odeco.plots.frames:column_frame",
    page="odeco.report.classes:mixture_page",
    plots=("profiles", "membership", "scatter"),
    centred=True,
)
