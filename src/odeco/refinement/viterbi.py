"""The best states of all sequences (Viterbi), in the stretches of `odeco.refinement.forward_backward`.

The scores of a stretch depend on what went before only until the best paths to all states have met. So stretches start
a little early, in lockstep, and are compared with their neighbours afterwards as messages are; the way back goes
through one task at a time, and memory does not grow with the data. Where paths do not meet, all steps are gone through
twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.emissions import HMMParameters
from odeco.refinement.forward_backward import FIRST_BURN, Plan, by_stretch
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Steps = tuple[Floats, NDArray[np.int32], NDArray[np.uint8]]

_BLOCK = 4096  # steps whose origins are kept at a time
_AGREE = 1e-9  # absolute difference of log probabilities that count as one


def best_path(data: Sequences, parameters: HMMParameters[Any]) -> tuple[float, NDArray[np.int64]]:
    """The log probability of the best states of all sequences together with the observations, and the states."""
    logs = _Logs.of(data, parameters)
    plan = Plan.of(len(data))
    burn = FIRST_BURN
    while burn < plan.length:
        found = _in_stretches(logs, plan, burn)
        if found is not None:
            return found
        burn *= 4
    return _in_order(logs)


@dataclass(frozen=True, eq=False)
class _Logs:
    """Logarithms of the parameters, and of the likelihoods of distinct observations where there are few."""

    data: Sequences
    parameters: HMMParameters[Any]
    start: Floats
    transmat: Floats = field(repr=False)
    table: Floats | None = field(repr=False)

    @classmethod
    def of(cls, data: Sequences, parameters: HMMParameters[Any]) -> Self:
        with np.errstate(divide="ignore"):
            start, transmat = np.log(parameters.startprob), np.log(parameters.transmat)
        table = None if data.codes is None else _log_rows(parameters, data.values)
        return cls(data, parameters, start, transmat, table)

    def steps(self, low: int, high: int) -> Steps:
        """Log-likelihoods, the row of each step, and where sequences begin."""
        if self.table is not None and self.data.codes is not None:
            return self.table, self.data.rows_of(low, high), self.data.first(low, high)
        rows = _log_rows(self.parameters, self.data.values[low:high])
        return rows, np.arange(len(rows), dtype=np.int32), self.data.first(low, high)


def _log_rows(parameters: HMMParameters[Any], values: NDArray[Any]) -> Floats:
    rows, scales = parameters.emission.likelihood(values)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(rows) + scales[:, None])


def _in_stretches(logs: _Logs, plan: Plan, burn: int) -> tuple[float, NDArray[np.int64]] | None:
    """Tasks from the last to the first; None where stretches did not agree."""
    from odeco.kernels.hmm import LANES, padded
    from odeco.kernels.viterbi import best_scores, trace_lanes

    n, k = plan.n, logs.start.size
    transposed = np.full((padded(k), k), -np.inf)
    transposed[:k] = logs.transmat.T
    kept = np.empty((plan.length + 1, padded(k), LANES))
    used, out = np.zeros((2, plan.n_tasks, padded(k), LANES))
    path, state, total = np.empty(n, dtype=np.int64), -1, 0.0
    for task in reversed(range(plan.n_tasks)):
        low, high = max(task * plan.span - burn, 0), min((task + 1) * plan.span, n)
        steps, begin = logs.steps(low, high), task * plan.span - low
        best_scores(*steps, transposed, logs.start, begin, plan.length, burn, out[task], kept)
        used[task] = kept[0]
        state, value = trace_lanes(
            *steps, transposed, logs.start, begin, plan.length, kept, state, path[low:high]
        )  # fmt: skip
        total += value
    inner = ~plan.begins(logs.data)[1:]
    ends = by_stretch(out, k)[:-1][inner]
    with np.errstate(invalid="ignore"):
        ends = ends - ends.max(axis=1, keepdims=True)
        same = np.abs(by_stretch(used, k)[1:][inner] - ends) <= _AGREE
    same |= by_stretch(used, k)[1:][inner] == ends  # both impossible
    return (total, path) if same.all() else None


def _in_order(logs: _Logs) -> tuple[float, NDArray[np.int64]]:
    """One pass that keeps the scores at the ends of blocks, one back that finds the origins block by block."""
    from odeco.kernels.viterbi import best_paths, trace_back

    n, k = len(logs.data), logs.start.size
    origins = np.empty((_BLOCK, k), dtype=np.uint8 if k <= 256 else np.int32)
    scores, total, before = np.zeros(k), 0.0, []
    for low in range(0, n, _BLOCK):
        before.append(scores.copy())
        total += best_paths(*logs.steps(low, min(low + _BLOCK, n)), logs.transmat, logs.start, scores, origins[:0])
    state = int(np.argmax(scores))
    total += float(scores[state])
    path = np.empty(n, dtype=np.int64)
    for low in reversed(range(0, n, _BLOCK)):
        steps = logs.steps(low, min(low + _BLOCK, n))
        best_paths(*steps, logs.transmat, logs.start, before.pop(), origins)
        state = trace_back(origins[: steps[1].size], state, path[low : low + steps[1].size])
    return total, path
