"""Errors of a likelihood that only draws know: its maximum near the fit, and scores of units, from a chain of draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import Entry, Free
from odeco.uncertainty.bounds import Errors
from odeco.uncertainty.likelihood import (
    MOST_COORDINATES,
    default_trials,
    determined,
    inverse_of,
    n_coordinates,
    slopes_of,
)
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.scales import forward, slope
from odeco.uncertainty.units import Units

Floats = NDArray[np.float64]

# Units for each coordinate at least: the inverse of a sum of fewer products is mostly chance.
_EACH = 4
# Numbers of the scores of all units at most: 320 MB for each of two chains.
_CELLS = 40_000_000


def sampled_errors(model: Any, arrays: list[Learned], units: Units, rng: np.random.Generator) -> list[Errors] | None:
    """About the maximum of the likelihood; None where there are no draws, or too many coordinates for the units."""
    frees: list[Free] | None = model._sampled_parameters()
    if frees is None or units.weights is not None:
        return None
    p = n_coordinates(frees)
    if p > MOST_COORDINATES or units.n < _EACH * p or units.n * p > _CELLS:
        return None
    found = model._sampled(units.whole[0], rng)
    if found is None:
        return None
    coordinates = [
        (Entry(free, place, None), j)
        for free in found.model._sampled_parameters()
        for j in range(len(free.values))
        for place in free.entries()
    ]
    outer = found.products()
    kept = determined(coordinates, np.diagonal(outer))
    # The mean of the inverse of n products of Gaussian scores is n / (n - p - 1) times the inverse of their mean.
    covariance = inverse_of(outer[np.ix_(kept, kept)]) * (units.n - len(kept) - 1) / units.n
    slopes = slopes_of(found.model, arrays, [coordinates[c] for c in kept])
    return [
        _errors(learned, model, found.model, np.einsum("ap,pq,aq->a", each, covariance, each), found.totals)
        for learned, each in zip(arrays, slopes, strict=True)
    ]


def _errors(learned: Learned, model: Any, best: Any, variances: Floats, totals: Floats) -> Errors:
    values, middle = learned.of(model), learned.of(best)
    standard = np.sqrt(np.maximum(variances, 0)).reshape(values.shape)
    trials = np.broadcast_to(default_trials(learned, values, totals), values.shape)
    return Errors(
        learned, values, standard, standard * slope(middle, learned.ranges), trials, _shift(learned, values, middle)
    )


def _shift(learned: Learned, values: Floats, middle: Floats) -> Floats:
    return forward(middle, learned.ranges) - forward(values, learned.ranges)


def about_maximum(model: Any, errors: list[Errors], units: Units, rng: np.random.Generator) -> list[Errors] | None:
    """Errors that are known, about the maximum of a likelihood that draws know; None where there is none."""
    if model._sampled_parameters() is None or units.weights is not None:
        return None
    found = model._sampled(units.whole[0], rng)
    if found is None:
        return None
    best = found.model
    return [replace(each, shift=_shift(each.learned, each.values, each.learned.of(best))) for each in errors]
