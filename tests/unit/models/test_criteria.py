"""AIC and BIC of every model: free parameters counted by hand, and the log-likelihood that they are added to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import odeco

N, K = 400, 2


def views(rng, h):
    """Measurements (3), counts (4), a category of 5, answers (6)."""
    return [
        4.0 * h[:, None] + rng.standard_normal((N, 3)),
        rng.poisson(np.array([2.0, 9.0])[h][:, None] * np.ones(4)),
        np.eye(5)[np.where(rng.random(N) < 0.7, h, rng.integers(5, size=N))],
        (rng.random((N, 6)) < np.array([0.2, 0.8])[h][:, None]).astype(int),
    ]


def table(rng, h):
    measured, counts, category, answers = views(rng, h)
    columns = {f"x{j}": measured[:, j] for j in range(3)} | {f"n{j}": counts[:, j] for j in range(4)}
    columns |= {f"a{j}": answers[:, j] for j in range(6)}
    return pd.DataFrame({**columns, "c": pd.Categorical(category.argmax(axis=1).astype(str))})


def rows(rng, h):
    return 3.0 * h[:, None] + rng.standard_normal((N, 5))


def words(rng, h):
    return np.array([rng.multinomial(30, np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]])[i]) for i in h])


def votes(rng, h):
    return np.where(rng.random((N, 4)) < 0.8, h[:, None], rng.integers(3, size=(N, 4)))


HMM = K - 1 + K * (K - 1)  # free parameters of the chain
CASES = {
    "single_topic": (odeco.SingleTopicModel(K), words, 1 + K * 3),
    "views": (odeco.MultiViewMixture(K), views, 1 + K * (2 * 3 + 4 + 4 + 6)),
    "table": (odeco.ProductMixture(K), table, 1 + K * (2 * 3 + 4 + 4 + 6)),
    "crowd": (odeco.DawidSkene(3), votes, 2 + 4 * 3 * 2),
    "spherical": (odeco.GaussianMixture(K, covariance_type="spherical"), rows, 1 + K * 5 + K),
    "tied_spherical": (odeco.GaussianMixture(K, covariance_type="tied_spherical"), rows, 1 + K * 5 + 1),
    "diag": (odeco.GaussianMixture(K, covariance_type="diag"), rows, 1 + K * 5 + K * 5),
    "tied": (odeco.GaussianMixture(K, covariance_type="tied"), rows, 1 + K * 5 + 15),
    "full": (odeco.GaussianMixture(K, covariance_type="full"), rows, 1 + K * 5 + K * 15),
    "hmm_of_symbols": (odeco.CategoricalHMM(K, n_features=3), lambda rng, h: h + rng.integers(2, size=N), HMM + K * 2),
    "hmm_of_counts": (
        odeco.PoissonHMM(K),
        lambda rng, h: rng.poisson(np.array([2.0, 9.0])[h][:, None] * np.ones(4)),
        HMM + K * 4,
    ),
    "hmm_spherical": (odeco.GaussianHMM(K, covariance_type="spherical"), rows, HMM + K * 5 + K),
    "hmm_diag": (odeco.GaussianHMM(K, covariance_type="diag"), rows, HMM + K * 5 + K * 5),
    "hmm_tied": (odeco.GaussianHMM(K, covariance_type="tied"), rows, HMM + K * 5 + 15),
    "hmm_full": (odeco.GaussianHMM(K, covariance_type="full"), rows, HMM + K * 5 + K * 15),
}


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")  # the samples are few
@pytest.mark.parametrize("name", CASES)
def test_free_parameters(name):
    model, draw, free = CASES[name]
    rng = np.random.default_rng(0)
    h = np.repeat(rng.integers(K, size=N // 8), 8)
    X = draw(rng, h)
    model.set_params(effort="quick", random_state=0).fit(X)
    total = model.score(X) if name.startswith("hmm") else N * model.score(X)
    assert model.aic(X) == pytest.approx(-2 * total + 2 * free, rel=1e-9)
    assert model.bic(X) == pytest.approx(-2 * total + np.log(N) * free, rel=1e-9)
