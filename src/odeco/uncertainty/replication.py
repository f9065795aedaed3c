"""Whether components come back: each half of the data fitted by itself, and compared with the fit.

Components are compared by what they claim: the shares of all units that a fit gives them, of which those that both
claim count beside what each does. So a component that takes a part of another's does not count as that one. Of
signals the sources are compared, and how far their kurtosis stands out: of directions of noise any agree to some
degree. Of sums alone, where there are no units, parameters are compared.
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
            agreements.append(np.zeros(own.shape[1]) if fitted is None else agreement_of(model, own, fitted, shown))
    return np.asarray(np.mean(agreements, axis=0))


def agreement_of(model: Any, own: Floats, fitted: Any, shown: Any) -> Floats:
    """How much each component, claiming `own` of the units shown, agrees with its counterpart in another fit."""
    found = claims(fitted, shown)
    if (own >= 0).all() and (found >= 0).all():
        return agreement(own, found)
    return source_agreement(own, found, model._evidence(), fitted._evidence())


def claims(model: Any, X: Any) -> Floats:
    """Shares of units (n, k), or the sources themselves."""
    answer = model.predict_proba if hasattr(model, "predict_proba") else model.transform
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        return np.asarray(answer(X), dtype=np.float64)


def agreement(first: Floats, second: Floats) -> Floats:
    """What each column of `first` and its counterpart, one to one, in `second` both claim, beside their mean (k,)."""
    from scipy.spatial.distance import cdist  # slow to import

    totals = first.sum(axis=0)[:, None] + second.sum(axis=0)
    return _paired(1 - cdist(first.T, second.T, "cityblock") / np.maximum(totals, 1e-300))[0]


def source_agreement(first: Floats, second: Floats, own: Floats | None, other: Floats | None) -> Floats:
    """Correlations (k,) of sources with their counterparts, times what of their evidence both have, 1 at most."""
    units = [each - each.mean(axis=0) for each in (first, second)]
    units = [each / np.maximum(np.linalg.norm(each, axis=0), 1e-300) for each in units]
    found, partners = _paired(np.abs(units[0].T @ units[1]))
    if own is None or other is None:
        return found
    matched = np.where(partners >= 0, other[partners], 0.0)
    both = np.minimum(np.abs(own), np.abs(matched)) * (own * matched > 0)
    return np.asarray(found * np.minimum(both, 1.0))


def _paired(alike: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The likeness (k,) of each row's counterpart, and which column that is; -1 for none."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(-alike)
    found, partners = np.zeros(len(alike)), np.full(len(alike), -1, dtype=np.intp)
    found[rows], partners[rows] = alike[rows, columns], columns
    return np.clip(found, 0.0, 1.0), partners


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
        apart = np.linalg.norm(own, axis=0)
    else:
        gaps = np.linalg.norm(own[:, :, None] - own[:, None], axis=0)
        apart = np.min(gaps + np.where(np.eye(own.shape[1]) > 0, np.inf, 0.0), axis=1)
    return np.asarray(np.clip(1 - matched.errors / np.maximum(apart, 1e-300), 0.0, 1.0))
