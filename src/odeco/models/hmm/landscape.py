"""The likelihood of a hidden Markov chain on some sequences, as the search for a start sees it: climbed, merged, split.

Nothing here knows a family of emissions: sums, and what they are worth, are the family's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

from odeco.fitting.landscape import Landscape, cheapest_pairs, halves, merging, pair_costs
from odeco.models.hmm.policy import POLICY
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.expectation_sums import Recursions, recursions_of
from odeco.refinement.forward_backward import Expectations, ForwardBackward
from odeco.refinement.hmm import Smoothing, baum_welch, maximize
from odeco.sources.chains import Chains
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Pairs = NDArray[np.intp]
Parameters = HMMParameters[Any]

# Entries of features up to which zeros are multiplied, too: a product of sparse arrays takes 0.1 ms to begin with.
_DENSE = 2**18


@dataclass(frozen=True, eq=False)
class ChainLandscape(Landscape[Parameters]):
    """Sequences, in memory where states are to be split, and the pseudo-counts of the fit."""

    data: Chains = field(repr=False)
    smoothing: Smoothing
    stands_for: float | None = None
    """Steps that these are a sample of, where it is one: how many there are is counted for all of them."""

    @cached_property
    def recursions(self) -> Recursions:
        """Forward-backward over the sequences."""
        return recursions_of(self.data)

    @cached_property
    def coarse(self) -> ChainLandscape:
        data = self._sequences
        return self if len(data) <= POLICY.small else replace(self, data=data.sample(POLICY.small))

    @property
    def _sequences(self) -> Sequences:
        assert isinstance(self.data, Sequences)
        return self.data

    @property
    def _in_memory(self) -> ForwardBackward:
        assert isinstance(self.recursions, ForwardBackward)
        return self.recursions

    @cached_property
    def _weights(self) -> Floats:
        """Of each step, (n,)."""
        data = self._sequences
        return np.ones(len(data)) if data.weights is None else data.step_weights(0, len(data))

    @property
    def weight(self) -> float:
        return self.data.total_weight if self.stands_for is None else self.stands_for

    def n_parameters(self, state: Parameters) -> int:
        return state.n_parameters

    def size(self, state: Parameters) -> int:
        return state.n_components

    def climb(self, state: Parameters, n_steps: int, tol: float) -> tuple[Parameters, float]:
        done = baum_welch(self.recursions, state, smoothing=self.smoothing, max_iter=n_steps, tol=tol)
        return done.state, float(done.trace.best)

    def merge(self, state: Parameters, n_pairs: int) -> Parameters:
        expected = self.recursions.expectations(state)
        adding = merging(state.n_components, cheapest_pairs(merger_costs(state, expected), n_pairs))
        joined = Expectations(
            expected.log_likelihood,
            adding @ expected.start,
            adding @ expected.transitions @ adding.T,
            tuple(np.tensordot(adding, sums, 1) for sums in expected.emission),
        )
        return maximize(state.permute(np.argmax(adding, axis=1)), joined, self.smoothing)

    def split(self, state: Parameters, rng: np.random.Generator, n_powers: int) -> Parameters:
        """Cut by what steps emit and by what the steps before and after them do: states may differ in either."""
        posteriors = self._in_memory.posteriors(state)[1].T
        shares = halves(self._features(state), posteriors * self._weights, rng, n_powers)
        parents = np.tile(np.arange(state.n_components), 2)
        return self._shared_out(state, posteriors, shares, parents)

    def _shared_out(self, state: Parameters, posteriors: Floats, shares: Floats, parents: Pairs) -> Parameters:
        """The states whose responsibilities times weights (m, n) are parts of those of their parents (m,), (k, n).

        Expected transitions are shared out as the states at their two ends are.
        """
        data, weights = self._sequences, self._weights
        whole = (posteriors * weights)[parents]
        parts = np.divide(shares, whole, out=np.zeros_like(shares), where=whole > 0)
        now = np.flatnonzero(data.first(1, len(data)) == 0)  # steps that another one follows
        filtered = self._in_memory.filtered(state)[1][now]
        ratios = posteriors[:, now + 1] / np.maximum(filtered @ state.transmat, 1e-300).T * weights[now]
        moves = (filtered.T[parents] * parts[:, now]) @ (ratios[parents] * parts[:, now + 1]).T
        like = state.permute(parents)
        first = shares[:, data.offsets[:-1]].sum(axis=1)
        sums = _statistics(data, like.emission, shares.T)
        return maximize(like, Expectations(0.0, first, moves * like.transmat, sums), self.smoothing)

    def degenerate(self, state: Parameters) -> bool:
        """Whether a state sits on nearly equal observations."""
        return bool(state.emission.degenerate())

    def _features(self, state: Parameters) -> Any:
        """Of each step, the one before and the one after it: 0 where there is none."""
        data = self._sequences
        table = state.emission.features(data.values)
        if sparse.issparse(table) and 3 * len(data) * table.shape[1] <= _DENSE:
            table = table.toarray()
        stack: Any = sparse if sparse.issparse(table) else np
        nothing = len(data.values)
        table = stack.vstack([table, np.zeros((1, table.shape[1]))])
        here = np.arange(len(data)) if data.codes is None else np.asarray(data.codes, dtype=np.intp)
        first = data.first(0, len(data)) == 1
        before, after = (
            np.where(first, nothing, np.roll(here, 1)),
            np.where(np.roll(first, -1), nothing, np.roll(here, -1)),
        )
        rows = table.tocsr() if sparse.issparse(table) else table
        return stack.hstack([rows[here], rows[before], rows[after]])


def merger_costs(state: Parameters, expected: Expectations) -> Floats:
    """(k, k): what the expected log-likelihood of states and observations together loses by each merger."""
    start, moves, emission = expected.start, expected.transitions, state.emission
    left, logs = moves.sum(axis=1), xlogy(moves, moves)
    own = xlogy(start, start) - xlogy(left, left) + logs.sum(axis=0) + logs.sum(axis=1) - np.diagonal(logs)

    def joined(i: Pairs, j: Pairs) -> Floats:
        each = np.arange(len(i))
        first, total = start[i] + start[j], left[i] + left[j]
        value = xlogy(first, first) - xlogy(total, total) + logs[i, j] + logs[j, i]  # counted once in each of the two
        for lines in (moves[i] + moves[j], moves.T[i] + moves.T[j]):
            terms = xlogy(lines, lines)
            value += terms.sum(axis=1) - terms[each, i] - terms[each, j]
        within = moves[i, i] + moves[i, j] + moves[j, i] + moves[j, j]
        value += xlogy(within, within)
        return np.asarray(value + emission.largest_expected(tuple(sums[i] + sums[j] for sums in expected.emission)))

    return pair_costs(own + emission.largest_expected(expected.emission), joined)


def _statistics(data: Sequences, emission: Any, shares: Floats) -> Any:
    """Sums of the emissions for posterior probabilities times weights (n, k)."""
    if data.codes is None:
        return emission.statistics(data.values, np.ascontiguousarray(shares))
    rows = sparse.csr_array((np.ones(len(data)), (data.codes, np.arange(len(data)))), (len(data.values), len(data)))
    return emission.statistics(data.values, rows @ shares)
