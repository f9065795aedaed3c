"""What a merger costs, of the sums of two components and of both together."""

from __future__ import annotations

import numpy as np


def merger_cost(land, shares, i, j):
    """Loss of the expected log-likelihood, weights included, where the rows of two components (k, n) become one's."""
    apart, together = np.stack([shares[i], shares[j]]), (shares[i] + shares[j])[None]

    def value(given):
        sums = land.sums(given)
        return float((land.expected(sums, None) + sums[0] * np.log(sums[0])).sum())

    return value(apart) - value(together)
