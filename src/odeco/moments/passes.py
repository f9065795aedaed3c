"""Passes over data, said once by a generator and made wherever the rows are.

Whoever needs sums over a source, each built from the ones before, writes a generator. Every ``yield`` hands out empty
sums and is given them filled, which is one pass over the rows; ``return`` gives what the passes were made for. It never
reads the source, so that memory, streams, files, Dask, Spark and checkpoints are one code: `run_passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from odeco.kernels.threads import single_threaded_blas
from odeco.progress import tell
from odeco.sources.base import require_passes
from odeco.sources.partitions import Partitioned

Result = TypeVar("Result")
Passes = Generator[Any, Any, Result]
Later = Callable[[Callable[[], Any]], Callable[[], Any]]


@dataclass(frozen=True, eq=False)
class Mapped:
    """A pass over rows that go through a function first, which treats them one by one (or leaves some out)."""

    sums: Any
    function: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Beside(Generic[Result]):
    """Work that needs no pass, such as a sample: ``later = yield Beside(work)``, and ``later()`` is its result.

    Where the rows are elsewhere it runs here while the next passes are made there; otherwise when it is asked for.
    """

    work: Callable[[], Result] = field(repr=False)


def run_passes(passes: Passes[Result], source: Any) -> Result:
    """Fill whatever the generator asks for with the rows of the source; what it returns in the end.

    Examples
    --------
    >>> import numpy as np
    >>> from odeco.moments import SecondMoments, run_passes
    >>> from odeco.sources.dense import DenseBatch
    >>> def passes():
    ...     columns = yield SecondMoments(1)
    ...     exact = yield SecondMoments(1, shift=columns.mean)
    ...     return exact.covariance
    >>> run_passes(passes(), [DenseBatch(np.array([[1.0], [3.0]])), DenseBatch(np.array([[5.0]]))]).round(3)
    array([[2.667]])
    """
    later: Later | None = None
    answer: Any = None
    n_passes = 0
    with ExitStack() as stack:
        while True:
            try:
                asked = passes.send(answer)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            if isinstance(asked, Beside):
                later = later or stack.enter_context(_beside(source))
                answer = later(asked.work)
            else:
                n_passes += 1
                require_passes(source, n_passes)
                tell(f"pass {n_passes} over the data")
                answer = fill(asked, source)


def fill(asked: Any, source: Any) -> Any:
    """One pass: sums with all rows of the source added.

    Examples
    --------
    >>> import numpy as np
    >>> from odeco.moments import SecondMoments, fill
    >>> from odeco.sources.dense import DenseBatch
    >>> fill(SecondMoments(1), [DenseBatch(np.array([[1.0], [3.0]])), DenseBatch(np.array([[5.0]]))]).mean
    array([3.])
    """
    if isinstance(asked, Mapped):
        rows = source.map(asked.function) if hasattr(source, "map") else map(asked.function, source)
        return fill(asked.sums, rows)
    return asked.update_all(source)


def mapped(passes: Passes[Result], function: Callable[[Any], Any]) -> Passes[Result]:
    """The same passes, over rows that go through a function first."""
    answer: Any = None
    while True:
        try:
            asked = passes.send(answer)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        answer = yield asked if isinstance(asked, Beside) else Mapped(asked, function)


@contextmanager
def _beside(source: Any) -> Iterator[Later]:
    """Makes functions that give their result when they are asked, as often as they are.

    Where the rows are elsewhere, they run on another thread while passes are made there, in the order in which they
    were made, and have ended in the end.
    """
    if not isinstance(source, Partitioned):
        yield cache
        return
    source.count_first()  # so that a sample is asked for at once, before the first pass
    with single_threaded_blas(), ThreadPoolExecutor(1, "odeco-beside") as pool:  # the limit is one for both threads
        yield lambda function: pool.submit(copy_context().run, function).result
