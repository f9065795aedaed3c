"""Scaled forward and backward recursions of hidden Markov models, eight stretches of the data in lockstep.

The data are one long array of steps in which sequences follow each other (``first[t]`` is 1 where one begins). It is
cut into stretches of equal length whatever the sequences, and `LANES` stretches advance together: a step is then a
product of the k x k transition matrix with a k x LANES matrix, which fills the vector units for any k and hides the
latency of a recursion. A stretch that begins within a sequence needs the message of the step before it: it starts
``burn`` steps earlier, from anywhere, and the filter forgets where it started. The caller compares the message that a
stretch has used with the one that its neighbour ends with, so that nothing rests on that hope
(`odeco.refinement.forward_backward`).

Steps before 0 and from n on exist only to fill the lanes: each is a sequence of its own without an observation.

Messages have shape (kp, LANES), kp being k padded (`odeco.kernels.lanes`) with states that never occur; the matrices
that multiply them have shape (kp, k). ``rows[index[t]]`` (k,) are the likelihoods of step t in each state, up to the
factor ``exp(scales[index[t]])``. An empty ``weights`` means 1 for each step.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

from odeco.kernels.compiling import njit
from odeco.kernels.lanes import (
    LANES,
    add_outer_lanes,
    any_outside,
    gather_lanes,
    invert_lanes,
    multiply_lanes,
    read_lanes,
    scatter_lanes,
    weigh_lanes,
)

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

CHUNK = 32  # steps whose transitions are summed at a time
OPTIONS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "arcp", "nsz"},  # infinities and NaN keep their meaning
}
# What is called in each step allocates nothing: counting references to its arguments would take a quarter of the time.
# The option is none of numba's public ones: where a version does not know it, the loops are slower and the same.
HELPER = OPTIONS | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


@njit(**HELPER)
def load_steps(
    rows: Floats, index: Ints, first: Ints, position: int, length: int, likelihoods: Floats, begins: Ints, chosen: Ints
) -> int:  # fmt: skip
    """Likelihoods of the step at ``position`` of each lane, and whether a sequence begins there; how many begin."""
    if position >= 0 and position + (LANES - 1) * length < index.shape[0]:
        read_lanes(index, position, length, chosen)
        gather_lanes(rows, chosen, likelihoods)
        return int(read_lanes(first, position, length, begins))
    return int(_load_edge(rows, index, first, position, length, likelihoods, begins, chosen))


@njit(**HELPER)
def _load_edge(
    rows: Floats, index: Ints, first: Ints, position: int, length: int, likelihoods: Floats, begins: Ints, chosen: Ints
) -> int:  # fmt: skip
    """`load_steps` where some lanes are before the first step or after the last."""
    count = 0
    for s in range(LANES):
        t = position + s * length
        inside = 0 <= t < index.shape[0]
        begins[s] = first[t] if inside else 1
        chosen[s] = index[t] if inside else 0
        count += begins[s]
    gather_lanes(rows, chosen, likelihoods)
    for s in range(LANES):
        if not 0 <= position + s * length < index.shape[0]:
            for j in range(rows.shape[1]):
                likelihoods[j, s] = 1.0
    return count


@njit(**HELPER)
def fill_lane(message: Floats, lane: int, k: int, values: Floats) -> None:
    """The values (k,) in one lane of a message."""
    for j in range(k):
        message[j, lane] = values[j]


@njit(**HELPER)
def _weight(weights: Floats, t: int) -> float:
    return weights[min(t, weights.shape[0] - 1)] if weights.shape[0] > 0 else 1.0


@njit(**OPTIONS)
def forward(
    rows: Floats, scales: Floats, index: Ints, first: Ints, weights: Floats, transposed: Floats, start: Floats,
    begin: int, length: int, burn: int, message: Floats, alphas: Floats, norms: Floats, log_likelihoods: Floats,
) -> None:  # fmt: skip
    """Filtered probabilities of each step of each lane, in ``alphas[1:]``; those of the step before in ``alphas[0]``.

    ``message`` (kp, LANES) is that of the step before the first, ``burn`` steps included, and becomes that of the last.
    ``norms`` get the inverse of each step's normalization. With one row of ``alphas`` only the log-likelihoods (LANES,)
    are kept. ``transposed`` (kp, k) is the transition matrix with columns that sum to 1, the paper's T.
    """
    kp, k = transposed.shape
    keep = alphas.shape[0] > 1
    likelihoods, predicted, ones = np.zeros((kp, LANES)), np.empty((kp, LANES)), np.ones((kp, LANES))
    totals, inverse, products = np.empty((1, LANES)), np.empty((1, LANES)), np.ones((1, LANES))
    begins, chosen, uniform = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.full(k, 1.0 / k)
    log_likelihoods[:] = 0.0
    for t in range(-burn, length):
        if t == 0:
            alphas[0] = message
            products[:] = 1.0
        n_begin = load_steps(rows, index, first, begin + t, length, likelihoods, begins, chosen)
        if keep and t > 0:
            multiply_lanes(transposed, alphas, t * kp, predicted, 0)
        else:
            multiply_lanes(transposed, message, 0, predicted, 0)
        if n_begin:
            if t >= 0 and weights.shape[0] > 0:
                _flush(weights, products, begin + t - 1, length, log_likelihoods)
            for s in range(LANES):
                if begins[s]:
                    fill_lane(predicted, s, k, start)
        weigh_lanes(kp, predicted, 0, likelihoods, 0, ones, 0, predicted, 0, totals)
        invert_lanes(totals, inverse, 0)
        weigh_lanes(1, products, 0, totals, 0, ones, 0, products, 0, products)
        if any_outside(products, 1e-150, 1e150):  # a logarithm before the products leave the range
            if t >= 0:
                _flush(weights, products, begin + t, length, log_likelihoods)
            products[:] = 1.0
            for s in range(LANES):
                if not totals[0, s] > 0:  # no state can have produced the observation: as if nothing were known
                    inverse[0, s] = 1.0
                    fill_lane(predicted, s, k, uniform)
        if t >= 0 and scales.shape[0] > 0:
            _add_scales(scales, index, weights, begin + t, length, log_likelihoods)
        if t >= 0 and keep:
            weigh_lanes(kp, predicted, 0, ones, 0, inverse, 0, alphas, (t + 1) * kp, totals)
            weigh_lanes(1, inverse, 0, ones, 0, ones, 0, norms, t, totals)
        else:
            weigh_lanes(kp, predicted, 0, ones, 0, inverse, 0, message, 0, totals)
    _flush(weights, products, begin + length - 1, length, log_likelihoods)
    if keep:
        message[:] = alphas[length]


@njit(**HELPER)
def _flush(weights: Floats, products: Floats, position: int, length: int, log_likelihoods: Floats) -> None:
    """Add the logarithms of the products, with the weights of the steps at ``position``; they begin anew."""
    for s in range(LANES):
        weight = _weight(weights, max(position + s * length, 0))
        if products[0, s] != 1.0 and weight > 0:  # what does not count may be impossible: 0 times -inf is no number
            log_likelihoods[s] += math.log(products[0, s]) * weight
        products[0, s] = 1.0


@njit(**HELPER)
def _add_scales(
    scales: Floats, index: Ints, weights: Floats, position: int, length: int, log_likelihoods: Floats
) -> None:  # fmt: skip
    for s in range(LANES):
        t = position + s * length
        if t < index.shape[0]:
            log_likelihoods[s] += scales[index[t]] * _weight(weights, t)


@njit(**OPTIONS)
def backward(
    rows: Floats, index: Ints, first: Ints, weights: Floats, transmat: Floats, begin: int, length: int, burn: int,
    message: Floats, alphas: Floats, norms: Floats, target: Ints, row_sums: Floats, start_sums: Floats,
    pair_sums: Floats, used: Floats,
) -> None:  # fmt: skip
    """Posteriors of each step, added to ``row_sums[target[t]]``, those of first steps to ``start_sums``; transitions.

    ``pair_sums`` (kp, kp, LANES) get sum_t alpha_{t-1}(i) b_t(j) beta_t(j) / c_t, to be multiplied by the transition
    matrix (kp, k). ``message`` is that of the last step, or of ``burn`` steps after, and becomes that of the step
    before the first; ``used`` gets the one of the last step.
    """
    kp, k = transmat.shape
    likelihoods, ones, posterior = np.zeros((kp, LANES)), np.ones((kp, LANES)), np.zeros((kp, LANES))
    begins, chosen = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    totals, inverse = np.empty((1, LANES)), np.empty((1, LANES))
    counted, uniform = np.zeros((CHUNK, kp, LANES)), np.full(k, 1.0)
    for t in range(length + burn - 1, length - 1, -1):
        load_steps(rows, index, first, begin + t, length, likelihoods, begins, chosen)
        weigh_lanes(kp, likelihoods, 0, message, 0, ones, 0, posterior, 0, totals)
        multiply_lanes(transmat, posterior, 0, message, 0)
        _normalize(message, begins, totals, inverse, k, uniform, ones)
    used[:] = message
    weigh_lanes(kp, message, 0, alphas, length * kp, ones, 0, posterior, 0, totals)
    invert_lanes(totals, inverse, 0)
    weigh_lanes(kp, message, 0, ones, 0, inverse, 0, message, 0, totals)
    waiting = 0  # steps in `counted`, the latest of them last
    for t in range(length - 1, -1, -1):
        n_begin = load_steps(rows, index, first, begin + t, length, likelihoods, begins, chosen)
        weigh_lanes(kp, alphas, (t + 1) * kp, message, 0, ones, 0, posterior, 0, totals)
        _collect(posterior, weights, target, chosen, begin + t, length, k, row_sums)
        if n_begin:
            _collect_first(posterior, begins, target.shape[0], begin + t, length, k, start_sums)
        slot = (CHUNK - 1 - waiting) * kp
        weigh_lanes(kp, likelihoods, 0, message, 0, norms, t, counted, slot, totals)
        multiply_lanes(transmat, counted, slot, message, 0)
        if n_begin or weights.shape[0] > 0:
            for s in range(LANES):
                inverse[0, s] = 0.0 if begins[s] else _weight(weights, begin + t + s * length)
                if begins[s]:
                    fill_lane(message, s, k, uniform)
            weigh_lanes(kp, counted, slot, ones, 0, inverse, 0, counted, slot, totals)
        waiting += 1
        if waiting == CHUNK or t == 0:
            add_outer_lanes(alphas, t * kp, counted, slot, waiting, pair_sums)
            waiting = 0
    begins[:] = 0
    _normalize(message, begins, totals, inverse, k, uniform, ones)


@njit(**HELPER)
def _normalize(
    message: Floats, begins: Ints, totals: Floats, inverse: Floats, k: int, uniform: Floats, ones: Floats
) -> None:  # fmt: skip
    """Lanes that sum to 1; uniform where a sequence begins at the next step."""
    kp = message.shape[0]
    weigh_lanes(kp, message, 0, ones, 0, ones, 0, message, 0, totals)
    invert_lanes(totals, inverse, 0)
    for s in range(LANES):
        if begins[s] or not totals[0, s] > 0:
            inverse[0, s] = 1.0 / k
            fill_lane(message, s, k, uniform)
    weigh_lanes(kp, message, 0, ones, 0, inverse, 0, message, 0, totals)


@njit(**HELPER)
def _collect(
    posterior: Floats, weights: Floats, target: Ints, chosen: Ints, position: int, length: int, k: int,
    row_sums: Floats,
) -> None:  # fmt: skip
    """Add the posterior of one step of each lane, which is given its weight."""
    if weights.shape[0] > 0:
        _weigh_steps(posterior, weights, position, length, k)
    if position + (LANES - 1) * length < target.shape[0]:
        read_lanes(target, position, length, chosen)
        scatter_lanes(posterior, chosen, row_sums)
    else:
        _collect_edge(posterior, target, position, length, k, row_sums)


@njit(**HELPER)
def _collect_edge(posterior: Floats, target: Ints, position: int, length: int, k: int, row_sums: Floats) -> None:
    for s in range(LANES):
        if position + s * length < target.shape[0]:
            for j in range(k):
                row_sums[target[position + s * length], j] += posterior[j, s]


@njit(**HELPER)
def _collect_first(
    posterior: Floats, begins: Ints, n_steps: int, position: int, length: int, k: int, start_sums: Floats
) -> None:  # fmt: skip
    for s in range(LANES):
        if begins[s] and position + s * length < n_steps:
            for j in range(k):
                start_sums[j] += posterior[j, s]


@njit(**HELPER)
def _weigh_steps(message: Floats, weights: Floats, position: int, length: int, k: int) -> None:
    for s in range(LANES):
        weight = _weight(weights, position + s * length)
        for j in range(k):
            message[j, s] *= weight


@njit(**OPTIONS)
def advance(rows: Floats, index: Ints, first: Ints, transmat: Floats, start: Floats, message: Floats) -> None:
    """Carry one filtered distribution (k,) through all given steps, in order."""
    k = message.shape[0]
    new = np.empty(k)
    for t in range(index.shape[0]):
        row = rows[index[t]]
        if first[t]:
            new[:] = start
        else:
            new[:] = 0.0
            for i in range(k):
                for j in range(k):
                    new[j] += message[i] * transmat[i, j]
        total = 0.0
        for j in range(k):
            new[j] *= row[j]
            total += new[j]
        for j in range(k):
            message[j] = new[j] / total if total > 0 else 1.0 / k


@njit(**OPTIONS)
def retreat(rows: Floats, index: Ints, first: Ints, transmat: Floats, message: Floats) -> None:
    """Carry one backward message (k,) from the last given step to the one before the first; it sums to 1."""
    k = message.shape[0]
    new = np.empty(k)
    for t in range(index.shape[0] - 1, -1, -1):
        row = rows[index[t]]
        total = 0.0
        for i in range(k):
            new[i] = 0.0
            for j in range(k):
                new[i] += transmat[i, j] * (row[j] * message[j])
            total += new[i]
        for j in range(k):
            message[j] = new[j] / total if total > 0 and not first[t] else 1.0 / k
