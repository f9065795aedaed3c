"""What the estimators have learned: names, dtypes and shapes, checked when a model is saved and when it is loaded.

`k` is the number of components, `d` that of features; any other letter is a size of its own, the same wherever it
stands in one model, and `*` any size. Compiled loops trust these shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from odeco.persistence.registry import name_of

_NUMBER, _WHOLE, _FLAG = "number", "whole number", "flag"

_ALL = {
    "n_features_in_": _WHOLE,
    "feature_names_in_": "any d",
    "n_iter_": _WHOLE,
    "diagnostics_": "Diagnostics",
    "_sklearn_output_config": "plain",  # of set_output
}
_MIXTURE = {**_ALL, "weights_": "float k", "converged_": _FLAG, "lower_bound_": _NUMBER}
_CHAIN = {**_ALL, "startprob_": "float k", "transmat_": "float k k", "monitor_": "ConvergenceMonitor"}
_TOPICS = {**_ALL, "components_": "float k d", "_word_stream": "WordStream"}

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
    "CategoricalHMM": {**_CHAIN, "emissionprob_": "float k s", "n_symbols_": _WHOLE, "_stream": "SymbolStream"},
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


def check_learned(estimator: str, state: Mapping[str, Any]) -> None:
    """Raise ValueError for an attribute that the estimator does not have, or that is not what it should be."""
    sizes: dict[str, int] = {}
    known = LEARNED[estimator]
    if isinstance(state.get("n_features_in_"), int) and estimator != "CategoricalHMM":
        sizes["d"] = state["n_features_in_"]
    for name, value in state.items():
        if name not in known:
            raise ValueError(f"{estimator} has no attribute {name!r} that could be kept in a file.")
        if not any(_fits(value, expected, sizes) for expected in known[name].split("|")):
            raise ValueError(f"{name} should be {known[name]!r}, found {_describe(value)}.")


def _fits(value: Any, expected: str, sizes: dict[str, int]) -> bool:
    if expected.startswith("list of "):
        inner = expected.removeprefix("list of ")
        return isinstance(value, (list, tuple)) and all(_fits(item, inner, sizes) for item in value)
    if expected.startswith("?"):
        return value is None or _fits(value, expected.removeprefix("?"), sizes)
    if expected == _NUMBER:
        return isinstance(value, (float, int, np.floating)) and not isinstance(value, bool)
    if expected == _WHOLE:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)
    if expected == _FLAG:
        return isinstance(value, (bool, np.bool_))
    if expected == "plain":
        return _is_plain(value)
    kind, *shape = expected.split()
    if kind not in ("float", "any"):
        return name_of(value) == expected
    if not isinstance(value, np.ndarray) or (kind == "float" and value.dtype not in (np.float64, np.float32)):
        return False
    return _shape_fits(value.shape, shape, sizes)


def _shape_fits(shape: tuple[int, ...], symbols: list[str], sizes: dict[str, int]) -> bool:
    """Whether a shape agrees with what is known of the sizes; what it adds to that is remembered."""
    if len(shape) != len(symbols):
        return False
    found = dict(sizes)
    for length, symbol in zip(shape, symbols, strict=True):
        if symbol != "*" and found.setdefault(symbol, length) != length:
            return False
    sizes.update(found)
    return True


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, (str, np.ndarray)):
        return isinstance(value, (list, tuple)) and all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.integer))


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
