"""scikit-learn's own checks on GaussianMixture."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from odeco import GaussianMixture


@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # the checks fit a few dozen samples
@parametrize_with_checks(
    [
        GaussianMixture(random_state=0),
        GaussianMixture(2, "tied_spherical", effort="quick", random_state=0),
        GaussianMixture(2, "diag", random_state=0),
        GaussianMixture(2, "full", effort="quick", random_state=0),
    ],
)
def test_sklearn_checks(estimator, check):
    check(estimator)
