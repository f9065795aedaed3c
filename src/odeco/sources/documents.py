"""What may be done to documents before their moments are taken: functions for :meth:`Source.map`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from odeco.sources.base import Batch
from odeco.sources.counts import row_sums


def weigh_by_length(half_length: float = 100.0) -> Callable[[Batch], Batch]:
    """Multiply the weight of a document of length l by ``(l / (l + half_length)) ** 2``.

    The average over the pairs of a short document is mostly noise, of variance about 1 / l^2; that of a long one
    differs from document to document instead, whatever its length. This weight follows the inverse of both: l^2 for
    short documents, constant for long ones. With lengths that vary, equal weights (``half_length=0``, as in the
    paper) lose most of the accuracy and often leave M2 indefinite; any weight leaves the moments unbiased as long as
    lengths tell nothing of topics.
    """
    if not half_length >= 0 or not np.isfinite(half_length):
        raise ValueError(f"half_length must be a finite number of at least 0, got {half_length!r}.")

    def weigh(batch: Batch) -> Batch:
        if half_length == 0:
            return batch
        share = (batch.lengths / (batch.lengths + half_length)) ** 2
        return Batch(batch.counts, batch.lengths, batch.row_weights() * share)

    return weigh


def damp_counts(batch: Batch) -> Batch:
    """Replace a count c by ``log2(1 + c)``: 1 stays 1, repetitions count less.

    In real text a word that occurred once comes back more often than any topic says (burstiness), which gives bursty
    words directions of their own in M2. On text drawn from a topic model damping is a bias.
    """
    counts = batch.counts
    values = np.log2(counts.data + counts.dtype.type(1))
    damped = sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape, copy=False)
    damped.has_canonical_format = True
    return Batch(damped, row_sums(damped), batch.weights)


def every(step: int) -> Callable[[Batch], Batch]:
    """Keep every ``step``-th row of a batch, the first one always."""
    if step < 1:
        raise ValueError(f"step must be at least 1, got {step}.")

    return lambda batch: batch if step == 1 else batch.take(slice(None, None, step))
