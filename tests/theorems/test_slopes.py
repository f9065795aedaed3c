"""Moment estimates err by n^(-1/2), every one of them: sixteen times the samples, a quarter of the error.

The draws and estimators are those of `python -m benchmarks curves`, which has more sizes and seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.errors import CASES, error_of

SEEDS = range(5)


def ratio(error, least):
    few, many = (np.median([error(n, seed) for seed in SEEDS]) for n in (2 * least, 32 * least))
    return few / many


# Medians of five leave a factor of 1.2 of doubt (measured); a bias of half the error at the lesser size gives 2.
LEAST, MOST = 2.5, 6.4


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_sixteen_times_the_samples_are_a_quarter_of_the_error(case):
    assert LEAST < ratio(lambda n, seed: error_of(case, n, seed), case.least) < MOST


def test_a_bias_would_be_seen():
    """Of half the error that few samples leave."""
    case = CASES["ProductMixture, bernoulli"]
    bias = np.median([error_of(case, 2 * case.least, seed) for seed in SEEDS]) / 2
    assert ratio(lambda n, seed: np.hypot(error_of(case, n, seed), bias), case.least) < LEAST
