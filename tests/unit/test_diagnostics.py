from __future__ import annotations

import warnings

import numpy as np
import pytest

import odeco
from odeco.diagnostics import Diagnostics, warn_all


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_warning_points_to_the_line_that_called_the_library(fit):
    noise = np.random.default_rng(0).poisson(0.3, (300, 40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(odeco.SingleTopicModel(4, random_state=0), fit)(noise)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_every_advice_is_one_warning():
    diagnostics = Diagnostics(2, np.ones(2), 0.5, 1.0, 0.1, advice=("first", "second"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert warn_all(diagnostics) is diagnostics
    assert [str(warning.message) for warning in caught] == ["first", "second"]
    assert not diagnostics.ok
    assert "second" in str(diagnostics)
