"""Replication of data that do not fit into memory: halves of them are fitted where they are."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError, MomentWarning
from odeco.fitting.choice.choose import parts_judged
from odeco.sources.halves import halves_of
from odeco.uncertainty.opened import Opened
from odeco.uncertainty.replication import SHOWN, SPLITS, agreement_of, claims

Floats = NDArray[np.float64]


def replication_of_source(data: Opened, rng: np.random.Generator) -> Floats:
    """Mean agreement of each component with its counterpart in fits of halves, on a sample of units."""
    units = data.units(rng)
    shown = units.take(np.sort(rng.permutation(units.n)[:SHOWN]))[0]
    own, agreements = claims(data.model, shown), []
    small, n_parts = data.model._most_judged() is not None, parts_judged(data.model, data.n)
    for _ in range(SPLITS):
        halves = halves_of(data.source, int(rng.integers(2**31)), n_parts, small=small)
        for half in halves or ():
            fitted = _fitted(data.model, half, rng)
            agreements.append(
                np.zeros(own.shape[1]) if fitted is None else agreement_of(data.model, own, fitted, shown)
            )
    return np.asarray(np.mean(agreements, axis=0))


def _fitted(model: Any, half: Any, rng: np.random.Generator) -> Any:
    again = copy(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MomentWarning)
            return again._fit_rows(half, rng)
    except (MomentError, ValueError, np.linalg.LinAlgError):
        return None
