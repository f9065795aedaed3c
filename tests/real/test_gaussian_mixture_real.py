"""Gaussian mixtures on real measurements: as likely as scikit-learn's best of ten starts, for every seed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Peer

from odeco import GaussianMixture

CASES = [
    ("penguins", 3, "spherical"),
    ("penguins", 3, "full"),
    ("banknote", 2, "diag"),
    ("banknote", 2, "full"),
    ("geyser", 2, "spherical"),
    ("diabetes", 3, "diag"),
]


@pytest.mark.real
@pytest.mark.parametrize(("name", "k", "kind"), CASES)
@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # two or three columns leave no noise space
def test_as_likely_as_the_best_of_ten_starts(real_data, name, k, kind):
    x = real_data(name)["X"].astype(float)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    best = Peer(k, covariance_type=kind, n_init=10, random_state=0, max_iter=500).fit(x).score(x)
    for seed in range(3):
        # EM of both stops where a step gains little, the peer's at 1e-3.
        assert GaussianMixture(k, kind, random_state=seed).fit(x).score(x) > best - 1e-3


@pytest.mark.real
def test_the_penguins_are_three_species(real_data):
    data = real_data("penguins")
    x = data["X"].astype(float)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    labels = GaussianMixture(3, "full", random_state=0).fit_predict(x)
    table = np.array([[np.sum((labels == j) & (data["y"] == s)) for s in np.unique(data["y"])] for j in range(3)])
    assert table.max(axis=1).sum() / len(x) > 0.95  # 0.985 found; a shuffled labelling has 0.45
