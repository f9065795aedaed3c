"""From the moment estimate to the maximum of the likelihood: candidates for a start, compared on some rows, then EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.families.tables import Families
from odeco.fitting.candidates import EFFORTS, TIE, Candidate, Effort, Found, explained_gain, finish, is_any_dead, search
from odeco.kernels.threads import map_parts
from odeco.models.product_mixture.landscape import ProductLandscape
from odeco.models.product_mixture.moments import product_start
from odeco.models.product_mixture.policy import POLICY
from odeco.models.product_mixture.solve import ProductStart
from odeco.moments.passes import fill
from odeco.refinement.loop import Trace
from odeco.refinement.product_mixture import (
    BaseSum,
    Data,
    Parameters,
    ProductRefinement,
    expect,
    read_data,
    refine_products,
    source_data,
    stack,
)
from odeco.sources.dense import DenseBatch, DenseSource, join_batches
from odeco.sources.partitions import is_elsewhere
from odeco.sources.tables import TableSource

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a fit as their likelihood sees them, and some that candidates are compared on."""

    source: TableSource = field(repr=False)
    data: Data = field(repr=False)

    @classmethod
    def of(cls, source: TableSource, families: Families) -> Table:
        """Read the statistics of all rows."""
        return cls(source, source_data(families, source, POLICY.most_bytes))

    @property
    def families(self) -> Families:
        """The columns."""
        return self.data.families

    @cached_property
    def base(self) -> float:
        """The part of the mean log-likelihood that no parameter enters."""
        if not self.families.poisson.size and not self.families.gaussian.size:
            return 0.0
        return float(fill(BaseSum(self.families), self.source).total / self.data.weight)

    @cached_property
    def sample(self) -> tuple[DenseBatch, bool]:
        """The rows that candidates are compared on, and whether these are all."""
        return spread_rows(self.source, POLICY.most_rows)

    @property
    def is_whole(self) -> bool:
        """Whether candidates are compared on all rows."""
        return self.sample[1]

    def log_likelihood(self, parameters: Parameters) -> float:
        """Mean over the rows."""
        return float(expect(self.data, parameters).log_likelihood[0]) / self.data.weight + self.base

    def landscape(self, most: int = POLICY.most_rows) -> ProductLandscape:
        """The likelihood of the sampled rows, or of some of them."""
        rows, _ = spread_rows(_source(self.sample[0]), most)
        batch = np.asarray(rows.rows, dtype=np.float64), rows.weights
        sample = read_data(self.families, lambda: [batch], 2**62)
        return ProductLandscape(replace(sample, overall=self.data.overall), self.base)


@dataclass(frozen=True, eq=False)
class Start:
    """Where EM begins: the estimate itself, components drawn at random, or the best of several candidates."""

    parameters: Parameters
    said: tuple[str, ...] = ()
    searched: Found[Parameters] | None = field(default=None, repr=False)
    is_whole: bool = False

    @property
    def tol(self) -> float:
        """The gain of a step at which EM ends at the latest."""
        if self.searched is None:
            return np.inf
        return POLICY.small_tol if self.is_whole else POLICY.large_tol


@dataclass(frozen=True, eq=False)
class RefinedProducts:
    """Where the likelihood has led from a start, in one step or with a `trace` of EM; without a start, the estimate."""

    families: Families
    parameters: Parameters
    log_likelihood: float = float("nan")
    start: Start | None = None
    trace: Trace | None = None
    step_share: float | None = None

    @property
    def n_iter(self) -> int:
        """Steps that were taken."""
        return int(self.start is not None) if self.trace is None else self.trace.n_iter

    @property
    def converged(self) -> bool:
        """Whether EM has ended by its tolerance."""
        return self.trace is not None and self.trace.converged

    @property
    def steps(self) -> tuple[str, ...]:
        """What was done, in words."""
        if self.start is None:
            return ()
        return *self.start.said, "one scoring step" if self.trace is None else f"{self.trace.n_iter} EM steps"

    @property
    def details(self) -> dict[str, Any]:
        """For `Diagnostics.details`."""
        searched = None if self.start is None else self.start.searched
        trace: dict[str, Any] = {} if self.trace is None else {"refinement": self.trace}
        trace |= {} if self.step_share is None else {"step_share": self.step_share}
        return trace if searched is None else {**searched.details(), **trace}

    def advice(self, estimate: ProductStart | None, error: MomentError | None) -> list[str]:
        """What is in doubt; what the moments lack is made up for where many starts were compared on all rows."""
        start, status, unfinished = self.start, "", ""
        doubt = f"the moments could not be used: {error}" if estimate is None else estimate.doubt
        if doubt and start is not None and start.searched is not None:
            tried = f"EM started from the best of {len(start.searched.outcomes)} starts: try other seeds."
            doubt = "" if start.is_whole else f"{doubt} {tried}"
        found = None if start is not None or estimate is None else estimate.decomposition
        if found is not None and not found.status.ok:
            status = f"the tensor's decomposition is {found.status}"
        if self.trace is not None and not self.trace.converged:
            unfinished = f"EM has not converged: {self.trace.reason.value}"
        return [text for text in (doubt, status, unfinished) if text]


def choose_start(
    table: Table, estimate: ProductStart | None, k: int, method: Decomposer, effort: str, rng: np.random.Generator
) -> Start:
    """The estimate where no other is asked for or it is trusted, else the best of several candidates."""
    moments = None
    if estimate is not None:
        moments = estimate.parameters(table.families, POLICY.start_floor)[0]
        trusted = effort == "auto" and _shown(estimate) and beats_random_rows(table, moments, rng)
        if effort == "quick" or trusted:
            return Start(moments)
    elif effort == "quick":
        return Start(random_states(table.landscape(), k, 1, rng)[0], ("random rows",))
    found = find_start(table, moments, k, method, EFFORTS[effort], rng)
    said = str(found) if table.is_whole else f"{found} on {len(table.sample[0])} rows"
    return Start(found.best.state, (said,), found, table.is_whole)


def _shown(estimate: ProductStart | None) -> bool:
    """Whether the data show just k components, and the tensor has as many."""
    if estimate is None or estimate.column_pairs is not None:
        return False
    found = estimate.decomposition
    return found is not None and found.status.ok and estimate.n_distinct == len(estimate.weights)


def near_maximum(
    table: Table, estimate: ProductStart | None, max_iter: int, tol: float
) -> tuple[Start, ProductRefinement] | None:
    """EM from the estimate where it gains no more than sampling errors explain, and no component dies; elsewhere None.

    Then this needs no rival.
    """
    if estimate is None or not _shown(estimate):
        return None
    k = len(estimate.weights)
    limit = explained_gain(k - 1 + k * table.families.free_parameters(), table.data.weight)
    if limit < 0 or is_any_dead(estimate.weights):
        return None
    start = Start(estimate.parameters(table.families, POLICY.start_floor)[0])
    done = refine_products(table.data, start.parameters, max_iter=max_iter, tol=tol, most_gain=limit)
    is_near = done.trace.best - done.trace.records[0].value <= limit and not is_any_dead(done.parameters.weights[0])
    return (start, done) if is_near else None


def find_start(
    table: Table, moments: Parameters | None, k: int, method: Decomposer, effort: Effort, rng: np.random.Generator
) -> Found[Parameters]:
    """The best candidate; where rows were left out and are at hand, the two best compared on all of them."""
    landscape = table.landscape()
    found = search(landscape, _candidates(table, landscape, moments, k, method, effort, rng), k, effort, rng)
    if table.is_whole or is_elsewhere(table.source):
        return found
    return finish(found, ProductLandscape(table.data, table.base), effort.screen_steps)


def beats_random_rows(table: Table, moments: Parameters, rng: np.random.Generator) -> bool:
    """Whether a few random starts fall behind the moments on some of the rows; too few rows cannot tell."""
    if len(table.sample[0]) <= POLICY.few_rows:
        return False
    landscape, k, effort = table.landscape(POLICY.few_rows), moments.weights.shape[1], EFFORTS["auto"]
    rivals = stack([moments, *random_states(landscape, k, effort.n_field, rng, POLICY.few_budget)])
    values = _climbed(landscape.data, rivals, effort.screen_steps)[1]
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
    twice = 2 * k
    yield Candidate(f"random rows, {twice} of them", lambda: random_states(landscape, twice, 1, rng)[0], True, "larger")
    at_twice = partial(_moments_at, twice, table, method, rng)
    yield Candidate(f"the moments at {twice} components", at_twice, origin="larger")
    drawn = cache(partial(random_states, landscape, k, effort.n_field, rng))  # together, once any of them is asked for
    for number in range(effort.n_field):
        yield Candidate("random rows", lambda number=number: drawn()[number], True, "field")  # type: ignore[misc]


def _moments_at(k: int, table: Table, method: Decomposer, rng: np.random.Generator) -> Parameters | None:
    """The theorem's estimate of another number of components, from the rows of the search."""
    try:
        start = product_start(_source(table.sample[0]), table.source.schema, k, rng, method=method)
    except MomentError:
        return None
    return start.parameters(table.families, POLICY.start_floor)[0]


def _source(rows: DenseBatch) -> DenseSource:
    return DenseSource(lambda: [rows], len(rows))


def random_states(
    landscape: ProductLandscape, k: int, n_states: int, rng: np.random.Generator, budget: int = POLICY.budget
) -> list[Parameters]:
    """Components drawn around rows. In small tables, the best of many after a few steps: they are taken together."""
    data, n_rows = landscape.data, len(landscape.rows[0])
    room = budget // max(1, n_rows * (data.families.n_statistics + 10) * k)
    n_drawn = int(np.clip(room, n_states, POLICY.most_random))
    drawn = random_starts(landscape, n_drawn, k, rng)
    if n_drawn == n_states:
        return [drawn.pick(np.array([i])) for i in range(n_states)]
    climbed, values = _climbed(data, drawn, POLICY.first_steps)
    best = np.argsort(-values, kind="stable")[:n_states]
    return [climbed.pick(best[i : i + 1]) for i in range(n_states)]


def _climbed(data: Data, starts: Parameters, n_steps: int) -> tuple[Parameters, Floats]:
    """All starts so many steps on, and their values; on few rows some of them at a time, shared out among threads."""
    n_parts = min(starts.n_starts, POLICY.climbed_parts) if data.few is not None else 1
    parts = np.array_split(np.arange(starts.n_starts), n_parts)
    found = map_parts(lambda i: refine_products(data, starts.pick(parts[i]), max_iter=n_steps, tol=0.0), n_parts)
    return stack([part.parameters for part in found]), np.concatenate([part.values for part in found])


def random_starts(landscape: ProductLandscape, n_starts: int, k: int, rng: np.random.Generator) -> Parameters:
    """Components drawn around rows: half a row's own statistics, half those of all data, in varying shares.

    Every other start spreads its rows as k-means++ does, by squared distance of the statistics.
    """
    families, overall, (statistics, weights) = landscape.data.families, landscape.data.overall, landscape.rows
    masses = np.ones(len(statistics)) if weights is None else weights
    q, masses = families.n_parameters, masses / masses.sum()
    spread = statistics[:, :q] - overall[:q]
    deviation = np.sqrt(masses @ spread**2)
    spread = spread / np.where(deviation > 0, deviation, 1.0)
    tables = []
    for number in range(n_starts):
        rows = _spread_rows(spread, masses, k, rng) if number % 2 else rng.choice(len(masses), size=k, p=masses)
        share = rng.uniform(*POLICY.random_shares)
        noise = rng.dirichlet(np.ones(8), size=(k, q))[:, :, 0] * 2
        seen = statistics[rows]
        table = share * seen[:, :q] + (1 - share) * overall[:q] * (0.5 + noise)
        _, _, _, numbers, squares = families.spans
        table[:, numbers] = seen[:, numbers]
        table[:, squares] = rng.uniform(*POLICY.random_variances)
        known = np.isin(families.gaussian, families.masked)
        if known.any():  # a row without the value starts at the mean
            mask = seen[:, q + np.searchsorted(families.masked, families.gaussian[known])] > 0
            columns = np.arange(numbers.start, numbers.stop)[known]
            table[:, columns] = np.where(mask, table[:, columns], overall[columns])
        tables.append(families.project(np.clip(table, *_bounds(families, overall))))
    return Parameters(np.full((n_starts, k), 1.0 / k), np.concatenate(tables))


def _bounds(families: Families, overall: Floats) -> tuple[Floats, Floats]:
    low, high = np.full(families.n_parameters, POLICY.start_floor), np.full(families.n_parameters, np.inf)
    bernoulli, indicators, counts, numbers, _ = families.spans
    low[numbers] = -np.inf
    low[counts] = POLICY.least_random_rate * overall[counts]
    high[bernoulli] = high[indicators] = 1 - POLICY.start_floor
    return low, high


def _spread_rows(spread: Floats, masses: Floats, k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    chosen = [int(rng.choice(len(masses), p=masses))]
    nearest = np.full(len(masses), np.inf)
    while len(chosen) < k:
        away = spread - spread[chosen[-1]]
        nearest = np.minimum(nearest, np.einsum("ij,ij->i", away, away))
        chance = masses * nearest
        total = chance.sum()
        chosen.append(int(rng.choice(len(masses), p=chance / total if total > 0 else masses)))
    return np.array(chosen)


def spread_rows(source: DenseSource, most: int) -> tuple[DenseBatch, bool]:
    """About `most` rows, spread evenly over the weight of all, and whether these are all there are.

    Rows of large weight are met more than once, and have that weight; as often are others passed over.
    """
    if is_elsewhere(source):
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
