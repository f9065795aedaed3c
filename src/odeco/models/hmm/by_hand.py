"""Chains whose parameters were set by hand, as users of hmmlearn do: checked, and then as good as fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

_SUM_TOLERANCE = 1e-6  # what people round to when they type probabilities
_EMISSIONS = ("emissionprob_", "means_", "lambdas_")  # of the three families; each has one


def settle_by_hand(model: Any) -> None:
    """Check parameters that no fit has set, and learn the form of the observations from them."""
    if hasattr(model, "n_features_in_"):
        return  # a fit has set them, or this function
    emissions = next((name for name in _EMISSIONS if name in vars(model)), None)
    needed = ["startprob_", "transmat_", *([] if emissions is None else [emissions])]
    needed += ["covars_"] if emissions == "means_" else []
    missing = [name for name in needed if name not in vars(model)]
    if missing or emissions is None:
        what = ", ".join(missing) or "emissions"
        raise NotFittedError(f"this {type(model).__name__} has no {what} yet: call fit, or set them all by hand.")
    k = model.n_components
    model.startprob_ = _rows(model, "startprob_", (k,), probabilities=True)
    model.transmat_ = _rows(model, "transmat_", (k, k), probabilities=True)
    table = _rows(model, emissions, (k, None), probabilities=emissions == "emissionprob_")
    setattr(model, emissions, table)
    if emissions == "emissionprob_":
        model.n_symbols_, model.n_features_in_ = table.shape[1], 1
        return
    if emissions == "means_":
        model.covars_ = _covariances(model, k, table.shape[1])
    model.n_features_in_ = table.shape[1]


def _rows(model: Any, name: str, shape: tuple[int | None, ...], *, probabilities: bool) -> NDArray[np.float64]:
    values = np.asarray(getattr(model, name), dtype=np.float64)
    fits = values.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, values.shape, strict=True))
    if not fits or not np.isfinite(values).all():
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(
            f"{name} must be finite and have the shape ({wanted}), for n_components={model.n_components}, got "
            f"{values.shape}."
        )
    if probabilities and (values.min() < 0 or np.abs(values.sum(axis=-1) - 1).max() > _SUM_TOLERANCE):
        raise ValueError(f"{name} must hold probabilities that sum to 1, got sums {np.round(values.sum(axis=-1), 6)}.")
    return values


def _covariances(model: Any, k: int, d: int) -> NDArray[np.float64]:
    shapes = {"spherical": (k,), "diag": (k, d), "full": (k, d, d), "tied": (d, d)}
    if model.covariance_type not in shapes:
        raise ValueError(f"covariance_type must be one of {sorted(shapes)}, got {model.covariance_type!r}.")
    return _rows(model, "covars_", shapes[model.covariance_type], probabilities=False)
