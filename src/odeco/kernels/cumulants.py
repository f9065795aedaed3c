"""Products of two and of four coordinates summed over samples in columns: every multiset once, which BLAS cannot do."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels._native import add_fourth, add_second

__all__ = ["add_fourth", "add_second", "second_products"]


def second_products(
    samples: NDArray[np.floating[Any]], part: slice, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Sums (r, r) of products of two coordinates over some of the samples, columns of (r, n), by their weights."""
    total = np.zeros((len(samples),) * 2)
    add_second(samples, part.start, part.stop, np.empty(0) if weights is None else weights, total)
    return total
