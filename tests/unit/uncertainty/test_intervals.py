"""`odeco.intervals` for every model, by every way, from rows and from sums; what cannot be done is said."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

import odeco
from odeco import shared_moments
from odeco.exceptions import MomentWarning
from odeco.sources import checkpointed
from odeco.uncertainty import class_table, read_intervals, write_intervals
from odeco.uncertainty.bounds import Errors, bounded
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.replicates import times_sums
from odeco.uncertainty.replication import agreement, source_agreement
from tests.fitted_models import FITTED, fitted_model

METHODS = {"lda": "sampled likelihood", "ica": "replicates"}


def data_of(name):
    model, given = fitted_model(name)
    X = given["data"]
    return (model, X[0], {"lengths": X[1]}) if isinstance(X, tuple) else (model, X, {})


def arrays(value):
    return [item for item in value if item is not None] if isinstance(value, list) else [np.asarray(value)]


@pytest.mark.parametrize("name", FITTED)
def test_every_learned_attribute_has_intervals_that_hold_its_value(name):
    model, X, given = data_of(name)
    found = odeco.intervals(model, X, n_replicates=10, replication=False, random_state=0, **given)
    assert found.method == METHODS.get(name, "sandwich")
    contract = {"weights_", "means_", "covariances_", "components_", "alpha_", "alpha0_", "variances_", "confusion_"}
    contract |= {"probabilities_", "startprob_", "transmat_", "emissionprob_", "covars_", "lambdas_", "mixing_"}
    contract |= {"mean_", "kurtosis_", "noise_covariance_"}
    assert {attribute for attribute in vars(model) if attribute in contract} <= set(found.value)
    for attribute, value in found.value.items():
        pairs = zip(*(arrays(each[attribute]) for each in (found.low, found.value, found.high)), strict=True)
        for low, middle, high in pairs:
            assert np.isfinite([low, high]).all()
            # of a chain the middle is the maximum of the likelihood, an error away at most
            assert ((low <= middle + 1e-9) & (middle <= high + 1e-9)).all()
        for own, shown in zip(arrays(getattr(model, attribute)), arrays(value), strict=True):
            assert np.array_equal(own, shown)


@pytest.mark.parametrize("name", ["gaussian_mixture", "product_mixture", "single_topic", "multiview"])
def test_replicates_and_the_sandwich_agree(name):
    """Sixty replicates know a deviation to nine per cent; medians over an attribute to less."""
    model, X, given = data_of(name)
    first = odeco.intervals(model, X, replication=False, **given)
    second = odeco.intervals(model, X, method="replicates", n_replicates=60, replication=False, random_state=0, **given)
    assert second.method == "replicates"
    for attribute in first.value:
        ratios = [
            b / a for a, b in zip(*(arrays(each.standard_error[attribute]) for each in (first, second)), strict=True)
        ]
        assert 0.75 < np.median(np.concatenate([ratio.ravel() for ratio in ratios])) < 1.35, attribute


def test_topics_of_few_documents_have_the_spread_of_replicates_about_the_maximum():
    """Intervals of a fit that was moved go to where draws lead, and hold the fit as well."""
    model, X, _ = data_of("lda")
    moved = copy(model)
    moved.alpha_ = 0.5 * model.alpha_
    moved.alpha0_ = float(moved.alpha_.sum())
    found = odeco.intervals(moved, X[:200], n_replicates=10, replication=False, random_state=0)
    assert found.method == "replicates about the maximum"
    plain = odeco.intervals(moved, X[:200], method="replicates", n_replicates=10, replication=False, random_state=0)
    assert plain.method == "replicates"
    assert found.high["alpha0_"] > model.alpha0_ > plain.high["alpha0_"]
    assert found.low["alpha0_"] <= moved.alpha0_


def test_shares_and_positive_numbers_stay_within_their_bounds():
    model, X, given = data_of("product_mixture")
    found = odeco.intervals(model, X, level=0.9999, replication=False, **given)
    for table_low, table_high in zip(found.low["probabilities_"], found.high["probabilities_"], strict=True):
        assert ((table_low >= 0) & (table_high <= 1)).all()
    assert (found.low["variances_"] > 0).all()
    assert ((found.low["means_"][:, :3] > 0) & (found.high["means_"][:, :3] < 1)).all()


def test_of_none_in_n_the_bound_is_that_of_the_binomial():
    learned = Learned("weights_", None, (0,), np.full(2, 2))
    errors = Errors.of(learned, np.array([0.0, 1.0]), np.zeros(2), np.array([100.0, 100.0]))
    _, low, high = bounded(errors, 1.96, 0.025)
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 100))
    assert low[1] == pytest.approx(0.025 ** (1 / 100))
    assert (low[0], high[1]) == (0.0, 1.0)


def test_shares_of_what_is_seen_have_intervals_on_the_scale_of_logits():
    """Components so far apart that each row tells its own: the weights are counted shares."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(0, 1, (270, 3)), rng.normal(40, 1, (30, 3))])
    model = odeco.GaussianMixture(2, random_state=0).fit(rows)
    found = odeco.intervals(model, rows, replication=False)
    error = 1.959964 / np.sqrt(300 * 0.9 * 0.1)
    np.testing.assert_allclose(found.low["weights_"], expit(logit([0.9, 0.1]) - error), rtol=1e-4)
    np.testing.assert_allclose(found.high["weights_"], expit(logit([0.9, 0.1]) + error), rtol=1e-4)


def test_the_level_is_the_width():
    model, X, given = data_of("gaussian_mixture")
    widths = []
    for level in (0.5, 0.95):
        found = odeco.intervals(model, X, level=level, replication=False, **given)
        widths.append(found.high["means_"] - found.low["means_"])
    np.testing.assert_allclose(widths[1] / widths[0], 1.959964 / 0.6744898, rtol=1e-6)


def test_the_same_seed_gives_the_same():
    model, X, _ = data_of("gaussian_mixture")
    first, second = (odeco.intervals(model, X, method="replicates", n_replicates=10, random_state=1) for _ in range(2))
    assert np.array_equal(first.low["means_"], second.low["means_"])
    assert np.array_equal(first.replication, second.replication)


# Sums alone.


def blocks_of_moments(model, rows, n_blocks):
    basis = shared_moments.make_basis(model, rows)
    return [shared_moments.add_moments(basis, block) for block in np.array_split(rows, n_blocks)]


@pytest.fixture(scope="module")
def spheres():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0, 0, 0], [5, 0, 0, 0], [0, 5, 0, 0]])
    rows = centres[rng.choice(3, 6000, p=[0.5, 0.3, 0.2])] + rng.standard_normal((6000, 4))
    return odeco.GaussianMixture(3, refine=None, random_state=0).fit(rows), rows


def test_from_files_of_moments_without_the_data(spheres, tmp_path):
    model, rows = spheres
    paths = []
    for place, part in enumerate(blocks_of_moments(model, rows, 20)):
        paths.append(tmp_path / f"{place}.moments")
        shared_moments.write_moments(part, paths[-1])
    found = odeco.intervals(model, paths, random_state=0)
    assert found.method == "block sums"
    assert found.replication.shape == (3,)
    assert (found.replication > 0.9).all()
    rows_found = odeco.intervals(model, rows, random_state=0, replication=False)
    assert rows_found.method == "block sums"
    # twenty blocks know a deviation to 16 per cent
    ratio = found.standard_error["means_"] / rows_found.standard_error["means_"]
    assert 0.7 < np.median(ratio) < 1.4
    # close to what the components would have were they known
    expected = np.sqrt(1 / (6000 * model.weights_))
    assert (rows_found.standard_error["means_"].mean(axis=1) > 0.8 * expected).all()
    assert (rows_found.standard_error["means_"].mean(axis=1) < 2.5 * expected).all()


def test_weighted_sums_are_sums_of_repeated_rows(spheres):
    model, rows = spheres
    first, second = blocks_of_moments(model, rows, 2)
    three = first._stream.sums.pack() + times_sums(second._stream.sums.pack(), 2)
    again = shared_moments.add_moments(shared_moments.make_basis(model, rows), np.vstack([rows, rows[3000:]]))
    for name, value in again._stream.sums.pack().sums.items():
        np.testing.assert_allclose(three.sums[name], value, rtol=1e-9, atol=1e-6)


# Replication.


def test_a_component_too_many_does_not_replicate():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(-4, 1, (600, 3)), rng.normal(4, 1, (600, 3))])
    right = odeco.GaussianMixture(2, "tied_spherical", random_state=0).fit(rows)
    found = odeco.intervals(right, rows, random_state=0)
    assert (found.replication > 0.95).all()
    assert str(found).endswith("every component replicates")
    with pytest.warns(MomentWarning, match="explain next to nothing"):
        many = odeco.GaussianMixture(3, "tied_spherical", random_state=0).fit(rows)
    lost = odeco.intervals(many, rows, random_state=0)
    assert not lost.replicated.all()
    assert lost.replication.max() > 0.95
    assert "not replicated: component" in str(lost)


def test_agreement_is_that_of_counterparts():
    shares = np.eye(3)[np.random.default_rng(0).integers(3, size=50)]
    np.testing.assert_allclose(agreement(shares, shares[:, [2, 0, 1]]), 1.0, rtol=1e-12)
    assert agreement(shares, shares[:, :2])[2] == 0.0


def test_a_part_of_a_component_is_not_the_component():
    """Both claim ten units, and 25 each on average."""
    whole = np.repeat([1.0, 0.0], 40)[:, None]
    part = np.repeat([1.0, 0.0], [10, 70])[:, None]
    np.testing.assert_allclose(agreement(whole, part), 0.4, rtol=1e-12)


def test_sources_agree_as_far_as_they_stand_out_from_noise():
    sources = np.random.default_rng(0).laplace(size=(50, 3))
    turned = -sources[:, [1, 2, 0]]
    found = source_agreement(sources, turned, np.array([5.0, -3.0, 0.5]), np.array([-2.0, -0.7, 4.0]))
    np.testing.assert_allclose(found, [1.0, 1.0, 0.0], rtol=1e-12)  # the last has another sign
    weak = source_agreement(sources, turned, np.array([5.0, -3.0, -0.5]), np.array([-2.0, -0.7, 0.4]))
    np.testing.assert_allclose(weak, [0.4, 1.0, 0.5], rtol=1e-12)


# Tables and files.


@cache
def known_intervals(name):
    model, X, given = data_of(name)
    found = odeco.intervals(model, X, n_replicates=10, replication=False, random_state=0, **given)
    return replace(found, replication=np.linspace(0.2, 0.9, len(found.replication)))


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize("name", ["product_mixture", "gaussian_hmm", "multiview", "ica"])
def test_files_come_back(name, suffix, tmp_path):
    found = known_intervals(name)
    write_intervals(found, tmp_path / f"intervals{suffix}")
    again = read_intervals(tmp_path / f"intervals{suffix}")
    assert (again.level, again.method, again.component) == (found.level, found.method, found.component)
    np.testing.assert_array_equal(again.replication, found.replication)
    for attribute in found.value:
        for first, second in zip(arrays(found.low[attribute]), arrays(again.low[attribute]), strict=True):
            np.testing.assert_array_equal(first, second)


def test_what_are_no_intervals_is_said(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="does not hold intervals"):
        read_intervals(tmp_path / "x.csv")
    model, X, _ = data_of("gaussian_mixture")
    found = odeco.intervals(model, X, replication=False)
    with pytest.raises(ValueError, match=r"written as \.csv or \.json"):
        write_intervals(found, tmp_path / "x.txt")


def test_frame_has_a_row_for_each_number():
    model, X, _ = data_of("gaussian_mixture")
    frame = odeco.intervals(model, X, replication=False).to_frame()
    assert len(frame) == 3 + 12 + 3
    assert set(frame["attribute"]) == {"weights_", "means_", "covariances_"}
    assert (frame["low"] <= frame["value"]).all()
    first = frame[(frame["attribute"] == "means_") & (frame["component"] == 1)]
    assert first["value"].tolist() == model.means_[1].tolist()


def test_class_table_is_what_users_of_latent_classes_expect():
    model, X, _ = data_of("product_mixture")
    found = odeco.intervals(model, X, replication=False)
    table = class_table(model, found)
    assert len(table) == 2 + 2 * (3 * 2 + 1 + 1 + 3)
    shares = table[table["column"] == ""]
    assert shares["estimate"].sum() == pytest.approx(1)
    assert (table["standard_error"] > 0).all()
    for _, answers in table[table["column"] == table["column"][2]].groupby("class"):
        assert answers["estimate"].sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="must be a fitted ProductMixture"):
        class_table(fitted_model("lda")[0], found)


# What cannot be done.


def test_bad_input_is_said():
    model, X, _ = data_of("gaussian_mixture")
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        odeco.intervals(model, X, level=95)
    with pytest.raises(ValueError, match="n_replicates must be at least 10, got 3"):
        odeco.intervals(model, X, n_replicates=3)
    with pytest.raises(ValueError, match="method must be one of"):
        odeco.intervals(model, X, method="jackknife")
    with pytest.raises(ValueError, match="X has 1 rows, and intervals need 10 or more"):
        odeco.intervals(model, X[:1])
    with pytest.raises(ValueError, match="X has 3 features"):
        odeco.intervals(model, X[:, :3])
    with pytest.raises(ValueError, match="can be read only once"):
        odeco.intervals(model, iter([X]))
    with pytest.raises(ValueError, match="checkpoints keep the sums of one fit, and intervals make many"):
        odeco.intervals(model, checkpointed(X, "folder"))
    with pytest.raises(ValueError, match="lengths says nothing to GaussianMixture"):
        odeco.intervals(model, X, lengths=[400])
    with pytest.raises(NotFittedError):
        odeco.intervals(odeco.GaussianMixture(3), X)
    with pytest.raises(ValueError, match="model must be one of"):
        odeco.intervals("model", X)


def test_bad_moments_are_said(spheres):
    model, rows = spheres
    parts = blocks_of_moments(model, rows, 4)
    with pytest.raises(ValueError, match="X has 4 parts, and intervals from moments need 10 or more"):
        odeco.intervals(model, parts)
    with pytest.raises(ValueError, match="part 1 holds moments of GaussianMixture, and the model is a LatentDirichlet"):
        odeco.intervals(fitted_model("lda")[0], parts)
    with pytest.raises(ValueError, match="needs a maximised likelihood"):
        odeco.intervals(model, rows, method="sandwich")


def test_batches_and_functions_are_the_rows(spheres):
    model, X, _ = data_of("gaussian_mixture")
    whole = odeco.intervals(model, X, replication=False)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for given in (np.array_split(X, 3), lambda: iter(np.array_split(X, 3)), da.from_array(X, chunks=(150, 4)), frame):
        assert np.allclose(odeco.intervals(model, given, replication=False).low["means_"], whole.low["means_"])


@pytest.mark.parametrize("method", ["sandwich", "replicates"])
def test_a_number_of_components_that_the_data_chose_is_that_of_the_intervals(method):
    rng = np.random.default_rng(0)
    X = 8.0 * np.eye(3)[rng.integers(3, size=300)] + rng.standard_normal((300, 3))
    model = odeco.GaussianMixture("auto", random_state=0).fit(X)
    found = odeco.intervals(model, X, method=method, n_replicates=10, random_state=0)
    assert model.n_components_ == 3
    assert found.low["means_"].shape == (3, 3)
    assert found.replicated.all()
