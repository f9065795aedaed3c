"""What is refused for its scale, at every door, and that nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.sources.scale import LARGEST, SMALLEST, check_columns, check_magnitude

pytestmark = pytest.mark.filterwarnings("ignore::odeco.MomentWarning")

HIDDEN = np.random.default_rng(1).integers(2, size=150)
# Whole multiples of 2^-20: offsets up to 2^30 change no digit of them.
ROWS = np.round((np.random.default_rng(0).laplace(size=(150, 4)) + 6 * HIDDEN[:, None] * [1, 0, 1, 0]) * 2**20) / 2**20

ESTIMATORS = {
    **{f"mixture {kind}": odeco.GaussianMixture(2, kind, random_state=0)
       for kind in ("spherical", "tied_spherical", "diag", "full", "tied")},
    "one component": odeco.GaussianMixture(1, random_state=0),
    "product": odeco.ProductMixture(2, family="gaussian", random_state=0),
    "views": odeco.MultiViewMixture(2, random_state=0),
    **{f"chain {kind}": odeco.GaussianHMM(2, covariance_type=kind, random_state=0)
       for kind in ("spherical", "diag", "full", "tied")},
    "sources": odeco.ICA(2, refine=None, random_state=0),
}  # fmt: skip
EVERY = pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)
FITS = pytest.mark.parametrize("fit", ["fit", "partial_fit"])


def data_of(model, rows):
    return [rows, rows[:, ::-1].copy(), rows[:, :3].copy()] if isinstance(model, odeco.MultiViewMixture) else rows


def new(model):
    return type(model)(**model.get_params())


@EVERY
@FITS
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-50, 1e50, 1e155, 1e300])
def test_powers_out_of_range_are_refused_with_the_cure(model, fit, scale):
    with pytest.raises(ValueError, match="out of range: divide .* by about"):
        getattr(new(model), fit)(data_of(model, ROWS[:50] * scale))


@EVERY
@FITS
@pytest.mark.parametrize("exponent", [-120, 120])
def test_scales_within_the_range_only_scale_the_means(model, fit, exponent):
    plain = getattr(new(model), fit)(data_of(model, ROWS[:100]))
    scaled = getattr(new(model), fit)(data_of(model, np.ldexp(ROWS[:100], exponent)))
    name = "mean_" if isinstance(model, odeco.ICA) else "means_"
    for mean, image in zip(getattr(plain, name), getattr(scaled, name), strict=True):
        # Powers of two change no digit, and tolerances are relative: what is left is the order of some sums.
        np.testing.assert_allclose(np.ldexp(image, -exponent), mean, rtol=1e-6, atol=1e-6)


@EVERY
@FITS
def test_an_offset_costs_no_digits_but_its_own(model, fit):
    plain = getattr(new(model), fit)(data_of(model, ROWS))
    moved = getattr(new(model), fit)(data_of(model, ROWS + 2.0**30))
    name = "mean_" if isinstance(model, odeco.ICA) else "means_"
    for mean, image in zip(getattr(plain, name), getattr(moved, name), strict=True):
        np.testing.assert_allclose(image - 2.0**30, mean, atol=1e-5)  # numbers about 2^30 are 1e-7 apart


@pytest.mark.parametrize("model", [m for m in ESTIMATORS.values() if hasattr(m, "score")], ids=lambda m: str(m)[:60])
def test_new_rows_too_large_are_refused_and_small_ones_are_not(model):
    fitted = new(model).fit(data_of(model, ROWS[:50]))
    with pytest.raises(ValueError, match="out of range: divide X by"):
        fitted.score(data_of(model, ROWS[:2] * 1e200))
    assert np.isfinite(fitted.score(data_of(model, ROWS[:2] * 1e-200)))


def test_single_columns_are_named():
    with pytest.raises(ValueError, match=r"X has values of about 3e-50 in columns \[1, 2\].*divide X by .* there"):
        check_columns(np.array([0.0, 1e-50, 3e-50, 1.0]))
    with pytest.raises(ValueError, match="column 'x3' has values of about"):
        odeco.ProductMixture(2, family="gaussian").fit(ROWS * [1, 1, 1, 1e-60])
    with pytest.raises(ValueError, match="view 2 has values of about"):
        odeco.MultiViewMixture(2).fit([ROWS, ROWS, sparse.csr_array(ROWS * 1e60)])


def test_the_ends_of_the_range_belong_to_it():
    ends = np.array([LARGEST, -LARGEST])
    assert check_magnitude(ends) is ends
    check_magnitude(np.array([[np.nan, 1.0]]))  # missing, for those who allow it
    check_magnitude(np.full(3, 3e38, dtype=np.float32))
    check_columns(np.array([SMALLEST]))
    with pytest.raises(ValueError, match="divide X by about"):
        check_magnitude(np.array([np.nan, 2 * LARGEST]))


@pytest.mark.parametrize("size", [1e20, 1e-20])
def test_counts_that_are_none_are_refused(size):
    with pytest.raises(ValueError, match=r"the largest count in X is .*scale X"):
        odeco.LatentDirichletAllocation(2).fit(size * np.ones((5, 3)))
