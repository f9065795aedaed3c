"""Sources: anything that holds rows, as batches that can be read again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odeco.sources.arrays import ArraySource
from odeco.sources.base import Batch, Source, require_passes
from odeco.sources.chunks import once
from odeco.sources.counts import as_batch, is_block
from odeco.sources.documents import damp_counts, every, weigh_by_length
from odeco.sources.kinds import Checkpointed, OutOfCore, checkpointed, is_remote, out_of_core
from odeco.sources.spark import from_spark
from odeco.sources.streams import StreamSource

__all__ = [
    "ArraySource",
    "Batch",
    "Source",
    "StreamSource",
    "as_batch",
    "as_source",
    "checkpointed",
    "damp_counts",
    "every",
    "from_spark",
    "out_of_core",
    "require_passes",
    "weigh_by_length",
]

# Rows per batch. 100 columns of float32 for each take 26 MB, and the cost per batch is long amortized.
DEFAULT_BATCH_SIZE = 65_536


def as_source(X: Any, batch_size: int = DEFAULT_BATCH_SIZE, sample_weight: ArrayLike | None = None) -> Source:
    """Make a source of counts (documents x words).

    Parameters
    ----------
    X : array, scipy sparse matrix, DataFrame, list of batches, callable, iterator or Source
        A whole matrix; or batches of rows, each one an array, sparse matrix, DataFrame or a pair (rows, weights). A
        callable returns a new iterator over the batches at each call. A bare iterator can be read once: several
        passes over it are an error. A Source is returned as it is.
    batch_size : int
        Rows per batch that leaves the source.
    sample_weight : (n,) array, optional
        A weight per row.
    """
    if isinstance(X, Source):
        if sample_weight is not None:
            raise ValueError("sample_weight cannot be added to a source: give it to as_source with the data.")
        return X
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}.")
    if isinstance(X, OutOfCore):
        return as_source(X.data, batch_size, sample_weight)
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        return keep(as_source(X.data, batch_size, sample_weight), X)  # type: ignore[no-any-return]
    if is_remote(X):
        from odeco.sources.remote import remote_counts

        return remote_counts(X, int(batch_size), sample_weight)
    if is_block(X):
        return ArraySource(X, int(batch_size), sample_weight)
    if callable(X):
        return StreamSource(X, int(batch_size), sample_weight)
    if isinstance(X, Iterator):
        return StreamSource(once(X), int(batch_size), sample_weight, reiterable=False)
    if isinstance(X, (list, tuple)) and len(X) and not _is_batch_like(X[0]):
        return ArraySource(X, int(batch_size), sample_weight)  # nested lists of numbers
    if hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
        return StreamSource(lambda: X, int(batch_size), sample_weight)
    cure = ": count the words of texts first, by odeco.text.Vectorizer" if isinstance(X, (str, bytes)) else ""
    raise ValueError(f"X must be a matrix of counts or batches of one, got {type(X).__name__}{cure}.")


def _is_batch_like(item: Any) -> bool:
    """Whether an item of a list is a batch of rows rather than a row of numbers."""
    if isinstance(item, tuple) and len(item) == 2:
        item = item[0]
    return isinstance(item, Batch) or (is_block(item) and len(item.shape) == 2)
