"""Threads over fixed parts of an array: deterministic sums, no parallel runtime to clash with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


class Sums(Protocol):
    """Anything with the algebra of the moments: add a batch, add other sums."""

    def update(self, batch: Any, /) -> Any: ...

    def merge(self, other: Self, /) -> Any: ...


SomeSums = TypeVar("SomeSums", bound=Sums)


def thread_count() -> int:
    """The number of cores this process may use, or ``ODECO_NUM_THREADS`` where it is set."""
    given = os.environ.get("ODECO_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def map_parts(function: Callable[[int], Result], n_parts: int) -> list[Result]:
    """``[function(0), ..., function(n_parts - 1)]``, one thread for each part; the order is kept.

    The functions must release the GIL (numba ``nogil``, BLAS) to gain from it. Sums over parts taken in order are
    the same bit for bit whenever the number of parts is.
    """
    if n_parts == 1:
        return [function(0)]
    with ThreadPoolExecutor(n_parts) as pool:
        return list(pool.map(function, range(n_parts)))


def sum_batches(batches: Iterable[Any], make: Callable[[], SomeSums]) -> SomeSums:
    """Sums over all batches, a thread and sums of its own for each of as many at a time as there are threads.

    Merged in order: the same bit for bit for the same number of threads. BLAS uses one thread per batch.
    """
    iterator = iter(batches)
    parts: list[SomeSums] = []
    with single_threaded_blas():
        while group := list(islice(iterator, thread_count())):
            parts += [make() for _ in range(len(group) - len(parts))]
            map_parts(lambda t, g=group, p=parts: p[t].update(g[t]), len(group))  # type: ignore[misc]
    total = parts[0] if parts else make()
    for other in parts[1:]:
        total.merge(other)
    return total


def balanced_parts(indptr: NDArray[np.integer], n_parts: int) -> NDArray[np.int64]:
    """Bounds (n_parts + 1,) that split the rows of a CSR matrix into runs of about equal numbers of nonzeros."""
    targets = np.linspace(indptr[0], indptr[-1], n_parts + 1)
    bounds = np.searchsorted(indptr, targets).astype(np.int64)
    bounds[0], bounds[-1] = 0, len(indptr) - 1
    return bounds


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread per call, while our own threads call it side by side.

    Two nested levels of threads oversubscribe the cores; BLAS threads that spin on a busy machine are far slower than
    none.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
