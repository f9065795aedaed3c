"""Products of tall dense blocks, rows shared between threads of our own.

BLAS threads wait for one another by spinning, which on a busy machine can cost many times the product itself. Runs of
rows with one BLAS thread each use the same cores and wait for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count

Scalar = TypeVar("Scalar", bound=np.floating[Any])
Result = TypeVar("Result")

# Rows below which one thread is enough.
_LEAST_ROWS = 2048
# Bytes that a thread handles at a time, so that what one step writes the next finds in its cache; and bytes below which
# one thread is enough: handing them over takes as long.
_AT_A_TIME, _LEAST_BYTES = 2**18, 2**20
# Samples of a part of a sum at least, and the most parts: few enough for their sums to cost nothing beside them.
_PART, _MOST_PARTS = 8192, 16


def row_parts(n_rows: int) -> list[slice]:
    """Runs of rows, one per thread."""
    n_parts = max(1, min(thread_count(), n_rows // _LEAST_ROWS))
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int)
    return [slice(edges[t], edges[t + 1]) for t in range(n_parts)]


def tall_inner(first: NDArray[Scalar], second: NDArray[Scalar]) -> NDArray[Scalar]:
    """``first.T @ second`` for two blocks of the same many rows."""
    parts = row_parts(len(first))
    with single_threaded_blas():
        sums = map_parts(lambda t: first[parts[t]].T @ second[parts[t]], len(parts))
    return np.asarray(sum(sums[1:], start=sums[0]))


def tall_product(block: NDArray[Scalar], matrix: NDArray[Scalar]) -> NDArray[Scalar]:
    """``block @ matrix`` for a block of many rows."""
    parts = row_parts(len(block))
    out = np.empty((len(block), matrix.shape[1]), dtype=block.dtype)
    with single_threaded_blas():
        map_parts(lambda t: np.matmul(block[parts[t]], matrix, out=out[parts[t]]), len(parts))
    return out


def tall_remainder(rows: NDArray[Scalar], block: NDArray[Scalar], matrix: NDArray[Scalar]) -> NDArray[Scalar]:
    """``rows - block @ matrix`` for blocks of the same many rows."""
    out = np.empty_like(rows)
    with single_threaded_blas():
        by_rows(lambda part: np.subtract(rows[part], block[part] @ matrix, out=out[part]), out)
    return out


def scaled_rows(block: NDArray[Any], scale: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """``scale[:, None] * block``, in the precision of `out` where it is given."""
    found = np.empty(block.shape, block.dtype) if out is None else out
    by_rows(lambda part: np.multiply(scale[part, None], block[part], out=found[part], casting="same_kind"), found)
    return found


def side_by_side(blocks: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
    """The columns of all blocks as one, without a copy where there is one alone."""
    if len(blocks) == 1:
        return blocks[0]
    out = np.empty((len(blocks[0]), sum(block.shape[1] for block in blocks)), blocks[0].dtype)
    by_rows(lambda part: np.concatenate([block[part] for block in blocks], axis=1, out=out[part]), out)
    return out


def by_rows(work: Callable[[slice], Any], rows: NDArray[Any]) -> None:
    """Call ``work(part)`` for runs of rows, on threads where there are many: for steps that treat each row by itself.

    What each number becomes must not depend on the runs: they differ with the number of threads.
    """
    parts = row_parts(len(rows)) if rows.nbytes > _LEAST_BYTES else [slice(0, len(rows))]
    step = max(_AT_A_TIME * len(rows) // max(rows.nbytes, 1), 1)

    def share(index: int) -> None:
        for start in range(parts[index].start, parts[index].stop, step):
            work(slice(start, min(start + step, parts[index].stop)))

    map_parts(share, len(parts))


def by_parts(work: Callable[[slice], Result], n: int) -> list[Result]:
    """``work(part)`` for runs of n samples, in order, on threads where there are several: for sums over samples.

    The runs are the same for any number of threads, and so is a sum over them, bit for bit.
    """
    edges = np.linspace(0, n, max(1, min(n // _PART, _MOST_PARTS)) + 1).astype(int)
    with single_threaded_blas():
        return map_parts(lambda part: work(slice(edges[part], edges[part + 1])), len(edges) - 1)


def joined_parts(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """What `by_parts` gave as one array: memory that is new is slow to fill, and threads share that."""
    edges = np.cumsum([0, *map(len, parts)])
    out = np.empty((edges[-1], *parts[0].shape[1:]), dtype=parts[0].dtype)

    def place(index: int) -> None:
        out[edges[index] : edges[index + 1]] = parts[index]

    map_parts(place, len(parts))
    return out
