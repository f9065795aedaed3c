"""Crowd labels of birds and of textual entailment: better than majority vote, at any seed."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import DawidSkene

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("name", "most_wrong"), [("crowd_bluebird", 0.112), ("crowd_rte", 0.072)])
def test_label_error_at_every_seed(real_data, name, most_wrong):
    data = real_data(name)
    crowd, truth = data["crowd"], dict(map(tuple, data["truth"].tolist()))
    for seed in range(10):
        model = DawidSkene(2, random_state=seed).fit(crowd)
        assert model.layout_ == "long"
        expected = np.array([truth[item] for item in model.items_.tolist()])
        assert np.mean(model.predict(crowd) != expected) <= most_wrong
