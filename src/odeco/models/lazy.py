"""Methods that treat rows one by one, on collections of Dask and Spark: one task per partition, made when asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from odeco.fitting.rows import take_names as take_names
from odeco.sources.kinds import are_dask, is_dask, is_remote, is_spark

Method = TypeVar("Method", bound=Callable[..., Any])


def by_rows(kind: str) -> Callable[[Method], Method]:
    """Let a method ``f(self, X)`` take Dask collections, for which it returns a lazy Dask array, and Spark DataFrames,
    to which it adds a column. `kind` says what it gives of a row: a "label", the name of a "class", a "score", or
    "shares" (k numbers).
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def run(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
            if is_remote(X) and getattr(self, "layout_", "wide") == "long":  # rows of an item anywhere
                from odeco.sources.remote_votes import map_items

                example = _example(self, kind, X)
                return map_items(partial(method, self), X, method.__name__, example, self.classes_)
            if is_dask(X) or are_dask(X):
                from odeco.sources.dask import map_rows

                return map_rows(partial(method, self), X, _example(self, kind, X))
            if is_spark(X):
                from odeco.sources.spark import add_column

                return add_column(partial(method, self), X, method.__name__, _example(self, kind, X))
            return method(self, X, *arguments, **options)

        return run  # type: ignore[return-value]

    return decorate


def sum_and_count(scores: Any) -> tuple[float, int]:
    """Of scores here, or made elsewhere and added up there."""
    if is_spark(scores):
        found = scores.groupBy().agg({"score_samples": "sum", "*": "count"}).first()
        return float(found["sum(score_samples)"]), int(found["count(1)"])
    if hasattr(scores, "compute"):
        import dask

        total, count = dask.compute(scores.sum(), (0 * scores + 1).sum())
        return float(total), int(count)
    return float(scores.sum()), int(scores.size)


def _example(model: Any, kind: str, X: Any) -> Any:
    """No rows of the result: they tell its shape and type."""
    check_is_fitted(model)
    if kind == "label":
        return np.empty(0, dtype=np.intp)
    if kind == "class":
        return np.empty(0, dtype=model.classes_.dtype)
    if kind == "score":
        return np.empty(0)
    components = getattr(model, "weights_", None)
    k = model.components_.shape[0] if components is None else len(components)
    keeps = "float32" in getattr(model.__sklearn_tags__().transformer_tags, "preserves_dtype", [])
    single = keeps and getattr(X, "dtype", None) == np.float32
    return np.empty((0, k), dtype=np.float32 if single else np.float64)
