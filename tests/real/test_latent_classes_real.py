"""Latent classes of poLCA's data sets: the best known log-likelihoods, from one call, whatever the seed."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import ProductMixture

pytestmark = pytest.mark.real

# Best known log-likelihoods (poLCA with many restarts), as the data's README gives them.
BEST = [
    ("carcinoma", 2, -317.2568),
    ("carcinoma", 3, -293.705),
    ("carcinoma", 4, -289.2858),
    ("cheating", 2, -440.027),
    ("values", 2, -504.468),
    ("values", 3, -503.301),
]


@pytest.mark.parametrize(("name", "k", "best"), BEST)
def test_the_best_known_likelihood_is_reached(real_data, name, k, best):
    X = real_data(name)["X"]
    for seed in range(5):
        model = ProductMixture(k, random_state=seed).fit(X)
        assert len(X) * model.lower_bound_ > best - 0.01


def test_missing_votes(real_data):
    data = real_data("votes84")
    model = ProductMixture(2, random_state=0).fit(data["X"])
    agreement = np.mean(model.predict(data["X"]) == (data["y"] == data["y"][0]))
    assert max(agreement, 1 - agreement) > 0.85  # two classes are nearly the two parties
