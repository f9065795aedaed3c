"""Numbers of the other figures: spectrum, convergence, profiles, chains, crowds, signals."""

import numpy as np
import pytest

import odeco
from odeco import plots
from odeco.plots.crowds import label_information
from odeco.plots.samples import some_rows
from tests.fitted_models import FITTED, fitted_model


@pytest.mark.parametrize("name", FITTED)
def test_the_spectrum_is_cut_where_the_gap_is(name):
    """The gap of the diagnostics is that of the eigenvalues on both sides of the cut."""
    model, _ = fitted_model(name)
    found = plots.spectrum(model)
    assert 0 < found.kept <= found.values.size
    if found.kept < found.values.size:
        last, first = found.values[found.kept - 1 : found.kept + 1]
        dropped = np.abs(found.values[found.kept :]).max() if name == "product_mixture" else max(first, 0.0)
        assert found.gap == pytest.approx(1 - dropped / last, abs=1e-9)


@pytest.mark.parametrize("name", FITTED)
def test_convergence_is_the_trace_of_the_fit(name):
    model, _ = fitted_model(name)
    found = plots.convergence(model)
    assert found.words.endswith((".", ": raise max_iter or tol."))
    assert len(found.steps) == len(found.values)
    if name == "ica":
        assert "keeps no value" in found.words
    else:
        assert found.n_iter == model.n_iter_
        assert found.steps[-1] <= found.n_iter
        assert np.all(np.diff(found.steps) > 0)


def test_a_fit_without_refinement_says_so():
    _, inputs = fitted_model("gaussian_mixture")
    model = odeco.GaussianMixture(3, refine=None, random_state=0).fit(inputs["data"])
    assert "was not refined" in plots.convergence(model).words


def test_profiles_tell_the_share_of_variance_between_components():
    model, inputs = fitted_model("product_mixture")
    found = plots.profiles(model, inputs["feature_names"])
    assert [p.kind for p in found] == ["probability"] * 3 + ["rate", "number", "categories"]
    assert [p.name for p in found] == inputs["feature_names"]
    for profile in found[:5]:
        within = model.weights_ @ profile.deviations**2
        between = model.weights_ @ (profile.means - model.weights_ @ profile.means) ** 2
        assert profile.telling == pytest.approx(between / (between + within))
    assert found[5].table == pytest.approx(model.probabilities_[0])
    assert 0 < found[5].telling < 1


def test_only_the_most_telling_columns_are_shown_in_their_order():
    model, _ = fitted_model("gaussian_mixture")
    every = plots.profiles(model)
    two = plots.profiles(model, most=2)
    assert sorted(p.column for p in two) == [p.column for p in two] == [0, 1]  # the centres differ in these alone
    assert min(p.telling for p in two) > max(p.telling for p in every if p.column > 1)


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")  # 400 samples are few for the moments of "diag"
@pytest.mark.parametrize("covariance_type", ["spherical", "tied_spherical", "diag", "full", "tied"])
def test_deviations_for_every_form_of_covariances(covariance_type):
    _, inputs = fitted_model("gaussian_mixture")
    model = odeco.GaussianMixture(3, covariance_type, random_state=0).fit(inputs["data"])
    labels = model.predict(inputs["data"])
    for profile in plots.profiles(model):
        assert profile.deviations.shape == (3,)
        # Unit variance was drawn; 80 samples of the smallest class know it to about a tenth.
        assert profile.deviations == pytest.approx(1.0, abs=0.3)
    assert len(np.unique(labels)) == 3


@pytest.mark.parametrize("names", [["a", "b"], list("abcde")])
def test_wrong_numbers_of_names_are_refused(names):
    model, _ = fitted_model("gaussian_mixture")
    with pytest.raises(ValueError, match=f"feature_names must hold 4 names.*got {len(names)}"):
        plots.profiles(model, names)


def test_names_of_views_come_view_by_view_or_in_a_row():
    model, inputs = fitted_model("multiview")
    nested = plots.view_profiles(model, inputs["feature_names"])
    flat = plots.view_profiles(model, [name for view in inputs["feature_names"] for name in view])
    assert [[p.name for p in view] for view in nested] == [[p.name for p in view] for view in flat]
    with pytest.raises(ValueError, match="a list of names for each view"):
        plots.view_profiles(model, ["one", "two"])


def test_membership_counts_the_most_probable_components():
    model, inputs = fitted_model("gaussian_mixture")
    use = plots.membership(model, inputs["data"])
    shares = model.predict_proba(inputs["data"])
    labels = shares.argmax(axis=1)
    assert use.counts.tolist() == np.bincount(labels, minlength=3).tolist()
    assert use.certainty == pytest.approx([shares[labels == i, i].mean() for i in range(3)])
    assert use.score == pytest.approx(model.score(inputs["data"]))


def test_some_rows_of_a_long_table_are_spread_over_it():
    model, _ = fitted_model("gaussian_mixture")
    rows = np.arange(20_000.0)[:, None] * np.ones(4)
    chosen = some_rows(model, rows)
    assert len(chosen) <= 5_000
    assert chosen[-1, 0] > 19_990
    assert some_rows(model, lambda: iter([rows[:10], rows[10:]])).shape == (10, 4)


def test_transitions_give_time_spent_and_length_of_stays():
    model, _ = fitted_model("gaussian_hmm")
    found = plots.transitions(model)
    assert found.stationary @ found.matrix == pytest.approx(found.stationary)
    assert found.stays == pytest.approx(1 / (1 - np.diagonal(model.transmat_)))
    assert np.linalg.norm(found.positions, axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["categorical_hmm", "gaussian_hmm", "poisson_hmm"])
def test_the_decoded_sequence_is_the_first_one(name):
    model, inputs = fitted_model(name)
    found = plots.decoded_sequence(model, inputs["data"], n_steps=50)
    first = inputs["data"][0][:400] if name == "gaussian_hmm" else inputs["data"]
    assert found.length == len(first)
    assert found.states.tolist() == model.predict(first)[:50].tolist()
    assert found.certainty == pytest.approx(model.predict_proba(first)[np.arange(50), found.states])
    assert not found.drawn
    assert plots.decoded_sequence(model, n_steps=50).drawn


def test_reliability_and_information_of_annotators():
    model, inputs = fitted_model("dawid_skene")
    found = plots.annotators(model, inputs["data"])
    assert (np.diff(found.reliability) <= 0).all()
    assert found.n_labels.tolist() == [200] * 7
    right = [model.confusion_[w].diagonal() @ model.weights_ for w in found.order]
    assert found.reliability == pytest.approx(right)
    assert sorted(found.order[:3].tolist()) == [0, 1, 2]  # the best of 7 were drawn first


def test_information_knows_guessing_from_being_always_wrong():
    half = np.array([0.5, 0.5])
    right, wrong, guess = np.eye(2), 1 - np.eye(2), np.full((2, 2), 0.5)
    assert label_information(np.array([right, wrong, guess]), half) == pytest.approx([1, 1, 0])


def test_sources_are_the_extremes_of_every_stretch():
    model, inputs = fitted_model("ica")
    found = plots.source_series(model, inputs["data"], n_points=100)
    sources = model.transform(inputs["data"]).reshape(100, 30, 2)
    assert found.low == pytest.approx(sources.min(axis=1))
    assert found.high == pytest.approx(sources.max(axis=1))
    assert found.n_samples == 3000
    assert found.histogram.sum(axis=0) * np.diff(found.edges)[0] == pytest.approx(1.0)


def test_power_of_sources_and_noise_add_up():
    model, _ = fitted_model("ica")
    found = plots.mixing(model)
    noise = np.trace(model.noise_covariance_) / np.trace(model.covariance_)
    assert found.power.sum() + noise == pytest.approx(1.0, abs=0.02)  # up to sampling error, says ICA's own docstring


@pytest.mark.parametrize("bad", [object(), odeco.ICA, None])
def test_what_is_not_a_fitted_estimator_is_refused(bad):
    with pytest.raises(ValueError, match="fitted estimator of odeco"):
        plots.spectrum(bad)


def test_samples_of_chains_are_no_scatter():
    """Steps are no samples of a mixture: the card says so."""
    model, inputs = fitted_model("gaussian_hmm")
    assert plots.scatter(model, inputs["data"][0], plots.profiles(model)) is None
    model, inputs = fitted_model("gaussian_mixture")
    assert plots.scatter(model, inputs["data"], plots.profiles(model)) is not None
