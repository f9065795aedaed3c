"""scikit-learn's own checks on ICA."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from odeco.models.ica.estimator import ICA

TIES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "15 samples in 30 dimensions: sources that pick out single samples have equal kurtosis, and rounding decides "
        "their order. tests/unit/models/test_ica.py checks weights on identifiable data."
    )
}


@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # the checks fit 20 to 100 Gaussian samples
@parametrize_with_checks(
    [ICA(random_state=0), ICA(2, refine=None, noise="general", random_state=0)],
    expected_failed_checks=lambda estimator: TIES if estimator.n_components is None else {},
)
def test_sklearn_checks(estimator, check):
    check(estimator)
