"""Habits of other libraries: arguments of theirs, parameters set by hand, `converged_`, families by name of column."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import odeco
from odeco.models.cards import OWN

ESTIMATORS = [card.load() for card in OWN]
START, CHAIN = [0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_arguments_of_other_libraries_are_answered_with_ours(kind):
    known = list(inspect.signature(kind).parameters)
    assert "self" not in known  # the signature is that of the class itself
    assert known[0] in ("n_components", "n_classes")
    for name, words in (("n_iter", "max_iter"), ("n_jobs", "ODECO_NUM_THREADS"), ("num_topics", f"is {known[0]}")):
        with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) has no argument '{name}': .*{words}"):
            kind(**{name: 3})
    with pytest.raises(TypeError, match="has no argument 'random_stat': did you mean 'random_state'"):
        kind(random_stat=0)
    with pytest.raises(TypeError, match="has no argument 'zzz': it takes n_"):
        kind(zzz=0)


def test_a_class_derived_from_an_estimator_may_have_arguments_of_its_own():
    class Named(odeco.GaussianMixture):
        def __init__(self, n_components=2, *, name=""):
            super().__init__(n_components)
            self.name = name

    assert Named(3, name="a").n_components == 3
    with pytest.raises(TypeError, match="Named.* has no argument 'nam'"):
        Named(nam="a")


def by_hand(kind, **parameters):
    model = kind(2, random_state=0, **parameters.pop("options", {}))
    for name, value in {"startprob_": START, "transmat_": CHAIN, **parameters}.items():
        setattr(model, name, value)
    return model


MODELS = {
    "categorical": (odeco.CategoricalHMM, {"emissionprob_": [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]}),
    "diag": (odeco.GaussianHMM, {"means_": [[0.0, 1.0], [4.0, -2.0]], "covars_": [[1.0, 0.5], [2.0, 1.0]]}),
    "full": (
        odeco.GaussianHMM,
        {
            "means_": [[0.0, 1.0], [4.0, -2.0]],
            "covars_": [[[1.0, 0.2], [0.2, 0.5]], [[2.0, 0.0], [0.0, 1.0]]],
            "options": {"covariance_type": "full"},
        },
    ),
    "poisson": (odeco.PoissonHMM, {"lambdas_": [[1.0, 7.0], [9.0, 2.0]]}),
}


@pytest.mark.parametrize("name", MODELS)
def test_chains_set_by_hand_predict_score_and_sample_as_those_of_hmmlearn(name):
    peers = pytest.importorskip("hmmlearn.hmm")
    kind, parameters = MODELS[name]
    drawn, states = by_hand(kind, **parameters).sample(300, random_state=1)
    assert set(states) == {0, 1}
    model = by_hand(kind, **parameters)
    options = parameters.get("options", {})
    peer = getattr(peers, kind.__name__)(2, **options)
    for attribute in ("startprob_", "transmat_", "emissionprob_", "means_", "covars_", "lambdas_"):
        if hasattr(model, attribute):
            setattr(peer, attribute, np.array(getattr(model, attribute)))
    peer.n_features = 3 if name == "categorical" else 2
    lengths = [100, 200]
    assert model.score(drawn, lengths) == pytest.approx(peer.score(drawn, lengths))
    np.testing.assert_array_equal(model.predict(drawn, lengths), peer.predict(drawn, lengths))
    np.testing.assert_allclose(model.predict_proba(drawn, lengths), peer.predict_proba(drawn, lengths), atol=1e-8)
    assert np.isfinite(model.bic(drawn, lengths))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transmat_": [[0.9, 0.2], [0.2, 0.8]]}, "transmat_ must hold probabilities that sum to 1"),
        ({"startprob_": [1.0]}, r"startprob_ must be finite and have the shape \(2\), for n_components=2, got \(1,\)"),
        ({"emissionprob_": [[0.5, 0.5]]}, r"emissionprob_ must .* shape \(2, any\)"),
        ({"emissionprob_": [[1.5, -0.5], [0.5, 0.5]]}, "emissionprob_ must hold probabilities"),
    ],
)
def test_parameters_set_by_hand_are_checked(change, words):
    model = by_hand(odeco.CategoricalHMM, **{"emissionprob_": [[0.5, 0.5], [0.1, 0.9]], **change})
    with pytest.raises(ValueError, match=words):
        model.predict([[0], [1]])


def test_what_is_missing_is_named():
    model = by_hand(odeco.GaussianHMM, means_=[[0.0], [1.0]])
    with pytest.raises(NotFittedError, match="GaussianHMM has no covars_ yet: call fit, or set them all by hand"):
        model.score([[0.0]])
    with pytest.raises(NotFittedError, match="PoissonHMM has no emissions yet: call fit, or set them all by hand"):
        by_hand(odeco.PoissonHMM).score([[1]])


def test_a_mixture_set_by_hand_predicts():
    model = odeco.GaussianMixture(2)
    model.weights_, model.means_ = np.array([0.5, 0.5]), np.array([[0.0], [5.0]])
    model.covariances_ = np.array([1.0, 1.0])
    assert model.predict([[0.2], [4.9]]).tolist() == [0, 1]
    assert model.sample(3)[0].shape == (3, 1)


def test_converged_says_whether_the_rule_ended_the_refinement():
    rng = np.random.default_rng(0)
    steps = rng.integers(3, size=(300, 1))
    chain = odeco.CategoricalHMM(1, random_state=0).fit(steps)
    assert chain.converged_ == chain.monitor_.converged
    counts = rng.poisson(1.0, (200, 12)) + 3 * np.repeat(np.eye(2, dtype=int), 100, axis=0).repeat(6, axis=1)
    topics = odeco.SingleTopicModel(2, random_state=0).fit(counts)
    assert topics.converged_ is True
    assert topics.set_params(refine=None).fit(counts).converged_ is False
    assert not hasattr(odeco.SingleTopicModel(2), "converged_")


def table():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=300)
    return pandas.DataFrame(
        {
            "age": np.round(30 + 20 * group + 3 * rng.standard_normal(300)).astype(int),
            "visits": rng.poisson(2 + 10 * group),
            "smokes": np.where(rng.random(300) < 0.2 + 0.6 * group, "yes", "no"),
            "height": 170 + 8 * group + rng.standard_normal(300),
        }
    )


def test_families_by_the_names_of_columns():
    X = table()
    model = odeco.ProductMixture(2, family={"age": "gaussian"}, random_state=0).fit(X)
    assert model.families_ == ("gaussian", "poisson", "categorical", "gaussian")
    assert odeco.ProductMixture(2, random_state=0).fit(X).families_[0] == "poisson"
    same = odeco.ProductMixture(2, family=list(model.families_), random_state=0).fit(X)
    np.testing.assert_array_equal(model.means_, same.means_)
    with pytest.raises(
        ValueError, match="family names the column 'agee', which X does not have: it has 'age', 'visits'"
    ):
        odeco.ProductMixture(2, family={"agee": "gaussian"}).fit(X)
    with pytest.raises(ValueError, match="family must be 'auto' or of 'gaussian', .* got 'normal'"):
        odeco.ProductMixture(2, family={"age": "normal"}).fit(X)


def test_families_by_name_are_kept_in_files_and_streams(tmp_path):
    X = table()
    model = (
        odeco.ProductMixture(2, family={"age": "gaussian"}, random_state=0).partial_fit(X[:150]).partial_fit(X[150:])
    )
    assert model.families_[0] == "gaussian"
    odeco.save(model, tmp_path / "model.odeco")
    assert odeco.load(tmp_path / "model.odeco").family == {"age": "gaussian"}
