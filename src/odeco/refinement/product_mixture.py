"""EM for mixtures of product distributions, accelerated and monotone, from one start or from many at once.

Starts are stacked: S starts of k components are S k rows of one parameter table, and posteriors are normalized within
each group of k. All starts share the two matrix products of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import DenseBlock, expected_of_rows
from odeco.families.simplex import proportions
from odeco.families.tables import Families
from odeco.kernels.threads import even_runs, map_parts
from odeco.moments.base import Additive
from odeco.refinement.loop import Record, StopReason, Trace
from odeco.refinement.short_tables import SHORT, FewRows
from odeco.sources.dense import DenseBatch, OutOfCoreRows
from odeco.sources.partitions import is_elsewhere

Floats = NDArray[np.float64]
Batch = tuple[Floats, Floats | None]

# Pseudo-observations of each component, with the mean statistics of all data: no probability and no variance is 0.
PRIOR = 1e-6
# Rows from which on threads share the work on them.
_MANY = 16_384
# Rows of a source elsewhere that starts are compared on.
_SAMPLE = 5000


@dataclass(frozen=True, eq=False)
class Parameters:
    """S mixtures of k components: weights (S, k) and parameters (S k, Q)."""

    weights: Floats
    table: Floats = field(repr=False)

    @property
    def n_starts(self) -> int:
        """S."""
        return int(self.weights.shape[0])

    def pick(self, starts: NDArray[np.intp]) -> Parameters:
        """Some of the mixtures."""
        k = self.weights.shape[1]
        rows = (starts[:, None] * k + np.arange(k)).ravel()
        return Parameters(self.weights[starts], self.table[rows])


def stack(mixtures: Iterable[Parameters]) -> Parameters:
    """Several sets of mixtures as one."""
    parts = list(mixtures)
    return Parameters(np.concatenate([part.weights for part in parts]), np.concatenate([part.table for part in parts]))


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected sums under the posteriors of all mixtures, and their log-likelihoods."""

    sums: Floats  # (S k, P)
    totals: Floats  # (S k,)
    log_likelihood: Floats  # (S,)

    def __add__(self, other: Expectation) -> Expectation:
        likelihood = self.log_likelihood + other.log_likelihood
        return Expectation(self.sums + other.sums, self.totals + other.totals, likelihood)


@dataclass(frozen=True, eq=False)
class Data:
    """Statistics of all samples, read again and again: batches (statistics, weights or None)."""

    families: Families
    batches: Iterable[Batch] = field(repr=False)
    weight: float
    overall: Floats = field(repr=False)  # mean statistics, (P,)

    @cached_property
    def few(self) -> FewRows | None:
        """The same for compiled climbs, where there are few rows, in one batch."""
        if not isinstance(self.batches, list) or len(self.batches) != 1 or len(self.batches[0][0]) > SHORT:
            return None
        ((statistics, weights),) = self.batches
        overall = np.ascontiguousarray(self.overall, dtype=np.float64)
        return FewRows(self.families, np.array(statistics.T, order="C"), weights, overall, self.weight, PRIOR)


@dataclass(frozen=True, eq=False)
class ProductRefinement:
    """Mixtures after refinement, with the log posterior and log-likelihood per sample of each and the best's trace."""

    parameters: Parameters
    values: Floats
    log_likelihood: Floats
    trace: Trace = field(repr=False)


def log_joint(families: Families, statistics: Floats, weights: Floats, table: Floats) -> Floats:
    """log weight + log density (less the part that no parameter enters) of rows under components, (m, K)."""
    coefficients, constants = families.natural(table)
    return np.asarray(statistics @ coefficients.T + (constants + np.log(weights.ravel())))


def expect(data: Data, parameters: Parameters, natural: tuple[Floats, Floats] | None = None) -> Expectation:
    """The E step: one pass over the data, for all mixtures at once; `natural` where it is known already."""
    coefficients, constants = data.families.natural(parameters.table) if natural is None else natural
    mixtures = StackedMixtures(coefficients, constants + np.log(parameters.weights.ravel()), parameters.n_starts)
    if isinstance(data.batches, Elsewhere):
        there = ExpectedSums(data.families, mixtures).update_all(data.batches.source)
        return Expectation(there.sums, there.totals, there.log_likelihood)
    total = mixtures.nothing()
    together = [data.batches] if isinstance(data.batches, list) else ([batch] for batch in data.batches)
    for batches in together:
        shares = _shares(batches)
        for found in map_parts(lambda t, s=shares: mixtures.expect(s[t]), len(shares)):  # type: ignore[misc]
            total = total + found
    return total


def _shares(batches: Sequence[Batch]) -> list[list[Batch]]:
    """All rows in as many runs as there are threads."""
    starts = np.cumsum([0, *(len(statistics) for statistics, _ in batches)])
    runs = even_runs(int(starts[-1]))
    return [
        [
            (statistics[low:high], None if weights is None else weights[low:high])
            for (statistics, weights), start in zip(batches, starts[:-1].tolist(), strict=True)
            for low, high in [(max(run.start - start, 0), min(run.stop - start, len(statistics)))]
            if low < high
        ]
        for run in runs
    ]


@dataclass(frozen=True, eq=False)
class StackedMixtures:
    """Mixtures as the E step sees them: slopes (S k, P) and offsets (S k,) of log joint densities."""

    slopes: Floats = field(repr=False)
    offsets: Floats = field(repr=False)
    n_starts: int

    def nothing(self) -> Expectation:
        """Sums without any rows."""
        return Expectation(np.zeros_like(self.slopes), np.zeros(self.offsets.size), np.zeros(self.n_starts))

    def expect(self, batches: Sequence[Batch]) -> Expectation:
        """The E step of some rows."""
        total = self.nothing()
        for statistics, weights in batches:
            rows = [DenseBlock(statistics)]
            found = expected_of_rows(rows, self.slopes, self.offsets, weights, n_mixtures=self.n_starts)
            values = found.values.sum(axis=1) if weights is None else found.values @ weights
            total = total + Expectation(found.features, found.totals, values)
        return total


def maximize(data: Data, expectation: Expectation, shape: tuple[int, ...]) -> Parameters:
    """The M step: the mode given expected sums and `PRIOR` pseudo-observations."""
    table = data.families.estimate(expectation.sums, expectation.totals, data.overall, PRIOR)
    return Parameters(proportions(expectation.totals.reshape(shape), PRIOR), table)


def em_step(data: Data, parameters: Parameters) -> tuple[Parameters, Floats]:
    """One EM step of all mixtures, and the log posterior per sample of each *before* it, (S,)."""
    natural = data.families.natural(parameters.table)
    expectation = expect(data, parameters, natural)
    values = (expectation.log_likelihood + _log_prior(data, parameters, natural)) / data.weight
    return maximize(data, expectation, parameters.weights.shape), values


def _log_prior(data: Data, parameters: Parameters, natural: tuple[Floats, Floats]) -> Floats:
    """Log density of the pseudo-observations, (S,): what the M step adds to the likelihood."""
    coefficients, constants = natural
    shape = parameters.weights.shape
    terms = (coefficients @ data.overall + constants).reshape(shape) + np.log(parameters.weights)
    return np.asarray(PRIOR * terms.sum(axis=1))


def refine_products(
    data: Data,
    start: Parameters,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    accelerate: bool = True,
    most_gain: float = np.inf,
) -> ProductRefinement:
    """EM from all starts at once, until none gains more than `tol` per sample and step, or `max_iter` steps are taken.

    Acceleration: SQUAREM (Varadhan and Roland, 2008) for each mixture by itself. Two EM steps give a direction; a jump
    along it is kept only where the log posterior at its end is no lower, so that no mixture ever loses. Among many rows
    the climb is given up once it has gained more than `most_gain`.
    """
    if data.few is not None:
        return _climbed(data.few, start, max_iter, tol, accelerate=accelerate)
    take = _Steps(data, max_iter)
    current, values = take(start)
    best_before, records = -np.inf, []
    state = start
    reason = StopReason.MAX_ITER
    while True:
        records.append(Record(take.count, float(values.max()), float(values.max() - best_before)))
        best_before = float(values.max())
        if take.left < 1 or best_before - records[0].value > most_gain:
            return _finished(take, current, records, reason)
        second, middle = take(current)  # `current` = one step from `state`; `middle` its value
        gains = middle - values
        if not accelerate or take.left < 1:
            state, current, values = current, second, middle
            if np.all(gains <= tol):
                reason = StopReason.CONVERGED
                return _finished(take, current, records, reason)
            continue
        jumped = _extrapolate(data.families, state, current, second)
        third, reached = take(jumped)
        fine = reached >= middle  # compare with the value one step on: a jump that is kept is worth its step
        state = _choose(fine, jumped, current)
        current = _choose(fine, third, second)
        new = np.where(fine, reached, middle)
        done = np.all((new - values <= 2 * tol) & (gains <= tol))
        values = new
        if done:
            reason = StopReason.CONVERGED
            return _finished(take, current, records, reason)


def _climbed(few: FewRows, start: Parameters, max_iter: int, tol: float, *, accelerate: bool) -> ProductRefinement:
    """The same in one compiled call."""
    shape = start.weights.shape
    done = few.climb(_flat(start), shape[1], max_iter, tol, accelerate=accelerate)
    gains = np.diff(done.seen, prepend=-np.inf)
    records = zip(done.counts.tolist(), done.seen.tolist(), gains.tolist(), strict=True)
    reason = StopReason.CONVERGED if done.converged else StopReason.MAX_ITER
    trace = Trace(tuple(Record(*record) for record in records), int(done.counts[-1]), reason)
    weights, table = done.state[:, : shape[1]], done.state[:, shape[1] :]
    parameters = Parameters(np.ascontiguousarray(weights), table.reshape(start.table.shape))
    return ProductRefinement(parameters, done.values, done.likelihoods, trace)


def _flat(parameters: Parameters) -> Floats:
    """A row for each mixture: its weights, then its parameters."""
    return np.concatenate([parameters.weights, parameters.table.reshape(parameters.n_starts, -1)], axis=1)


class _Steps:
    """EM steps that are counted."""

    def __init__(self, data: Data, most: int) -> None:
        self.data, self.most, self.count = data, most, 0

    @property
    def left(self) -> int:
        return self.most - self.count

    def __call__(self, parameters: Parameters) -> tuple[Parameters, Floats]:
        self.count += 1
        return em_step(self.data, parameters)


def _finished(take: _Steps, state: Parameters, records: list[Record], reason: StopReason) -> ProductRefinement:
    natural = take.data.families.natural(state.table)
    likelihood = expect(take.data, state, natural).log_likelihood / take.data.weight
    values = likelihood + _log_prior(take.data, state, natural) / take.data.weight
    gain = float(values.max() - records[-1].value)
    records.append(Record(take.count, float(values.max()), gain))
    return ProductRefinement(state, values, likelihood, Trace(tuple(records), take.count, reason))


def _extrapolate(families: Families, first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """``theta_0 - 2 a r + a^2 v`` with r, v the first and second differences and a = -|r| / |v|, per mixture."""
    shape = first.weights.shape
    zero, one, two = _flat(first), _flat(second), _flat(third)
    step, bend = one - zero, two - 2 * one + zero
    norm = np.linalg.norm(bend, axis=1)
    length = np.where(norm > 0, np.linalg.norm(step, axis=1) / np.where(norm > 0, norm, 1.0), 1.0)
    length = np.clip(length, 1.0, 64.0)[:, None]
    reached = zero + 2 * length * step + length**2 * bend
    weights = np.maximum(reached[:, : shape[1]], 0.1 * first.weights)
    table = reached[:, shape[1] :].reshape(first.table.shape)
    low = 0.1 * first.table  # probabilities, rates and variances must not jump to 0 or below
    positive = np.full(families.n_parameters, True)
    positive[families.spans[3]] = False
    table[:, positive] = np.maximum(table[:, positive], low[:, positive])
    high = families.spans[0]
    table[:, high] = np.minimum(table[:, high], 1 - 0.1 * (1 - first.table[:, high]))
    return Parameters(weights / weights.sum(axis=1, keepdims=True), families.project(table))


def _choose(which: NDArray[np.bool_], first: Parameters, second: Parameters) -> Parameters:
    if which.all():
        return first
    rows = np.repeat(which, first.weights.shape[1])[:, None]
    return Parameters(
        np.where(which[:, None], first.weights, second.weights), np.where(rows, first.table, second.table)
    )


def read_data(
    families: Families, batches: Callable[[], Iterable[tuple[Floats, Floats | None]]], most_bytes: int
) -> Data:
    """Statistics of batches of values, kept in memory where they fit, computed at every reading elsewhere."""
    weight, total, size = 0.0, np.zeros(families.n_statistics), 0
    kept: list[Batch] | None = []
    for values, weights in batches():
        for statistics, given, sums in _statistics(families, values, weights):
            weight += float(len(statistics) if given is None else given.sum())
            total += sums
            size += statistics.nbytes
            kept = None if kept is None or size > most_bytes else [*kept, (statistics, given)]
    source: Iterable[Batch] = kept if kept is not None else _Again(families, batches)
    return Data(families, source, weight, total / weight)


def _statistics(
    families: Families, values: Floats, weights: Floats | None
) -> list[tuple[Floats, Floats | None, Floats]]:
    """Statistics, weights and sums of rows, in runs that threads share where there are many."""
    runs = even_runs(len(values)) if len(values) >= _MANY else [range(len(values))]

    def read(part: int) -> tuple[Floats, Floats | None, Floats]:
        rows = slice(runs[part].start, runs[part].stop)
        statistics, given = families.statistics(values[rows]), None if weights is None else weights[rows]
        return statistics, given, statistics.sum(axis=0) if given is None else given @ statistics

    return map_parts(read, len(runs))


class _Again:
    """Statistics computed at every reading."""

    def __init__(self, families: Families, batches: Callable[[], Iterable[tuple[Floats, Floats | None]]]) -> None:
        self._families, self._batches = families, batches

    def __iter__(self):  # type: ignore[no-untyped-def]
        return ((self._families.statistics(values), weights) for values, weights in self._batches())


class Elsewhere:
    """Statistics of rows that stay where they are; read batch by batch, those of a sample."""

    def __init__(self, families: Families, source: OutOfCoreRows) -> None:
        self.families, self.source = families, source

    def __iter__(self) -> Iterator[Batch]:
        sample = self.source.sample(_SAMPLE)
        yield self.families.statistics(np.asarray(sample.rows, dtype=np.float64)), sample.weights


class ExpectedSums(Additive):
    """The E step of rows that are elsewhere."""

    _sums = ("sums", "totals", "log_likelihood")

    def __init__(self, families: Families, mixtures: StackedMixtures) -> None:
        self._families, self._mixtures = families, mixtures
        nothing = mixtures.nothing()
        self.sums, self.totals, self.log_likelihood = nothing.sums, nothing.totals, nothing.log_likelihood

    def update(self, batch: DenseBatch) -> None:
        statistics = self._families.statistics(np.asarray(batch.rows, dtype=np.float64))
        found = self._mixtures.expect([(statistics, batch.weights)])
        self.sums = self.sums + found.sums
        self.totals = self.totals + found.totals
        self.log_likelihood = self.log_likelihood + found.log_likelihood


class StatisticSums(Additive):
    """Sums of the statistics themselves."""

    _sums = ("weight", "total")

    def __init__(self, families: Families) -> None:
        self._families = families
        self.weight, self.total = 0.0, np.zeros(families.n_statistics)

    def update(self, batch: DenseBatch) -> None:
        statistics = self._families.statistics(np.asarray(batch.rows, dtype=np.float64))
        weights = np.ones(len(statistics)) if batch.weights is None else batch.weights
        self.weight += float(weights.sum())
        self.total = self.total + weights @ statistics


class BaseSum(Additive):
    """The part of the log-likelihood that no parameter enters."""

    _sums = ("total",)

    def __init__(self, families: Families) -> None:
        self._families, self.total = families, 0.0

    def update(self, batch: DenseBatch) -> None:
        base = self._families.base(np.asarray(batch.rows, dtype=np.float64))
        self.total += float(base.sum() if batch.weights is None else batch.weights @ base)


def source_data(families: Families, source: Any, most_bytes: int) -> Data:
    """Statistics of the rows of a source; where these are elsewhere, only sums come back."""
    if not is_elsewhere(source):
        return read_data(families, partial(_values, source), most_bytes)
    sums = StatisticSums(families).update_all(source)
    return Data(families, Elsewhere(families, source), sums.weight, sums.total / sums.weight)


def _values(source: Iterable[DenseBatch]) -> Iterator[Batch]:
    return ((np.asarray(batch.rows, dtype=np.float64), batch.weights) for batch in source)
