"""Tf-idf weights and frequencies in the place of counts: topic models cannot use them, and say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from odeco.sources.arrays import ArraySource

_LOOKED_AT = 100_000  # entries: fractions are in the first of them or nowhere
_ROUNDING = 1e-4  # of float32 sums


def said_of_fractions(source: Any) -> tuple[str, ...]:
    """Advice on a matrix of fractions: moments count ordered pairs of words, c (c - 1), and a fraction has none."""
    if not isinstance(source, ArraySource):
        return ()
    batch = source.whole()
    looked_at = batch.counts.data[:_LOOKED_AT]
    fraction = looked_at[looked_at != np.floor(looked_at)][:1]
    if not fraction.size:
        return ()
    return (
        f"X holds fractions such as {fraction[0]:.3g}{_kind(batch)}, and topic models need counts, how often each word "
        "stands in each document: give those of odeco.text.Vectorizer or CountVectorizer.",
    )


def _kind(batch: Any) -> str:
    """What the lengths of the rows say of where fractions come from."""
    squares = np.asarray((batch.counts**2).sum(axis=1)).ravel()
    for values, name in ((squares, "tf-idf weights"), (batch.lengths, "relative frequencies")):
        if np.allclose(values[batch.lengths > 0], 1.0, atol=_ROUNDING):
            return f" ({name}, as it seems: every row has length 1)"
    return ""
