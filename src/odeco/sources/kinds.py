"""Which library a collection is of, found out without importing any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class SparkColumn:
    """Data in a Spark DataFrame. Made by :func:`odeco.sources.spark.from_spark`.

    `kind` is "vectors", "arrays", "tokens" or "numbers"; `vocabulary` are the words that are counted in token lists.
    """

    frame: Any = field(repr=False)
    columns: tuple[str, ...]
    kind: str
    vocabulary: tuple[str, ...] | None = field(default=None, repr=False)
    weight: str | None = None


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_spark(X: Any) -> bool:
    """Whether X is a Spark DataFrame, or a column of one."""
    if isinstance(X, SparkColumn):
        return True
    return type(X).__module__.split(".")[0] == "pyspark" and hasattr(X, "rdd") and hasattr(X, "select")


def is_remote(X: Any) -> bool:
    """Whether X is a collection of one of the engines: never to be turned into one array."""
    return is_dask(X) or is_spark(X)
