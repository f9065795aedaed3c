"""Whether components come back: each half of the data fitted by itself, and compared with the fit.

Components are compared by what they claim: the shares of all units that a fit gives them (or, of signals, the
sources). Of sums alone, where there are no units, by their parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError, MomentWarning
from odeco.uncertainty.matching import Matcher
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.replicates import combined, unfitted
from odeco.uncertainty.units import Units

Floats = NDArray[np.float64]

SPLITS = 2
SHOWN = 4000  # units that shares are compared on


def replication_of_rows(model: Any, units: Units, rng: np.random.Generator) -> Floats:
    """Mean agreement of each component with its counterpart in fits of halves."""
    some = np.sort(rng.permutation(units.n)[:SHOWN]) if units.kind != "blocks" else np.arange(units.n)
    shown = units.take(some)[0]
    own, agreements = claims(model, shown), []
    for _ in range(SPLITS):
        order = rng.permutation(units.n)
        for half in (order[: units.n // 2], order[units.n // 2 :]):
            fitted = _fitted(model, units, np.sort(half), rng)
            agreements.append(np.zeros(own.shape[1]) if fitted is None else agreement(own, claims(fitted, shown)))
    return np.asarray(np.mean(agreements, axis=0))


def claims(model: Any, X: Any) -> Floats:
    """Shares of units (n, k), or the sources themselves."""
    answer = model.predict_proba if hasattr(model, "predict_proba") else model.transform
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        return np.asarray(answer(X), dtype=np.float64)


def agreement(first: Floats, second: Floats) -> Floats:
    """Cosines (k,) of the columns of `first` with their counterparts, one to one, in `second`."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    lengths = [np.maximum(np.linalg.norm(each, axis=0), 1e-300) for each in (first, second)]
    cosines = np.abs((first / lengths[0]).T @ (second / lengths[1]))
    rows, columns = linear_sum_assignment(-cosines)
    found = np.zeros(first.shape[1])
    found[rows] = cosines[rows, columns]
    return np.minimum(found, 1.0)


def _fitted(model: Any, units: Units, half: NDArray[np.intp], rng: np.random.Generator) -> Any:
    X, given = units.take(half)
    again = unfitted(model)
    again.random_state = int(rng.integers(2**31))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MomentWarning)
            return again.fit(X, **given)
    except (MomentError, ValueError, np.linalg.LinAlgError):
        return None


def replication_of_sums(model: Any, arrays: list[Learned], parts: Sequence[Any], rng: np.random.Generator) -> Floats:
    """The same of sums: how near the counterpart is, beside the nearest other component of the fit."""
    packed, counts = [part._stream.sums.pack() for part in parts], [int(part._stream.n) for part in parts]
    matcher = Matcher(model, arrays)
    own, agreements = matcher.fit, []
    for _ in range(SPLITS):
        first = np.isin(np.arange(len(parts)), rng.permutation(len(parts))[: len(parts) // 2])
        for half in (first, ~first):
            fitted = combined(parts, packed, counts, half.astype(np.int64))
            found = None if fitted is None else matcher.vectors(fitted)
            bad = found is None or found.shape != own.shape or not np.isfinite(found).all()
            agreements.append(np.zeros(own.shape[1]) if bad else _nearness(own, found, bool(model._signed)))
    return np.asarray(np.mean(agreements, axis=0))


def _nearness(own: Floats, found: Any, up_to_sign: bool) -> Floats:
    """1 at the same place, 0 as far away as the nearest other component."""
    from odeco.metrics import match_components

    matched = match_components(found, own, up_to_sign=up_to_sign)
    if own.shape[1] == 1:
        apart = np.linalg.norm(own, axis=0) ** 2
    else:
        gaps = np.linalg.norm(own[:, :, None] - own[:, None], axis=0) ** 2
        apart = np.min(gaps + np.where(np.eye(own.shape[1]) > 0, np.inf, 0.0), axis=1)
    return np.asarray(np.clip(1 - matched.errors**2 / np.maximum(apart, 1e-300), 0.0, 1.0))
