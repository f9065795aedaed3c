"""Hidden Markov models of sequences that are not in memory: opened for a fit, and decoded lazily where they are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.chains import ChainSource, PartitionedChains, open_stream
from odeco.sources.kinds import Checkpointed, OutOfCore, are_dask, is_dask, is_remote, is_spark

Method = TypeVar("Method", bound=Callable[..., Any])


def is_elsewhere(X: Any) -> bool:
    """Whether X is not in memory: Dask, Spark, a function that returns batches, or wrapped as out of core or
    checkpointed.
    """
    return is_remote(X) or are_dask(X) or isinstance(X, (OutOfCore, Checkpointed)) or callable(X)


def refuse_elsewhere(X: Any, method: str) -> None:
    """Raise where a method needs sequences in memory."""
    if is_elsewhere(X):
        raise ValueError(f"{method} takes sequences in memory, got {type(X).__name__}: give them batch by batch.")


def open_source(X: Any, lengths: ArrayLike | None, weights: Any) -> ChainSource:
    """A source of sequences that are not in memory."""
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        return keep(open_source(X.data, lengths, weights), X)  # type: ignore[no-any-return]
    if isinstance(X, OutOfCore):
        return open_source(X.data, lengths, weights)
    if is_dask(X) or are_dask(X):
        from odeco.sources.dask_chains import open_chains

        return PartitionedChains(open_chains(X, lengths, weights))
    if is_spark(X):
        from odeco.sources import spark_chains

        return PartitionedChains(spark_chains.open_chains(X, lengths, weights))
    return open_stream(X, lengths, weights)


def by_sequences(kind: str, *, valued: bool = False) -> Callable[[Method], Method]:
    """Let a method ``f(self, X, lengths)`` take Dask collections, for which its result is lazy, and Spark DataFrames,
    to which it adds a column.

    It gives rows, or with `valued` a number and rows: `kind` says whether a row is a "state", has "shares" (k numbers),
    or is the "next" observation.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def run(self: Any, X: Any, lengths: ArrayLike | None = None, *arguments: Any, **options: Any) -> Any:
            if is_dask(X) or are_dask(X):
                from odeco.sources.dask_chains import map_chains

                parameters = self._parameters()
                work = partial(_call, travelling(self), method.__name__, valued, arguments, options)
                value, rows = map_chains(work, X, lengths, _example(self, kind, parameters.n_components))
                return (value, rows) if valued else rows
            if is_spark(X) and not valued and lengths is None:
                from odeco.sources.spark_chains import add_column

                work = partial(method, travelling(self), **options)
                return add_column(work, X, method.__name__, _example(self, kind, self._parameters().n_components))
            refuse_elsewhere(X, method.__name__)
            return method(self, X, lengths, *arguments, **options)

        return run  # type: ignore[return-value]

    return decorate


def _call(
    model: Any, name: str, valued: bool, arguments: Any, options: Any, array: NDArray[Any], lengths: Any
) -> tuple[float, NDArray[Any]]:
    found = getattr(model, name)(array, lengths, *arguments, **options)
    return found if valued else (0.0, found)


def _example(model: Any, kind: str, k: int) -> NDArray[Any]:
    if kind == "state":
        return np.empty(0, dtype=np.int64)
    shares = np.empty((0, k))
    return np.asarray(model._expected_observation(shares)) if kind == "next" else shares


def travelling(model: Any) -> Any:
    """The model without what only this process needs."""
    small = copy(model)
    small.random_state = None
    for name in ("_stream", "diagnostics_", "monitor_"):
        vars(small).pop(name, None)
    return small
