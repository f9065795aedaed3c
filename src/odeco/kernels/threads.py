"""Threads over fixed parts of an array: deterministic sums, no parallel runtime to clash with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from threading import Condition, Lock, local
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

_SMALL = 128


class Sums(Protocol):
    """Anything with the algebra of the moments: add a batch, add other sums."""

    def update(self, batch: Any, /) -> Any: ...

    def merge(self, other: Self, /) -> Any: ...


SomeSums = TypeVar("SomeSums", bound=Sums)


def thread_count() -> int:
    """The number of cores this process may use, or ``ODECO_NUM_THREADS`` where it is set; 1 inside `one_thread`."""
    if getattr(_inside, "alone", False):
        return 1
    given = os.environ.get("ODECO_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def map_parts(function: Callable[[int], Result], n_parts: int) -> list[Result]:
    """``[function(0), ..., function(n_parts - 1)]`` on as many threads as there are cores; the order is kept.

    The functions must release the GIL (compiled loops, BLAS) to gain from it. Sums over parts taken in order are
    the same bit for bit whenever the number of parts is. A function that calls `map_parts` itself gets one thread: its
    parts would wait for threads that wait for them.
    """
    n_threads = min(thread_count(), n_parts)
    if n_threads <= 1 or getattr(_inside, "worker", False):
        return [function(part) for part in range(n_parts)]
    shared = _Shared(function, n_parts)
    helpers = [_pool(thread_count()).submit(shared.work) for _ in range(n_threads - 1)]
    try:
        shared.work()  # where no other core is free in time, all of it
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return shared.results()


class _Shared(Generic[Result]):
    """Parts that are taken one after the other by whoever is free, the thread that asked for them among them."""

    def __init__(self, function: Callable[[int], Result], n_parts: int) -> None:
        self._function = function
        self._parts = iter(range(n_parts))  # a thread takes the next one in one step of the interpreter
        self._found: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}

    def work(self) -> None:
        """Take parts until none is left, or one has failed."""
        _inside.worker = True
        try:
            for part in self._parts:
                if self._errors:
                    return
                try:
                    self._found[part] = self._function(part)
                except BaseException as error:  # the caller's to raise, also where it asks to stop
                    self._errors[part] = error
        finally:
            _inside.worker = False

    def results(self) -> list[Result]:
        """What all parts gave, in order; raises the error of the first that failed."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._found[part] for part in range(len(self._found))]


_inside = local()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them takes longer than many of the loops they run."""
    return ThreadPoolExecutor(max(n_threads - 1, 1), "odeco")


def sum_batches(batches: Iterable[Any], make: Callable[[], SomeSums]) -> SomeSums:
    """Sums over all batches, by as many threads as there are cores, with as many sums, merged in the end.

    Which batch goes to which sums does not depend on who is free: the same bit for bit for the same number of threads.
    BLAS uses one thread per batch.
    """
    add_to = getattr(batches, "add_to", None)
    if add_to is not None:  # the rows are elsewhere, and so are the threads
        added: SomeSums = add_to(make())
        return added
    dealt = _Dealt(batches, make)
    with single_threaded_blas():
        map_parts(dealt.work, thread_count())
    total, *others = dealt.parts or [make()]
    for other in others:
        total.merge(other)
    return total


class _Dealt(Generic[SomeSums]):
    """Batches that are dealt out in turn to as many sums as there are threads; whoever is free takes the next one.

    No more batches are held than there are threads. A thread waits only where the one before it in the same sums has
    not been added yet.
    """

    def __init__(self, batches: Iterable[Any], make: Callable[[], SomeSums]) -> None:
        self.parts: list[SomeSums] = []
        self._make, self._n_parts = make, thread_count()
        self._batches = enumerate(batches)
        self._reading, self._turn = Lock(), Condition()
        self._n_added: list[int] = []
        self._failed = False

    def work(self, _: int) -> None:
        """Take batches until none is left."""
        try:
            while (taken := self._next()) is not None:
                self._add(*taken)
        except BaseException:
            with self._turn:
                self._failed = True
                self._turn.notify_all()
            raise

    def _next(self) -> tuple[int, Any] | None:
        with self._reading:
            taken = None if self._failed else next(self._batches, None)
            if taken is not None and len(self.parts) < self._n_parts:
                self.parts.append(self._make())
                self._n_added.append(0)
        return taken

    def _add(self, place: int, batch: Any) -> None:
        before, part = divmod(place, self._n_parts)
        with self._turn:
            self._turn.wait_for(lambda: self._failed or self._n_added[part] == before)
        if self._failed:
            return
        self.parts[part].update(batch)
        with self._turn:
            self._n_added[part] += 1
            self._turn.notify_all()


def even_runs(n: int) -> list[range]:
    """``range(n)`` in runs of about equal length, one for each thread."""
    n_runs = max(1, min(thread_count(), n))
    edges = [n * part // n_runs for part in range(n_runs + 1)]
    return [range(low, high) for low, high in pairwise(edges)]


def balanced_parts(indptr: NDArray[np.integer], n_parts: int) -> NDArray[np.int64]:
    """Bounds (n_parts + 1,) that split the rows of a CSR matrix into runs of about equal numbers of nonzeros."""
    targets = np.linspace(indptr[0], indptr[-1], n_parts + 1)
    bounds = np.searchsorted(indptr, targets).astype(np.int64)
    bounds[0], bounds[-1] = 0, len(indptr) - 1
    return bounds


@contextmanager
def one_thread() -> Iterator[None]:
    """Let everything inside run on the thread that calls it: for engines that run one task per core themselves.

    Sums that are made inside have one copy: copies for threads that are not there would be filled one after the other.
    """
    before = getattr(_inside, "alone", False)
    _inside.alone = True
    try:
        with single_threaded_blas():
            yield
    finally:
        _inside.alone = before


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread per call, while our own threads call it side by side.

    Two nested levels of threads oversubscribe the cores; BLAS threads that spin on a busy machine are far slower than
    none.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


class _BlasLimit:
    """The limit on BLAS, one setting for all threads: set by the first that enters, lifted by the last that leaves.

    If each put back what it found, one of two that overlap would put back the limit of the other, for good.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._n_inside = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self.lock:
            if self._n_inside == 0:
                self._limiter = _controller().limit(limits=1)
                _share_control()
            self._n_inside += 1

    def leave(self) -> None:
        with self.lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limiter.restore_original_limits()
                _share_control()


def _share_control() -> None:
    """Let other threads set the limit, too: threadpoolctl 3.8 ignores all but the one that did so first."""
    import threadpoolctl

    release = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if release is not None:
        release()


_blas_limit = _BlasLimit()


def blas_for(size: int) -> AbstractContextManager[None]:
    """One BLAS thread for matrices of few columns: there they wait for one another longer than they work."""
    return single_threaded_blas() if size <= _SMALL else nullcontext()


@cache
def _controller() -> Any:
    import threadpoolctl  # not before BLAS is limited: what only asks for help does without

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the child has the pool but not its threads
    # Held by another thread it would stay closed in the child.
    _lock = _blas_limit.lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
