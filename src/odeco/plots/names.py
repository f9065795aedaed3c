"""Names for columns, words and components, given by the caller or learned by the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from odeco.diagnostics import Diagnostics


def check_model(model: Any) -> Diagnostics:
    """The diagnostics of a fitted estimator; anything else is an error."""
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "get_params") or isinstance(model, type):
        raise ValueError(f"model must be a fitted estimator of odeco, got {model!r}.")
    check_is_fitted(model)
    report = getattr(model, "diagnostics_", None)
    if not isinstance(report, Diagnostics):
        raise ValueError(f"model must be a fitted estimator of odeco, got {type(model).__name__} without diagnostics_.")
    return report


def kind_of(model: Any) -> str:
    """The name of the estimator of odeco that a model is, or derives from; "" for anything else."""
    return next((c.__name__ for c in type(model).__mro__ if c.__module__.startswith("odeco.models.")), "")


def check_kind(model: Any, *kinds: str) -> Diagnostics:
    """The diagnostics of a fitted estimator of one of these classes."""
    report = check_model(model)
    if kind_of(model) not in kinds:
        raise ValueError(f"model must be one of {', '.join(kinds)}, got {type(model).__name__}.")
    return report


@contextmanager
def batches_without_names() -> Iterator[None]:
    """Batches of a frame may have lost or gained the names of its columns: scikit-learn's word on that helps no one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names", category=UserWarning)
        yield


def column_names(model: Any, given: Iterable[Any] | None, n: int, *, what: str, argument: str) -> list[str]:
    """`n` names: those given, those of the DataFrame the model was fitted to, or "`what` 0", "`what` 1", ..."""
    if given is None:
        given = getattr(model, "feature_names_in_", None)
        if given is None or len(list(given)) != n:
            return [f"{what} {i}".strip() for i in range(n)]
    names = [str(name) for name in given]
    if len(names) != n:
        raise ValueError(f"{argument} must hold {n} names, one for each column of the model, got {len(names)}.")
    return names
