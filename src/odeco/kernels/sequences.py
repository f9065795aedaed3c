"""Loops over consecutive symbols."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_OPTIONS = {"cache": True, "nogil": True, "fastmath": True}


@njit(**_OPTIONS)
def add_triples(before: Ints, middle: Ints, after: Ints, weights: Floats, basis: Floats, core: Floats) -> None:
    """Add ``sum w basis[before] (x) basis[middle] (x) basis[after]`` to ``core``, grouped by the middle symbol.

    The pairs around one middle symbol are summed first: 2 n r^2 operations and r^3 for each symbol, not n r^3. An empty
    ``weights`` means 1 each.
    """
    n_symbols, r = basis.shape
    ends = np.zeros(n_symbols + 1, np.int64)
    for t in range(middle.shape[0]):
        ends[middle[t] + 1] += 1
    for m in range(n_symbols):
        ends[m + 1] += ends[m]
    place = ends.copy()
    order = np.empty(middle.shape[0], np.int64)
    for t in range(middle.shape[0]):
        order[place[middle[t]]] = t
        place[middle[t]] += 1
    around = np.empty((r, r))
    for m in range(n_symbols):
        if ends[m] == ends[m + 1]:
            continue
        around[:] = 0.0
        for p in range(ends[m], ends[m + 1]):
            t = order[p]
            left, right = basis[before[t]], basis[after[t]]
            weight = weights[t] if weights.shape[0] > 0 else 1.0
            for a in range(r):
                factor = weight * left[a]
                for c in range(r):
                    around[a, c] += factor * right[c]
        for a in range(r):
            for b in range(r):
                factor = basis[m, b]
                for c in range(r):
                    core[a, b, c] += factor * around[a, c]


@njit(**_OPTIONS)
def products_at(rows: Ints, columns: Ints, left: Floats, right: Floats, out: Floats) -> None:
    """``out[p] = left[rows[p]] . right[columns[p]]``: entries of a product of which few are needed."""
    for p in range(rows.shape[0]):
        first, second = left[rows[p]], right[columns[p]]
        total = 0.0
        for j in range(first.shape[0]):
            total += first[j] * second[j]
        out[p] = total


@njit(cache=True, nogil=True)
def walk(levels: Floats, uniforms: Floats, state: int, out: Ints) -> None:
    """A Markov chain after ``state``, by inversion: ``levels`` are the rows of the transition matrix, summed up."""
    last = levels.shape[1] - 1
    for t in range(out.shape[0]):
        level, new = uniforms[t] * levels[state, last], 0
        while new < last and levels[state, new] <= level:
            new += 1
        out[t] = new
        state = new
