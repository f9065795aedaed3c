"""What the estimators have learned, in the words of `odeco.persistence.shapes`: checked when a model is saved and when
it is loaded.

`k` is the number of components, `d` that of features. Compiled loops trust what stands here, and the sums of
`partial_fit` too (`odeco.persistence.sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odeco.persistence.sums import fits

_ALL = {
    "n_features_in_": "whole d",
    "feature_names_in_": "any d",
    "n_iter_": "whole",
    "diagnostics_": "Diagnostics",
    "_sklearn_output_config": "plain",  # of set_output
}
_MIXTURE = {**_ALL, "weights_": "simplex k", "converged_": "flag", "lower_bound_": "number"}
_CHAIN = {**_ALL, "startprob_": "simplex k", "transmat_": "simplex k k", "monitor_": "ConvergenceMonitor"}
_TOPICS = {**_ALL, "components_": "simplex k d", "_stream": "stream StreamedWords d; Batch d"}
_COVARIANCES = {
    "spherical": "nonnegative k",
    "tied_spherical": "finite-number",
    "diag": "nonnegative k d",
    "full": "finite k d d",
    "tied": "finite d d",
}
_BY_PARAMETER = "by covariance_type"
# What a fitted model may lack: names and sums that were never given, and what it says of a fit that never was.
_OPTIONAL = {"feature_names_in_", "_sklearn_output_config", "_stream", "n_iter_", "diagnostics_"}
_OPTIONAL |= {"monitor_", "converged_", "lower_bound_", "groups_"}

LEARNED: Mapping[str, Mapping[str, str]] = {
    "SingleTopicModel": {**_TOPICS, "weights_": "simplex k"},
    "LatentDirichletAllocation": {
        **_TOPICS,
        "alpha_": "nonnegative k",
        "alpha0_": "finite-number",
        "eta_": "finite-number|nonnegative d",
    },
    "GaussianMixture": {
        **_MIXTURE,
        "means_": "finite k d",
        "covariances_": _BY_PARAMETER,
        "_stream": "stream VectorMoments d; DenseBatch d|stream StreamedTable d; TableChunk d",
    },
    "ProductMixture": {
        **_MIXTURE,
        "means_": "finite k d",
        "variances_": "nonnegative k d",
        "_schema": "Schema d",
        "_families": "Families d",
        "families_": "list d of among gaussian bernoulli categorical poisson",
        "probabilities_": "list c of simplex k c#",
        "categories_": "list c of any c#",
        "_table": "finite k q",
        "_stream": "stream StreamedTable d; TableChunk d",
    },
    "MultiViewMixture": {
        **_MIXTURE,
        "view_widths_": "list v of whole w#",
        "means_": "list v of finite k w#",
        "variances_": "list v of ?nonnegative k w#",
        "likelihoods_": "list v of among gaussian bernoulli multinomial poisson",
        "groups_": "list of list of whole",
        "_model": "ViewModel v",
        "_kinds": "ViewKinds v",
        "_stream": "stream StreamedViews v; ViewBatch v",
    },
    "DawidSkene": {
        **_MIXTURE,
        "confusion_": "simplex d k l",
        "classes_": "any k",
        "given_labels_": "any l",
        "annotators_": "any d",
        "items_": "any *|plain",
        "layout_": "text",
        "_stream": "stream StreamedVotes d l; VoteBatch",
    },
    "CategoricalHMM": {
        **_CHAIN,
        "n_features_in_": "whole 1",  # symbols stand in one column
        "n_symbols_": "whole s",
        "emissionprob_": "simplex k s",
        "_stream": "stream StreamedSymbols s; Sequences",
    },
    "GaussianHMM": {
        **_CHAIN,
        "means_": "finite k d",
        "covars_": _BY_PARAMETER,
        "_stream": "stream StreamedFeatures d; Sequences d",
    },
    "PoissonHMM": {**_CHAIN, "lambdas_": "nonnegative k d", "_stream": "stream StreamedFeatures d; Sequences d"},
    "ICA": {
        **_ALL,
        "mixing_": "finite d k",
        "components_": "finite k d",
        "sinr_components_": "finite k d",
        "whitening_": "finite * d",
        "mean_": "finite d",
        "covariance_": "finite d d",
        "noise_covariance_": "finite d d",
        "kurtosis_": "finite k",
        "_stream": "stream StreamedChannels d; DenseBatch d",
    },
}


def check_learned(estimator: str, parameters: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise ValueError for an attribute that the estimator does not have, or that is not what it should be."""
    sizes: dict[str, int] = {}
    known = LEARNED[estimator]
    for name in state:
        if name not in known:
            raise ValueError(f"{estimator} has no attribute {name!r} that could be kept in a file.")
    for name in [
        name for name in known if name in state
    ]:  # in this order: sizes come before what is compared with them
        expected = known[name]
        if expected == _BY_PARAMETER:
            expected = _COVARIANCES[parameters["covariance_type"]]
        if not fits(state[name], expected, sizes):
            raise ValueError(f"{name} should be {expected!r}{_told(sizes)}, found {_describe(state[name])}.")
    missing = [name for name in known if name not in state and name not in _OPTIONAL]
    if missing and "k" in sizes:
        raise ValueError(f"{missing[0]} is missing.")
    if "_families" in state:
        _check_table(state)
    if "n_symbols_" in state and "_stream" in state:
        _check_symbols(state["_stream"], int(state["n_symbols_"]))


def _check_symbols(stream: Any, n_symbols: int) -> None:
    """Steps that are held are of the model's symbols, and one more for what is missing."""
    held = [*stream._waiting, *([] if stream.first is None else [stream.first])]
    if any(data.codes is None or len(data.values) != n_symbols + 1 for data in held):
        raise ValueError(f"_stream should hold steps of {n_symbols} symbols.")


def _check_table(state: Mapping[str, Any]) -> None:
    """The columns of a table by three accounts: schema, families, and the parameters of a component."""
    families, schema = state["_families"], state["_schema"]
    expected = type(families).of(schema, families.centre, families.scale)
    for name in ("bernoulli", "categorical", "poisson", "gaussian", "sizes"):
        if not np.array_equal(getattr(families, name), getattr(expected, name)):
            raise ValueError(f"_families and _schema disagree about {name}.")
    if tuple(state["families_"]) != tuple(schema.families) or state["_table"].shape[1] != families.n_parameters:
        raise ValueError("families_ and _table are not those of _schema.")


def _told(sizes: Mapping[str, int]) -> str:
    told = ", ".join(f"{letter} = {size}" for letter, size in sizes.items())
    return f" with {told}" if told else ""


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
