from __future__ import annotations

import pickle
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest

from odeco.decomposition.rank import noise_threshold
from odeco.exceptions import MomentWarning
from odeco.metrics import match_components
from odeco.models.ica.estimator import ICA

KURTOSIS = np.array([6.0, 3.0, -2.0, -1.2])  # exponential, Laplace, sign, uniform: in canonical order


def draw_sources(n, rng):
    return np.column_stack(
        [
            rng.exponential(size=n) - 1,
            rng.laplace(size=n) / np.sqrt(2),
            rng.choice([-1.0, 1.0], n),
            rng.uniform(-np.sqrt(3), np.sqrt(3), n),
        ]
    )


def draw(n=30_000, d=4, noise=0.0, seed=0, dtype=np.float64):
    """Samples, mixing (d, 4) well conditioned, sources; `noise` a standard deviation or a (d, d) factor."""
    rng = np.random.default_rng(seed)
    mixing = np.linalg.qr(rng.standard_normal((d, 4)))[0] + 0.3 * rng.standard_normal((d, 4))
    sources = draw_sources(n, rng)
    gaussian = rng.standard_normal((n, d))
    added = noise * gaussian if np.ndim(noise) == 0 else gaussian @ np.asarray(noise).T
    return (sources @ mixing.T + added + np.arange(d)).astype(dtype), mixing, sources


def crosstalk(components, mixing):
    """Largest entry of components @ mixing off the best permutation, rows scaled to one."""
    gain = np.abs(components @ mixing)
    gain = gain / gain.max(axis=1, keepdims=True)
    columns = gain.argmax(axis=1)
    assert sorted(columns) == list(range(len(columns)))
    gain[np.arange(len(columns)), columns] = 0.0
    return float(gain.max())


def mixing_error(found, truth):
    """Largest distance of unit columns."""
    unit = [m / np.linalg.norm(m, axis=0) for m in (found, truth)]
    return match_components(*unit, up_to_sign=True).largest


# Crosstalk of 4 sources from 3e4 samples: entries have a standard deviation of sqrt(v / n), v at most 6 for cumulants
# and 2 for the likelihood (docs/ica.md); five of them are allowed.
CUMULANT_ERROR = 5 * np.sqrt(6 / 30_000)
LIKELIHOOD_ERROR = 5 * np.sqrt(2 / 30_000)


@pytest.mark.parametrize(
    ("refine", "bound"),
    [
        (None, CUMULANT_ERROR),
        ("least-squares", CUMULANT_ERROR),
        ("likelihood", LIKELIHOOD_ERROR),
        ("auto", LIKELIHOOD_ERROR),
    ],
)
def test_without_noise_every_refinement_separates(refine, bound):
    x, mixing, sources = draw()
    ica = ICA(refine=refine, random_state=0).fit(x)
    assert crosstalk(ica.components_, mixing) < bound
    np.testing.assert_allclose(ica.kurtosis_, KURTOSIS, atol=0.7)  # sampling: sd 0.3 for the exponential's
    # In canonical order and of unit variance: columns compare one by one, no matching needed.
    correlation = np.corrcoef(ica.transform(x).T, sources.T)[:4, 4:]
    assert np.all(np.abs(np.diag(correlation)) > 0.99)
    assert np.abs(np.diag(np.roll(correlation, 1, axis=0))).max() < 0.5  # shuffled: must not pass
    np.testing.assert_allclose(ica.mixing_, mixing * np.sign(np.diag(correlation)), atol=0.1)


def test_under_noise_cumulants_separate_where_the_likelihood_alone_does_not():
    factor = 0.5 * np.random.default_rng(9).standard_normal((4, 4))
    x, mixing, _ = draw(n=100_000, noise=factor)
    free, biased = ICA(refine="least-squares", random_state=0).fit(x), ICA(refine="likelihood", random_state=0).fit(x)
    auto = ICA(random_state=0).fit(x)
    # Noise of half the sources' variance enlarges the sampling error about twofold.
    assert crosstalk(free.components_, mixing) < 2 * 5 * np.sqrt(6 / 100_000)
    assert crosstalk(auto.components_, mixing) < 2 * 5 * np.sqrt(6 / 100_000)
    assert crosstalk(biased.components_, mixing) > 3 * crosstalk(free.components_, mixing)
    assert auto.diagnostics_.details["conventional"]
    assert auto.diagnostics_.details["noise_statistic"] > 2
    assert auto.diagnostics_.details["likelihood_share"].mean() < 0.5


def test_negligible_noise_is_recognized_and_reported():
    x, _, _ = draw()
    auto = ICA(random_state=0).fit(x)
    assert "noise negligible" in auto.diagnostics_.method
    np.testing.assert_array_equal(auto.diagnostics_.details["likelihood_share"], 1.0)
    np.testing.assert_allclose(auto.noise_covariance_, 0, atol=1e-6)  # rounding of float32 rows in the polish


def test_isotropic_noise_is_measured_and_removed():
    x, mixing, _ = draw(d=8, noise=0.4)
    ica = ICA(4, random_state=0).fit(x)
    details = ica.diagnostics_.details
    assert details["noise_model"] == "isotropic"
    assert not details["conventional"]
    # The variance of a mean of 4 n squares: relative standard deviation sqrt(2 / (4 n)) = 0.4 %.
    assert details["noise_variance"] == pytest.approx(0.16, rel=0.02)
    np.testing.assert_allclose(ica.noise_covariance_, details["noise_variance"] * np.eye(8))
    np.testing.assert_allclose(ica.kurtosis_, KURTOSIS, atol=0.7)
    assert mixing_error(ica.mixing_, mixing) < 2 * CUMULANT_ERROR
    assert ica.diagnostics_.suggested_components == 4


def test_anisotropic_noise_with_more_channels_than_sources():
    factor = np.diag([1.5, 0.1, 0.1, 0.8, 0.1, 0.1, 1.0, 0.3])
    x, mixing, _ = draw(n=100_000, d=8, noise=factor)
    ica = ICA(4, random_state=0).fit(x)
    assert ica.diagnostics_.details["noise_model"] == "general"
    assert mixing_error(ica.mixing_, mixing) < 0.1
    principal = np.linalg.eigh(np.cov(x.T))[1][:, ::-1][:, :4]
    outside = mixing - principal @ (principal.T @ mixing)
    assert np.linalg.norm(outside) / np.linalg.norm(mixing) > 0.2  # the principal components miss the sources' space


def test_rotating_the_noise_changes_the_cumulant_fit_within_sampling_error_only():
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((4, 4)))[0]
    factor = np.diag([0.8, 0.1, 0.4, 0.2])
    fits = []
    for noise in (factor, rotation @ factor):
        x, mixing, _ = draw(n=100_000, noise=noise)
        fits.append(ICA(refine="least-squares", random_state=0).fit(x))
        assert mixing_error(fits[-1].mixing_, mixing) < 0.05
        # Four standard errors sqrt(E s^8 / n) of the exponential source, the largest: E s^8 = 14,833.
        np.testing.assert_allclose(fits[-1].kurtosis_, KURTOSIS, atol=4 * np.sqrt(14_833 / 100_000))
    assert mixing_error(fits[0].mixing_, fits[1].mixing_) < 0.05


def test_algebra_of_the_attributes():
    x, _, _ = draw(noise=0.3)
    ica = ICA(random_state=0).fit(x)
    np.testing.assert_allclose(ica.components_, np.linalg.pinv(ica.mixing_), atol=1e-12)
    np.testing.assert_allclose(ica.covariance_, np.cov(x.T, bias=True), rtol=1e-9)
    np.testing.assert_allclose(ica.mixing_ @ ica.mixing_.T + ica.noise_covariance_, ica.covariance_, atol=1e-12)
    assert np.linalg.eigvalsh(ica.noise_covariance_)[0] > -1e-12
    assert np.all(np.diff(np.abs(ica.kurtosis_)) <= 0)
    largest = np.abs(ica.mixing_).argmax(axis=0)
    assert np.all(ica.mixing_[largest, range(4)] > 0)
    white = (x - ica.mean_) @ ica.whitening_.T
    np.testing.assert_allclose(white.T @ white / len(x), np.eye(4), atol=1e-6)
    np.testing.assert_allclose(ica.inverse_transform(ica.transform(x)), x, atol=1e-10)  # d = k: nothing is lost
    np.testing.assert_array_equal(ica.get_feature_names_out(), ["ica0", "ica1", "ica2", "ica3"])
    again = pickle.loads(pickle.dumps(ica))
    np.testing.assert_array_equal(again.transform(x[:5]), ica.transform(x[:5]))


def test_the_sinr_estimate_is_nearer_to_the_sources_than_the_inverse():
    x, _, sources = draw(noise=0.6)
    inverse = ICA(random_state=0).fit(x)
    best = ICA(estimate="sinr", random_state=0).fit(x)
    np.testing.assert_allclose(best.transform(x), (x - best.mean_) @ best.sinr_components_.T)

    def correlation(outputs):
        return np.abs(np.diag(np.corrcoef(outputs.T, sources.T)[:4, 4:]))

    assert np.all(correlation(best.transform(x)) >= correlation(inverse.transform(x)) - 1e-3)
    assert correlation(best.transform(x)).mean() > correlation(inverse.transform(x)).mean() + 0.005


def test_partial_fit_does_not_depend_on_the_chunks_and_is_the_moment_estimate():
    x, mixing, _ = draw(n=6000, noise=0.2)
    fits = []
    for size in (6000, 500, 77):
        ica = ICA(refine="least-squares", random_state=0)
        for low in range(0, len(x), size):
            ica.partial_fit(x[low : low + size])
        fits.append(ica)
    for ica in fits[1:]:  # sums in another order; the iteration stops at 1e-4 along the same path
        np.testing.assert_allclose(ica.mixing_, fits[0].mixing_, atol=1e-8)
    whole = ICA(refine="least-squares", random_state=0).fit(x)
    np.testing.assert_allclose(fits[0].mixing_, whole.mixing_, atol=1e-6)
    assert crosstalk(fits[0].components_, mixing) < 2 * 5 * np.sqrt(6 / 6000)
    fits[0].fit(x[:3000])  # fit starts anew
    np.testing.assert_allclose(fits[0].mean_, x[:3000].mean(axis=0))


def test_partial_fit_with_many_channels_works_in_principal_directions():
    x, mixing, _ = draw(n=8000, d=50, noise=0.1)
    ica = ICA(4, random_state=0)
    for part in np.array_split(x, 7):
        ica.partial_fit(part)
    assert ica.diagnostics_.details["noise_model"] == "isotropic"
    assert mixing_error(ica.mixing_, mixing) < 0.15


def test_sources_of_batches_are_the_whole():
    x, _, _ = draw(n=25_000, noise=0.2)
    whole = ICA(random_state=0).fit(x)
    listed = ICA(random_state=0).fit([x[:7000], x[7000:7100], x[7100:]])
    called = ICA(random_state=0).fit(lambda: (x[low : low + 999] for low in range(0, len(x), 999)))
    for other in (listed, called):
        np.testing.assert_allclose(other.mixing_, whole.mixing_, atol=1e-5)  # single precision products, other blocks
        assert other.n_features_in_ == 4
    with pytest.raises(ValueError, match="2 passes"):
        ICA().fit(iter([x]))


def test_weights_are_repetitions():
    x, _, _ = draw(n=3000, noise=0.2)
    weights = np.random.default_rng(1).integers(0, 4, len(x))
    weighted = ICA(random_state=0).fit(x, sample_weight=weights)
    repeated = ICA(random_state=0).fit(np.repeat(x, weights, axis=0))
    np.testing.assert_allclose(weighted.mixing_, repeated.mixing_, atol=1e-8)
    streamed = ICA(random_state=0, refine=None).partial_fit(x, sample_weight=weights)
    np.testing.assert_allclose(streamed.mean_, repeated.mean_, atol=1e-12)


def test_float32_needs_no_copy_in_double_precision():
    x, mixing, _ = draw(n=200_000, d=16, noise=0.1, dtype=np.float32)
    ICA(4, random_state=0).fit(x[:1000])  # imports
    tracemalloc.start()
    ica = ICA(4, random_state=0).fit(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes  # of which the whitened samples take a quarter
    assert ica.transform(x[:3]).dtype == np.float32
    assert mixing_error(ica.mixing_, mixing) < 0.05


def test_many_components_are_fitted_without_the_tensor():
    rng = np.random.default_rng(0)
    k = 30
    sources = rng.laplace(size=(20_000, k)) / np.sqrt(2)
    mixing = np.linalg.qr(rng.standard_normal((k, k)))[0]
    ica = ICA(random_state=0).fit(sources @ mixing.T)
    assert np.isnan(ica.diagnostics_.residual)  # never formed
    assert mixing_error(ica.mixing_, mixing) < 0.15  # sqrt(k v / n) = 0.06 per column
    assert ica.diagnostics_.suggested_components == k  # a white covariance has nothing to say of the number


def test_many_components_are_whitened_by_a_slice_without_the_tensor():
    rng = np.random.default_rng(1)
    k = 26
    sources = np.where(
        np.arange(k) % 2, rng.laplace(size=(10_000, k)) / np.sqrt(2), rng.choice([-1.0, 1.0], (10_000, k))
    )
    mixing = np.linalg.qr(rng.standard_normal((k, k)))[0]
    ica = ICA(refine=None, random_state=0).fit(sources @ mixing.T)
    assert np.isnan(ica.diagnostics_.residual)  # never formed
    assert "whitened by a slice" in ica.diagnostics_.method
    assert mixing_error(ica.mixing_, mixing) < 0.25  # sqrt(k v / n) = 0.1 per column, and a half more by the slice
    np.testing.assert_array_equal(np.sign(ica.kurtosis_), [1.0] * 13 + [-1.0] * 13)


def test_same_seed_same_result():
    x, _, _ = draw(n=2000, noise=0.3)
    first, second = (ICA(random_state=3).fit(x) for _ in range(2))
    np.testing.assert_array_equal(first.mixing_, second.mixing_)


def test_samples_have_the_fitted_moments():
    x, _, _ = draw(noise=0.2)
    ica = ICA(random_state=0).fit(x)
    drawn, sources = ica.sample(100_000)
    np.testing.assert_allclose(np.cov(drawn.T, bias=True), ica.covariance_, atol=0.05)
    np.testing.assert_allclose((sources**4).mean(axis=0) - 3, np.maximum(ica.kurtosis_, -2), atol=0.5)


# Bad input


def test_gaussian_data_are_called_gaussian():
    x = np.random.default_rng(0).standard_normal((5000, 4))
    with pytest.warns(MomentWarning, match="look Gaussian"):
        ica = ICA(random_state=0).fit(x)
    assert not ica.diagnostics_.details["identifiable"].any()
    assert ica.diagnostics_.suggested_components == 0


def test_a_gaussian_source_among_others_is_reported():
    x, mixing, sources = draw()
    sources[:, 1:3] = np.random.default_rng(1).standard_normal((len(x), 2))
    with pytest.warns(MomentWarning, match="2 of 4 sources"):
        ica = ICA(random_state=0).fit(sources @ mixing.T)
    np.testing.assert_array_equal(ica.diagnostics_.details["identifiable"], [True, True, False, False])
    assert ica.diagnostics_.suggested_components == 2
    assert mixing_error(ica.mixing_[:, :2], mixing[:, [0, 3]]) < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_the_kurtosis_floor_is_a_little_above_what_gaussian_data_show(seed):
    """The largest sample kurtosis of any direction is noise; the floor must cover it, and not by far."""
    x = np.random.default_rng(seed).standard_normal((20_000, 3))
    with pytest.warns(MomentWarning, match="look Gaussian"):
        details = ICA(random_state=0).fit(x).diagnostics_.details
    directions = np.random.default_rng(0).standard_normal((3, 2000))
    squares = ((x - x.mean(axis=0)) @ directions) ** 2
    largest = np.abs((squares**2).mean(axis=0) / squares.mean(axis=0) ** 2 - 3).max()
    assert largest < details["kurtosis_floor"] < 3 * largest  # seen: 1.4 to 2.2
    # The standard deviation of one sample kurtosis is sqrt(24 / n), and the largest grows with the root of d.
    assert details["kurtosis_floor"] == pytest.approx(noise_threshold(np.sqrt(24 / 20_000), 3, 4))


@pytest.mark.parametrize(("noise", "identified"), [(0.3, True), (2.0, False)])
def test_noise_of_the_outputs_counts_against_a_source(noise, identified):
    """Uniform sources have a kurtosis of -1.2; outputs of variance 1 + noise^2 show it divided by its square."""
    rng = np.random.default_rng(0)
    mixing = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    x = rng.uniform(-np.sqrt(3), np.sqrt(3), (20_000, 2)) @ mixing.T + noise * rng.standard_normal((20_000, 6))
    with nullcontext() if identified else pytest.warns(MomentWarning, match="look Gaussian"):
        found = ICA(2, random_state=0).fit(x)
    details = found.diagnostics_.details
    assert (np.abs(found.kurtosis_) > details["kurtosis_floor"]).all()
    assert details["identifiable"].tolist() == [identified] * 2


@pytest.mark.parametrize("refine", [None, "least-squares", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_more_sources_than_there_are_fewer_than_channels(seed, refine):
    rng = np.random.default_rng(seed)
    n, mixing = 20_000, rng.standard_normal((5, 2))
    sources = np.column_stack([rng.laplace(size=n) / np.sqrt(2), rng.uniform(-np.sqrt(3), np.sqrt(3), n)])
    x = sources @ mixing.T + 0.3 * rng.standard_normal((n, 5))
    # Without refinement one eigenvalue beyond n_components is no evidence of isotropic noise: the cumulant tells.
    reason = "2 of 4 sources" if refine is None else "n_components=4, but only 2 eigenvalues of the covariance exceed"
    with pytest.warns(MomentWarning, match=reason):
        ica = ICA(4, refine=refine, random_state=0).fit(x)
    np.testing.assert_array_equal(ica.diagnostics_.details["identifiable"], [True, True, False, False])
    assert mixing_error(ica.mixing_[:, :2], mixing) < 0.1
    # Sampling (sd 0.15 and less), and the noise's share of at most a tenth in the outputs, by convention the sources'.
    np.testing.assert_allclose(ica.kurtosis_[:2], [3.0, -1.2], rtol=0.25)
    assert np.abs(ica.kurtosis_[2:]).max() < ica.diagnostics_.details["kurtosis_floor"]
    assert ica.mixing_.shape == (5, 4)
    assert np.linalg.eigvalsh(ica.covariance_ - ica.mixing_ @ ica.mixing_.T)[0] > -1e-9


def three_in_eight(n, noise, seed=1):
    """Exponential, Laplace and uniform sources in eight channels, as they are drawn with unit variances."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((8, 3))
    sources = draw_sources(n, rng)[:, [0, 1, 3]]
    return sources @ mixing.T + noise * rng.standard_normal((n, 8)), mixing


@pytest.mark.parametrize("asked", [4, 6])
@pytest.mark.parametrize(("n", "noise"), [(1000, 0.1), (20_000, 0.1), (20_000, 0.5)])
def test_sources_are_those_of_the_right_number_whatever_number_was_asked_for(n, noise, asked):
    x, mixing = three_in_eight(n, noise)
    right = ICA(3, random_state=0).fit(x)
    with pytest.warns(MomentWarning, match=f"n_components={asked}, but only 3 eigenvalues of the covariance exceed"):
        ica = ICA(asked, random_state=0).fit(x)
    np.testing.assert_allclose(ica.mixing_[:, :3], right.mixing_, atol=1e-4)  # products in single precision
    np.testing.assert_allclose(ica.kurtosis_[:3], right.kurtosis_, rtol=1e-3)
    details = ica.diagnostics_.details
    assert details["identifiable"].tolist() == [True] * 3 + [False] * (asked - 3)
    assert np.abs(ica.kurtosis_[3:]).max() < details["kurtosis_floor"]
    assert ica.diagnostics_.suggested_components == 3
    assert details["noise_variance"] == pytest.approx(noise**2, rel=5 * np.sqrt(2 / (5 * n)))
    # What fills up is noise, counted once, orthogonal to all else.
    np.testing.assert_allclose(ica.mixing_[:, 3:].T @ ica.mixing_[:, :3], 0, atol=1e-9)
    filled = ica.mixing_[:, 3:] / np.linalg.norm(ica.mixing_[:, 3:], axis=0)
    np.testing.assert_allclose(ica.noise_covariance_ @ filled, 0, atol=1e-9)
    assert np.trace(ica.noise_covariance_) == pytest.approx((8 - asked + 3) * details["noise_variance"])
    assert mixing_error(ica.mixing_[:, :3], mixing) < 3 * 5 * np.sqrt(2 / n)  # noise enlarges it up to threefold


def test_sources_of_equal_variances_are_not_called_noise():
    """Four of five eigenvalues are equal: a floor, if their directions were Gaussian, and they are not."""
    sources = np.column_stack([draw_sources(20_000, np.random.default_rng(seed)) for seed in (0, 1)])[:, :5]
    ica = ICA(4, random_state=0).fit((sources - sources.mean(axis=0)) * [3.0, 1.0, 1.0, 1.0, 1.0])
    assert ica.diagnostics_.details["identifiable"].all()
    found = np.abs(ica.mixing_ / np.linalg.norm(ica.mixing_, axis=0))
    assert found.max(axis=0).min() > 0.98


def test_the_suggested_number_is_what_the_covariance_shows_or_none():
    x, _ = three_in_eight(20_000, 0.3)
    assert ICA(2, random_state=0).fit(x).diagnostics_.suggested_components == 3  # more than were asked for
    with pytest.warns(MomentWarning, match="not identified"):
        every = ICA(random_state=0).fit(x)
    assert every.diagnostics_.suggested_components == 3  # of eight, each of which was taken for a source
    uneven = x + np.random.default_rng(5).standard_normal(x.shape) * np.linspace(0.3, 2, 8)
    assert ICA(2, random_state=0).fit(uneven).diagnostics_.suggested_components is None  # nothing tells


def test_isotropic_noise_is_not_divided_out_of_sources_that_are_not_there():
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(20_000, 2)) @ rng.standard_normal((2, 5)) + 0.3 * rng.standard_normal((20_000, 5))
    with pytest.raises(ValueError, match="noise='isotropic' and n_components=4, but only 2 eigenvalues"):
        ICA(4, noise="isotropic").fit(x)
    assert ICA(2, noise="isotropic", random_state=0).fit(x).diagnostics_.details["identifiable"].all()


def test_weak_sources_do_not_spoil_the_others_without_refinement():
    """A Gaussian source has no part in any slice of the cumulant: only what the others span is whitened."""
    x, mixing, sources = draw()
    sources[:, 1:3] = np.random.default_rng(1).standard_normal((len(x), 2))
    with pytest.warns(MomentWarning, match="2 of 4 sources"):
        ica = ICA(refine=None, random_state=0).fit(sources @ mixing.T)
    np.testing.assert_array_equal(ica.diagnostics_.details["identifiable"], [True, True, False, False])
    assert mixing_error(ica.mixing_[:, :2], mixing[:, [0, 3]]) < 0.1
    assert "whitened by a slice" in ica.diagnostics_.method


@pytest.mark.parametrize("kind", ["constant", "duplicated", "average reference"])
def test_rank_deficient_channels_are_left_out(kind):
    x, mixing, _ = draw(n=10_000)
    if kind == "constant":
        x, mixing = np.column_stack([x, np.full(len(x), 7.0)]), np.vstack([mixing, np.zeros(4)])
    elif kind == "duplicated":
        x, mixing = np.column_stack([x, x[:, 0]]), np.vstack([mixing, mixing[0]])
    else:
        x, mixing = np.column_stack([x, x[:, 0] - x[:, 1]]), np.vstack([mixing, mixing[0] - mixing[1]])
        x, mixing = x - x.mean(axis=1, keepdims=True), mixing - mixing.mean(axis=0)
    ica = ICA(random_state=0).fit(x)
    assert ica.mixing_.shape == (5, 4)
    assert mixing_error(ica.mixing_, mixing) < 0.1
    with pytest.raises(ValueError, match="rank 4"):
        ICA(5).fit(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_channels_of_very_different_units_are_all_kept(dtype):
    x, mixing, _ = draw(n=20_000)
    units = np.array([1e4, 1.0, 1e-3, 1e-1])
    ica = ICA(random_state=0).fit(((x - x.mean(axis=0)) * units).astype(dtype))
    assert ica.mixing_.shape == (4, 4)
    assert mixing_error(ica.mixing_ / units[:, None], mixing) < 0.1


def test_an_outlier_is_named():
    x, _, _ = draw(n=5000)
    x[1234] = 1e4
    with pytest.warns(MomentWarning, match="sample 1234 alone"):
        ICA(random_state=0).fit(x)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 9}, "rank"),
        ({"noise": "white"}, "noise"),
        ({"noise": "isotropic"}, "more channels than sources"),
        ({"refine": "em"}, "refine"),
        ({"estimate": "best"}, "estimate"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
    ],
)
def test_bad_parameters_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        ICA(**options).fit(draw(n=500)[0])


def test_bad_data_are_named():
    x, _, _ = draw(n=100)
    with pytest.raises(ValueError, match="no variance"):
        ICA().fit(np.ones((50, 3)))
    with pytest.raises(ValueError, match="NaN"):
        ICA().fit(np.where(np.arange(4) == 2, np.nan, x))
    with pytest.raises(ValueError, match="NaN or infinity in 2 rows"):
        ICA().fit([x, np.array([[0, 0, 0, np.nan], [0, 0, 0, np.inf]])])
    with pytest.raises(ValueError, match="n_samples=5 is not larger than n_components=6"):
        ICA(6).fit(np.random.default_rng(0).standard_normal((5, 8)))
    with pytest.raises(ValueError, match="weight"):
        ICA().fit(x, sample_weight=np.zeros(100))
    with pytest.raises(ValueError, match="empty"):
        ICA().fit(lambda: iter([]))


@pytest.mark.filterwarnings("ignore:no source:odeco.exceptions.MomentWarning")
def test_fewer_samples_than_channels_are_said():
    with pytest.warns(MomentWarning, match="n_samples=6 is not larger than n_features=8"):
        ICA().fit(np.random.default_rng(0).laplace(size=(6, 8)))


@pytest.mark.parametrize("n", [3000, 20_000])
def test_signals_are_told_from_independent_samples(n):
    """Neighbours that resemble each other: the polish that does not rely on independent samples is taken."""
    _, mixing, sources = draw(n=n + 1)
    smooth = (sources[1:] + sources[:-1]) / np.sqrt(2)
    assert "likelihood" in ICA(random_state=0).fit(smooth @ mixing.T).diagnostics_.method
    assert "scores" in ICA(random_state=0).fit(sources @ mixing.T).diagnostics_.method


@pytest.mark.parametrize("refine", ["auto", "likelihood"])
@pytest.mark.parametrize("d", [3, 6])
def test_signals_are_told_apart_by_the_times_at_which_they_are_loud(d, refine):
    """Gaussian whenever they are loud, and often together: their loudness alone differs."""
    rng = np.random.default_rng(0)
    n, mixing = 20_000, rng.standard_normal((d, 3))
    loudness = np.repeat(rng.gamma(0.5, size=(n // 200, 3)) * rng.gamma(1.0, size=(n // 200, 1)), 200, axis=0)
    x = loudness * rng.standard_normal((n, 3)) @ mixing.T
    x = x + 1e-3 * rng.standard_normal((n, d)) if d > 3 else x
    ica = ICA(3, refine=refine, random_state=0).fit(x)
    assert ica.diagnostics_.method.endswith("covariances of stretches")
    plain = ICA(3, refine="least-squares", random_state=0).fit(x)
    assert crosstalk(ica.components_, mixing) < min(5 / np.sqrt(n), 0.5 * crosstalk(plain.components_, mixing))


def test_sources_that_are_loud_together_are_separated_by_the_orthogonal_fit():
    """A common volatility: uncorrelated, not independent, so that the fourth cumulant has terms that fit no model."""
    rng = np.random.default_rng(0)
    _, mixing, _ = draw(n=10)
    volatility = np.exp(0.5 * rng.standard_normal((20_000, 1)))
    sources = rng.laplace(size=(20_000, 4)) * volatility
    ica = ICA(random_state=0).fit(sources @ mixing.T)
    assert ica.diagnostics_.details["magnitude_correlation"] > 0.15
    assert "likelihood" in ica.diagnostics_.method
    assert crosstalk(ica.components_, mixing) < 0.1
    x, _, _ = draw(n=20_000, noise=0.3)
    assert ICA(random_state=0).fit(x).diagnostics_.details["magnitude_correlation"] < 0.05


@pytest.mark.parametrize("k", [None, 2])
def test_an_outlier_beyond_all_scales_is_named(k):
    x = np.random.default_rng(0).standard_normal((100, 4))
    x[3, 2] = 1e37
    with pytest.raises(ValueError, match="channels of X differ too much in scale.*remove outliers"):
        ICA(k, random_state=0).fit(x)
