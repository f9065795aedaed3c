"""The card of `ICA`."""

from __future__ import annotations

from typing import Any

from odeco.fitting.card import Card, Option, Stored, shapes
from odeco.models.card_parts import MAX_ITER, TOL, refine


def _all_products(moments: Any) -> bool:
    return bool(len(moments._gram) == moments._n_products(moments.dimension))


_SUMS = {
    "n_features": "whole d",
    "n": "whole",
    "shift": "finite d",
    "weight": "finite-number",
    "dimension": "whole r",
}

CARD = Card(
    "ica",
    "odeco.models.ica.estimator:ICA",
    "signals",
    "source",
    "Independent sources of mixed signals; Gaussian noise does not bias them.",
    options=(
        Option("noise", str, "What is known of the noise.", choices=("auto", "isotropic", "general")),
        Option("estimate", str, "What transform gives.", choices=("inverse", "sinr")),
        refine("least-squares", "likelihood"),
        MAX_ITER,
        TOL,
    ),
    examples=(
        "odeco fit ica party.wav --out voices.odeco",
        "odeco fit ica electrodes.csv -k 3 --out heart.odeco",
    ),
    count_required=False,
    learned={
        "mixing_": "finite d k",
        "components_": "finite k d",
        "sinr_components_": "finite k d",
        "whitening_": "finite * d",
        "mean_": "finite d",
        "covariance_": "finite d d",
        "noise_covariance_": "finite d d",
        "kurtosis_": "finite k",
        "_stream": "maybe stream StreamedChannels d; DenseBatch d",
    },
    stored={
        "SecondMoments": Stored(
            "odeco.moments.cumulants:SecondMoments", "d", {**_SUMS, "basis": "none", "_gram": "finite d+1 d+1"}
        ),
        "FourthMoments": Stored(
            "odeco.moments.cumulants:FourthMoments",
            "d",
            {**_SUMS, "basis": "finite d r", "_gram": "finite p p"},
            _all_products,
        ),
        "StreamedChannels": Stored(
            "odeco.models.ica.data:StreamedChannels",
            "d",
            shapes("second: SecondMoments d, fourth: FourthMoments d, precision: finite-number"),
        ),
    },
    parts="odeco.plots.parts:sources",
    frame="odeco.plots.frames:source_frame",
    page="odeco.report.chains:ica_page",
    plots=("mixing", "source_series"),
)
