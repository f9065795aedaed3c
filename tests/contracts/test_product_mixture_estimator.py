"""scikit-learn's own checks on ProductMixture."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from odeco import ProductMixture


@pytest.mark.usefixtures("short_search")
@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # the checks fit a few rows of noise
@parametrize_with_checks(
    [
        ProductMixture(random_state=0),
        ProductMixture(2, random_state=0, max_iter=50),
        ProductMixture(2, family="gaussian", refine="one-step", random_state=0),
    ]
)
def test_sklearn_checks(estimator, check):
    check(estimator)
