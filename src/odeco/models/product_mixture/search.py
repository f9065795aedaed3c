"""Where EM starts: candidates for a product mixture, compared on some of the rows, or on all where these are few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.fitting.candidates import EFFORTS, TIE, Candidate, Effort, Found, finish, search
from odeco.models.product_mixture.landscape import ProductLandscape
from odeco.models.product_mixture.moments import product_start
from odeco.models.product_mixture.starts import START_FLOOR, as_parameters, random_starts
from odeco.refinement.product_mixture import Data, Parameters, read_data, refine_products, stack
from odeco.sources.dense import DenseBatch, DenseSource, OutOfCoreRows, join_batches
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

# Rows on which candidates are compared; of larger tables, so many spread over all of them.
MOST_ROWS = 5_000
# Random starts take their first steps together, and as many as one step of so many products has room for.
_BUDGET, _MOST_RANDOM = 100_000_000, 120
# Rows on which it is seen whether a search is needed at all, and room for random starts there.
_FEW_ROWS, _FEW_BUDGET = 1_000, 1_000_000


@dataclass(frozen=True, eq=False)
class Table:
    """What the search knows: all rows and their statistics, and the rows that candidates are compared on."""

    source: DenseSource = field(repr=False)
    schema: Schema
    data: Data = field(repr=False)
    rows: DenseBatch = field(repr=False)
    is_whole: bool
    base: float

    @classmethod
    def of(cls, source: DenseSource, schema: Schema, data: Data, base: float) -> Table:
        """Take the rows."""
        rows, is_whole = spread_rows(source, MOST_ROWS)
        return cls(source, schema, data, rows, is_whole, base)

    def landscape(self, most: int = MOST_ROWS) -> ProductLandscape:
        """The likelihood of those rows, or of some of them."""
        rows, _ = spread_rows(DenseSource(lambda: [self.rows], len(self.rows)), most)
        batch = np.asarray(rows.rows, dtype=np.float64), rows.weights
        sample = read_data(self.data.families, lambda: [batch], 2**62)
        return ProductLandscape(replace(sample, overall=self.data.overall), self.base)


def find_start(
    table: Table, moments: Parameters | None, k: int, method: Decomposer, effort: Effort, rng: np.random.Generator
) -> Found[Parameters]:
    """The best candidate; where rows were left out and are at hand, the two best compared on all of them."""
    landscape = table.landscape()
    found = search(landscape, _candidates(table, landscape, moments, k, method, effort, rng), k, effort, rng)
    if table.is_whole or isinstance(table.source, OutOfCoreRows):
        return found
    return finish(found, ProductLandscape(table.data, table.base), effort.screen_steps)


def beats_random_rows(table: Table, moments: Parameters, rng: np.random.Generator) -> bool:
    """Whether a few random starts fall behind the moments on some of the rows; too few rows cannot tell."""
    if len(table.rows) <= _FEW_ROWS:
        return False
    landscape, k, effort = table.landscape(_FEW_ROWS), moments.weights.shape[1], EFFORTS["auto"]
    rivals = stack([moments, *random_states(landscape, k, effort.n_field, rng, _FEW_BUDGET)])
    values = refine_products(landscape.data, rivals, max_iter=effort.screen_steps, tol=0.0).values
    return bool(values[0] >= values.max() - TIE)


def _candidates(
    table: Table,
    landscape: ProductLandscape,
    moments: Parameters | None,
    k: int,
    method: Decomposer,
    effort: Effort,
    rng: np.random.Generator,
) -> Iterator[Candidate[Parameters]]:
    yield Candidate("the moments", lambda: moments)
    yield Candidate(f"the moments at {2 * k} components", lambda: _moments_at(2 * k, table, method, rng))
    yield Candidate(f"random rows, {2 * k} of them", lambda: random_states(landscape, 2 * k, 1, rng)[0], True)
    for state in random_states(landscape, k, effort.n_field, rng):
        yield Candidate("random rows", partial(_same, state), chance=True)


def _same(state: Parameters) -> Parameters:
    return state


def _moments_at(k: int, table: Table, method: Decomposer, rng: np.random.Generator) -> Parameters | None:
    """The theorem's estimate of another number of components, from the rows of the search."""
    try:
        start = product_start(DenseSource(lambda: [table.rows], len(table.rows)), table.schema, k, rng, method=method)
    except MomentError:
        return None
    return as_parameters(table.data.families, start, START_FLOOR)[0]


def random_states(
    landscape: ProductLandscape, k: int, n_states: int, rng: np.random.Generator, budget: int = _BUDGET
) -> list[Parameters]:
    """Components drawn around rows. In small tables, the best of many after a few steps: they are taken together."""
    data, (statistics, weights) = landscape.data, landscape.rows
    mass = np.ones(len(statistics)) if weights is None else weights
    room = budget // max(1, len(statistics) * (data.families.n_statistics + 10) * k)
    n_drawn = int(np.clip(room, n_states, _MOST_RANDOM))
    drawn = random_starts(data.families, data.overall, statistics, mass, n_drawn, k, rng)
    if n_drawn == n_states:
        return [drawn.pick(np.array([i])) for i in range(n_states)]
    climbed = refine_products(data, drawn, max_iter=40, tol=0.0)
    best = np.argsort(-climbed.values, kind="stable")[:n_states]
    return [climbed.parameters.pick(best[i : i + 1]) for i in range(n_states)]


def spread_rows(source: DenseSource, most: int) -> tuple[DenseBatch, bool]:
    """About `most` rows, spread evenly over the weight of all, and whether these are all there are.

    Rows of large weight are met more than once, and have that weight; as often are others passed over.
    """
    if isinstance(source, OutOfCoreRows):
        return source.sample(most), False
    masses = [np.ones(len(batch)) if batch.weights is None else batch.weights for batch in source]
    mass = np.concatenate(masses)
    if len(mass) <= most:
        return join_batches(list(source)), True
    n_points, met = most, _points_met(mass, most)
    while np.count_nonzero(met) < 0.7 * most:
        n_points, met = 2 * n_points, _points_met(mass, 2 * n_points)
    parts = np.split(met, np.cumsum([len(part) for part in masses])[:-1])
    kept = [DenseBatch(batch.rows[part > 0], part[part > 0]) for batch, part in zip(source, parts, strict=True)]
    return join_batches(kept), False


def _points_met(mass: Floats, n_points: int) -> Floats:
    """How many of so many points, spread evenly over the total mass, lie in each row's share of it."""
    ends = np.append(0.0, np.cumsum(mass))
    return np.asarray(np.diff(np.floor(ends * (n_points / ends[-1]) + 0.5)))
