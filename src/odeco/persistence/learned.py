"""What the estimators have learned: names, dtypes and shapes, checked when a model is saved and when it is loaded.

`k` is the number of components, `d` that of features; any other letter is a size of its own, the same wherever it
stands in one model, and `*` any size. "size d" is a number that must be d. Compiled loops trust these shapes, those of
the sums of `partial_fit` too (`odeco.persistence.sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odeco.persistence.sums import fits

_NUMBER, _WHOLE, _FLAG = "number", "whole number", "flag"

_ALL = {
    "n_features_in_": "size d",
    "feature_names_in_": "any d",
    "n_iter_": _WHOLE,
    "diagnostics_": "Diagnostics",
    "_sklearn_output_config": "plain",  # of set_output
}
_MIXTURE = {**_ALL, "weights_": "float k", "converged_": _FLAG, "lower_bound_": _NUMBER}
_CHAIN = {**_ALL, "startprob_": "float k", "transmat_": "float k k", "monitor_": "ConvergenceMonitor"}
_TOPICS = {**_ALL, "components_": "float k d", "_word_stream": "WordStream d"}

# Alternatives are separated by "|"; "list of" is a list or tuple of any length, "?" allows None.
LEARNED: Mapping[str, Mapping[str, str]] = {
    "SingleTopicModel": {**_TOPICS, "weights_": "float k"},
    "LatentDirichletAllocation": {**_TOPICS, "alpha_": "float k", "alpha0_": _NUMBER, "eta_": f"{_NUMBER}|float d"},
    "GaussianMixture": {
        **_MIXTURE,
        "means_": "float k d",
        "covariances_": f"float k|{_NUMBER}|float k d|float d d|float k d d",
        "_stream": "GaussianStream|ProductStream",
    },
    "ProductMixture": {
        **_MIXTURE,
        "means_": "float k d",
        "variances_": "float k d",
        "probabilities_": "list of float k *",
        "categories_": "list of any *",
        "families_": "plain",
        "_families": "Families",
        "_schema": "Schema",
        "_table": "float k *",
        "_stream": "ProductStream",
    },
    "MultiViewMixture": {
        **_MIXTURE,
        "means_": "list of float k *",
        "variances_": "list of ?float k *",
        "likelihoods_": "plain",
        "groups_": "plain",
        "view_widths_": "plain",
        "_model": "ViewModel",
        "_kinds": "ViewKinds",
        "_stream": "ViewStream",
    },
    "DawidSkene": {
        **_MIXTURE,
        "confusion_": "float d k l",
        "classes_": "any k",
        "given_labels_": "any l",
        "annotators_": "any d",
        "items_": "any *|plain",
        "layout_": "plain",
        "_stream": "list of CrowdMoments",
    },
    "CategoricalHMM": {
        **_CHAIN,
        "n_features_in_": _WHOLE,  # 1: symbols stand in one column
        "emissionprob_": "float k s",
        "n_symbols_": "size s",
        "_stream": "SymbolStream s",
    },
    "GaussianHMM": {
        **_CHAIN,
        "means_": "float k d",
        "covars_": "float k|float k d|float d d|float k d d",
        "_stream": "FeatureStream",
    },
    "PoissonHMM": {**_CHAIN, "lambdas_": "float k d", "_stream": "FeatureStream"},
    "ICA": {
        **_ALL,
        "mixing_": "float d k",
        "components_": "float k d",
        "sinr_components_": "float k d",
        "whitening_": "float * d",
        "mean_": "float d",
        "covariance_": "float d d",
        "noise_covariance_": "float d d",
        "kurtosis_": "float k",
        "_stream": "IcaStream",
    },
}


def check_learned(estimator: str, parameters: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise ValueError for an attribute that the estimator does not have, or that is not what it should be."""
    sizes: dict[str, int] = {}
    known = LEARNED[estimator]
    for name, value in state.items():
        if name not in known:
            raise ValueError(f"{estimator} has no attribute {name!r} that could be kept in a file.")
        if not any(fits(value, expected, sizes) for expected in known[name].split("|")):
            raise ValueError(f"{name} should be {known[name]!r}, found {_describe(value)}.")
    _check_together(parameters, state)


def _check_together(parameters: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Shapes that more than one attribute has a say in."""
    widths = state.get("view_widths_")
    if widths is not None and "means_" in state and [mean.shape[1] for mean in state["means_"]] != list(widths):
        raise ValueError("means_ and view_widths_ disagree.")
    if "covars_" in state:
        k, d = state["means_"].shape
        shapes = {"spherical": (k,), "diag": (k, d), "full": (k, d, d), "tied": (d, d)}
        if state["covars_"].shape != shapes[parameters["covariance_type"]]:
            raise ValueError(f"covars_ of shape {state['covars_'].shape} are not {parameters['covariance_type']!r}.")


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
