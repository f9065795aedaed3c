"""Latent classes of poLCA's data sets: the best known log-likelihoods, from one call, whatever the seed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks.best_known import LATENT_CLASSES, REACHED
from odeco import MomentWarning, ProductMixture

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("name", "k", "best"), LATENT_CLASSES)
def test_the_best_known_likelihood_is_reached(real_data, name, k, best):
    X = real_data(name)["X"]
    for seed in range(5):
        with warnings.catch_warnings():
            # Three classes of four items that are yes or no are not identified: the likelihood is reached all the same.
            if (name, k) == ("values", 3):
                warnings.filterwarnings("ignore", "3 components of 4 discrete columns may not", MomentWarning)
            model = ProductMixture(k, random_state=seed).fit(X)
        assert len(X) * model.lower_bound_ > best - REACHED


def test_missing_votes(real_data):
    data = real_data("votes84")
    model = ProductMixture(2, random_state=0).fit(data["X"])
    agreement = np.mean(model.predict(data["X"]) == (data["y"] == data["y"][0]))
    assert max(agreement, 1 - agreement) > 0.85  # two classes are nearly the two parties
