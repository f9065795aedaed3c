"""Where EM may start: the moment estimate as parameters, and components drawn around rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.models.product_mixture.solve import ProductStart
from odeco.refinement.families import Families
from odeco.refinement.product_mixture import Parameters

Floats = NDArray[np.float64]

# How far the moment estimate stays from impossible values as a start: EM cannot come back from them.
START_FLOOR = 1e-3


def as_parameters(families: Families, start: ProductStart, floor: float) -> tuple[Parameters, float]:
    """The moment estimate in the parameters of EM, at least `floor` from the ends, and the mass that was clipped."""
    features = start.features
    means = start.feature_means
    k = len(start.weights)
    table = np.empty((k, families.n_parameters))
    bernoulli, indicators, counts, numbers, squares = families.spans
    starts = features.starts
    at = starts[families.bernoulli]
    p = means[:, at] * features.scale[families.bernoulli] + features.centre[families.bernoulli]
    table[:, bernoulli] = np.clip(p, floor, 1 - floor)
    clipped = float(np.abs(p - np.clip(p, 0, 1)).max(initial=0.0))
    where = np.concatenate(
        [np.arange(s, s + size) for s, size in zip(starts[families.categorical], families.sizes, strict=True)]
        or [np.empty(0, int)]
    )
    raw = means[:, where.astype(int)]
    clipped = max(clipped, float(np.maximum(-raw, 0.0).max(initial=0.0)))
    table[:, indicators] = np.maximum(raw, floor)
    rate = means[:, starts[families.poisson]] * features.scale[families.poisson] + features.centre[families.poisson]
    table[:, counts] = np.maximum(rate, max(floor, 1e-12) * np.maximum(features.centre[families.poisson], 1e-3))
    at, columns = starts[families.gaussian], families.gaussian
    # Columns of a sample have a centre and a scale of their own.
    ratio = features.scale[columns] / families.scale[columns]
    shift = (features.centre[columns] - families.centre[columns]) / families.scale[columns]
    table[:, numbers] = means[:, at] * ratio + shift
    table[:, squares] = np.maximum(start.feature_seconds[:, at] - means[:, at] ** 2, 1e-2) * ratio**2
    return Parameters(start.weights[None], families.project(table)), clipped


def random_starts(
    families: Families,
    overall: Floats,
    statistics: Floats,
    weights: Floats,
    n_starts: int,
    k: int,
    rng: np.random.Generator,
) -> Parameters:
    """Components drawn around rows: half a row's own statistics, half those of all data, in varying shares.

    Every other start spreads its rows as k-means++ does, by squared distance of the statistics.
    """
    q = families.n_parameters
    masses = weights / weights.sum()
    spread = statistics[:, :q] - overall[:q]
    deviation = np.sqrt(masses @ spread**2)
    spread = spread / np.where(deviation > 0, deviation, 1.0)
    tables = []
    for number in range(n_starts):
        rows = _spread_rows(spread, masses, k, rng) if number % 2 else rng.choice(len(masses), size=k, p=masses)
        share = rng.uniform(0.2, 0.8)
        noise = rng.dirichlet(np.ones(8), size=(k, q))[:, :, 0] * 2
        seen = statistics[rows]
        table = share * seen[:, :q] + (1 - share) * overall[:q] * (0.5 + noise)
        _, _, _, numbers, squares = families.spans
        table[:, numbers] = seen[:, numbers]
        table[:, squares] = rng.uniform(0.2, 1.0)
        known = np.isin(families.gaussian, families.masked)
        if known.any():  # a row without the value starts at the mean
            mask = seen[:, q + np.searchsorted(families.masked, families.gaussian[known])] > 0
            columns = np.arange(numbers.start, numbers.stop)[known]
            table[:, columns] = np.where(mask, table[:, columns], overall[columns])
        tables.append(families.project(np.clip(table, *_bounds(families, overall))))
    return Parameters(np.full((n_starts, k), 1.0 / k), np.concatenate(tables))


def _bounds(families: Families, overall: Floats) -> tuple[Floats, Floats]:
    low, high = np.full(families.n_parameters, 1e-3), np.full(families.n_parameters, np.inf)
    bernoulli, indicators, counts, numbers, _ = families.spans
    low[numbers] = -np.inf
    low[counts] = 0.05 * overall[counts]
    high[bernoulli] = high[indicators] = 1 - 1e-3
    return low, high


def _spread_rows(spread: Floats, masses: Floats, k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    chosen = [int(rng.choice(len(masses), p=masses))]
    nearest = np.full(len(masses), np.inf)
    while len(chosen) < k:
        nearest = np.minimum(nearest, np.sum((spread - spread[chosen[-1]]) ** 2, axis=1))
        chance = masses * nearest
        total = chance.sum()
        chosen.append(int(rng.choice(len(masses), p=chance / total if total > 0 else masses)))
    return np.array(chosen)
