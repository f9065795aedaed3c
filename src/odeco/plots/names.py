"""Names for columns, words and components, given by the caller or learned by the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from odeco.diagnostics import Diagnostics
from odeco.models.cards import card_of, cards, known_card


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


def rows_of(model: Any) -> str:
    """The kind of rows that a model is fitted to, as its card says."""
    return known_card(model).rows


def suits(model: Any, plot: str) -> bool:
    """Whether a function of `odeco.plots` has numbers for such models, as their card says."""
    card = card_of(model)
    return card is not None and plot in card.plots


def check_suits(model: Any, plot: str) -> Diagnostics:
    """The diagnostics of a fitted estimator that a function of `odeco.plots` has numbers for."""
    report = check_model(model)
    if not suits(model, plot):
        kinds = ", ".join(card.class_name for card in cards() if plot in card.plots)
        raise ValueError(f"model must be one of {kinds}, got {type(model).__name__}.")
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
