"""Reading ahead: while one batch is computed with, a thread reads the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

_END: Any = object()


def prefetched(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, one of them read ahead by a thread: parsers release the interpreter lock, and so do kernels.

    One is enough: more would only take memory, for reading and computing go on at the pace of the slower one.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="odeco-read") as pool:
        iterator = iter(items)
        ahead = pool.submit(next, iterator, _END)
        while (item := ahead.result()) is not _END:
            ahead = pool.submit(next, iterator, _END)
            yield item
