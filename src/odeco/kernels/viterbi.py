"""Viterbi in the stretches of `odeco.kernels.hmm`, eight in lockstep, and step by step where stretches do not agree."""

from __future__ import annotations

import numpy as np

from odeco.kernels.compiling import njit
from odeco.kernels.hmm import OPTIONS, Floats, Ints, fill_lane, load_steps
from odeco.kernels.lanes import LANES, best_lanes


@njit(**OPTIONS)
def best_paths(
    log_rows: Floats, index: Ints, first: Ints, log_transmat: Floats, log_start: Floats, scores: Floats, origins: Ints
) -> float:  # fmt: skip
    """Viterbi scores through all given steps: ``scores`` (k,) of the step before become those of the last one.

    ``origins`` (steps, k) get the best state before each, for a way back; with no rows nothing is kept. Where a
    sequence begins, the one before ends in its best state; returns the sum of the best scores of the sequences that
    ended.
    """
    k = scores.shape[0]
    best, origin = np.empty(k), np.zeros(k, origins.dtype)
    keep, finished = origins.shape[0] > 0, 0.0
    for t in range(index.shape[0]):
        row = log_rows[index[t]]
        if first[t]:
            last = int(np.argmax(scores))
            finished += scores[last]
            for j in range(k):
                best[j] = log_start[j]
                origin[j] = last
        else:
            best[:] = -np.inf
            origin[:] = 0
            for i in range(k):
                score, transition = scores[i], log_transmat[i]
                for j in range(k):
                    candidate = score + transition[j]
                    better = candidate > best[j]
                    best[j] = candidate if better else best[j]
                    origin[j] = i if better else origin[j]
        for j in range(k):
            scores[j] = best[j] + row[j]
        if keep:
            origins[t] = origin
    return finished


@njit(**OPTIONS)
def trace_back(origins: Ints, state: int, path: Ints) -> int:
    """States of the steps of ``origins``, whose last is ``state``; returns the state before the first."""
    for t in range(origins.shape[0] - 1, -1, -1):
        path[t] = state
        state = origins[t, state]
    return state


@njit(**OPTIONS)
def best_scores(
    log_rows: Floats, index: Ints, first: Ints, log_transposed: Floats, log_start: Floats, begin: int, length: int,
    burn: int, scores: Floats, kept: Floats,
) -> None:  # fmt: skip
    """Viterbi scores of each step of each lane up to a constant, in ``kept[1:]``; of the step before in ``kept[0]``.

    As `forward`, in the algebra of maxima and sums: a lane that starts ``burn`` steps early has the right scores from
    where the best paths to all states have met.
    """
    k = log_transposed.shape[1]
    begins, chosen = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    rows, new = np.zeros_like(scores), np.empty_like(scores)
    for t in range(-burn, length):
        if t == 0:
            for s in range(LANES):
                top = -np.inf
                for j in range(k):
                    top = max(top, scores[j, s])
                for j in range(k):
                    kept[0, j, s] = scores[j, s] - top if top > -np.inf else 0.0
                    scores[j, s] = kept[0, j, s]
        load_steps(log_rows, index, first, begin + t, length, rows, begins, chosen)
        best_lanes(log_transposed, scores, 0, new, 0)
        for s in range(LANES):
            if begins[s]:
                fill_lane(new, s, k, log_start)
        for j in range(k):
            for s in range(LANES):
                scores[j, s] = new[j, s] + rows[j, s]
                if t >= 0:
                    kept[t + 1, j, s] = scores[j, s]


@njit(**OPTIONS)
def trace_lanes(
    log_rows: Floats, index: Ints, first: Ints, log_transposed: Floats, log_start: Floats, begin: int, length: int,
    kept: Floats, state: int, path: Ints,
) -> tuple[int, float]:  # fmt: skip
    """The best path through the lanes, last lane first, to ``path``; ``state`` follows the last step, -1 for none.

    Returns the best state before the first step, -1 where a sequence begins there, and the log probability of the
    steps. The last argument of the state that follows is what `kept` makes of it: its best predecessor.
    """
    k = log_transposed.shape[1]
    total = 0.0
    for s in range(LANES - 1, -1, -1):
        for t in range(length - 1, -1, -1):
            position = begin + s * length + t
            if position >= path.shape[0]:
                continue
            best, chosen = -np.inf, 0
            for i in range(k):
                score = kept[t + 1, i, s]
                if state >= 0:
                    score += log_transposed[state, i]
                if score > best:
                    best, chosen = score, i
            if state >= 0:
                total += log_transposed[state, chosen]
            path[position] = chosen
            total += log_rows[index[position], chosen]
            state = chosen
            if first[position]:
                total += log_start[chosen]
                state = -1
    return state, total
