"""Appendix C: the stopping condition of Algorithm 2 accepts what is close to a strong v_i, and nothing else."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest

import odeco
from odeco.decomposition import StatusCode
from odeco.decomposition.stopping import power_method_stopping
from odeco.simulate import odeco_tensor, symmetric_noise
from odeco.tensors import ExplicitTensor, rank_one_sum
from tests.cases import CLEAN, case_id
from tests.oracles.robust_power import algorithm_2, power_updates, stopping_condition

ORDER_3 = [case for case in CLEAN if case.order == 3 and case.n <= 20]


class Dealt:
    """A generator that deals the given starts, then the last one again and again, and counts."""

    def __init__(self, *starts):
        self.starts = [np.asarray(start, dtype=float) for start in starts]
        self.dealt = 0

    def standard_normal(self, shape):
        columns = [self.starts[min(self.dealt + i, len(self.starts) - 1)] for i in range(shape[1])]
        self.dealt += shape[1]
        return np.column_stack(columns)


def accepts(tensor, theta, r):
    """Whether the first call of Algorithm 2, of r, accepts the one start theta after N = 1 update."""
    found = power_method_stopping(ExplicitTensor(tensor), r, Dealt(theta), n_iter=1, max_restarts=1)
    return "first: number 0" not in found.status.message


@pytest.mark.parametrize("case", ORDER_3, ids=case_id)
def test_strong_eigenvectors_of_clean_tensors_satisfy_the_condition(case):
    """The second half of the condition always holds at v_i; the first asks for lambda_i >= rms(lambda) / 2."""
    sample = case.draw()
    level = np.sqrt(np.mean(sample.eigenvalues**2)) / 2
    for value, vector in zip(sample.eigenvalues, sample.eigenvectors.T, strict=True):
        assert accepts(sample.tensor, vector, case.rank) == (value > level)
        assert stopping_condition(sample.tensor, vector, case.rank) == (value > level)


@pytest.mark.parametrize("case", [case for case in ORDER_3 if case.rank > 1], ids=case_id)
def test_spurious_eigenvectors_are_refused(case):
    """At sum over S of v_i / lambda_i the slice is lambda times a projection of rank |S|: sqrt(|S|) >= 1.41 > 1.05."""
    sample = case.draw()
    for size in (2, 3):
        for subset in list(combinations(range(case.rank), size))[:6]:
            chosen = list(subset)
            vector = sample.eigenvectors[:, chosen] @ (1 / sample.eigenvalues[chosen])
            vector /= np.linalg.norm(vector)
            # A fixed point of the update: the start is what the condition sees.
            assert np.allclose(power_updates(sample.tensor, vector, 1), vector, atol=1e-12)
            assert not accepts(sample.tensor, vector, case.rank)
            assert not stopping_condition(sample.tensor, vector, case.rank)


def test_the_constant_is_that_of_appendix_c():
    """1 / (2 sqrt(r)) accepts 0.6 beside 1, 1 (rms 0.887); the 1 / sqrt(2 r) of section 5.2 would refuse it."""
    values = np.array([1.0, 1.0, 0.6])
    tensor = rank_one_sum(values, np.eye(3))
    assert np.linalg.norm(values) / np.sqrt(2 * 3) > 0.6 > np.linalg.norm(values) / (2 * np.sqrt(3))
    assert accepts(tensor, np.eye(3)[2], 3)
    weaker = rank_one_sum([1.0, 1.0, 0.4], np.eye(3))  # rms 0.849
    assert not accepts(weaker, np.eye(3)[2], 3)


@pytest.mark.parametrize(("angle", "accepted"), [(0.19, True), (0.20, False)])
def test_the_slice_may_exceed_the_value_by_one_twentieth(angle, accepted):
    """At (cos, sin) of two equal components the slice has norm 1 and the value is cos^3 + sin^3: 1 / 1.05 at 0.1943."""
    end = np.array([np.cos(angle), np.sin(angle)])
    tensor = rank_one_sum([1.0, 1.0], np.eye(2))
    assert (1.05 * np.sum(end**3) >= 1) == accepted
    assert accepts(tensor, np.sqrt(end), 2) == accepted  # the update squares coordinates


def test_refused_starts_are_followed_by_others_until_one_is_accepted():
    sample = odeco_tensor(6, 2, random_state=0)
    first, second = sample.eigenvectors.T
    starts = [first + second, first + second, first + second, second, first]
    dealt = Dealt(*starts)
    found = power_method_stopping(ExplicitTensor(sample.tensor), 2, dealt, n_iter=1, max_restarts=10)
    assert found.status.ok
    assert np.allclose(found.vectors, np.column_stack([second, first]), atol=1e-12)
    # Batches of 1, 2 and 4 starts, the fourth start in the third of them; then one start for what is left.
    assert dealt.dealt == 8
    capped = power_method_stopping(ExplicitTensor(sample.tensor), 2, Dealt(*starts), n_iter=1, max_restarts=3)
    assert capped.status.code is StatusCode.RESTARTS_EXHAUSTED
    assert "within 3 restarts for 2 components (first: number 0)" in capped.status.message


def batches(rng, n):
    """The starts of one component in the order in which the library draws them."""
    size = 1
    while True:
        draws = rng.standard_normal((n, size))
        yield from (draws / np.linalg.norm(draws, axis=0)).T
        size = min(2 * size, 32)


@pytest.mark.parametrize(("n_iter", "share"), [(2, 0.1), (2, 0.3), (30, 0.3)])
@pytest.mark.parametrize("eigenvalues", [np.ones(8), np.linspace(1, 6, 8)], ids=["equal", "spread"])
def test_power_stopping_is_algorithm_2_word_by_word(eigenvalues, n_iter, share):
    noise = share * eigenvalues.min() / np.sqrt(8)
    sample = odeco_tensor(8, eigenvalues=eigenvalues, noise=noise, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)  # two updates do not always settle, and that is told
        result = odeco.decompose(
            sample.tensor,
            8,
            method="power-stopping",
            n_iter=n_iter,
            max_restarts=10_000,
            random_state=np.random.default_rng(4),
        )
    rng, tensor, restarts = np.random.default_rng(4), sample.tensor, []
    for j in range(8):
        found = algorithm_2(tensor, batches(rng, 8), n_iter, 8 - j)
        tensor = found.deflated
        restarts.append(found.starts)
        # Rounding of 1e-16, doubled by every update that has not settled, at most 6 of them, times 8^2 terms.
        assert np.abs(result.eigenvectors[:, j] - found.vector).max() <= 1e-12
        assert result.eigenvalues[j] == pytest.approx(found.value, rel=1e-12)
    if n_iter < 30:
        assert max(restarts) > 1  # some starts were refused on the way


@pytest.mark.parametrize("case", ORDER_3, ids=case_id)
def test_few_restarts_are_needed(case):
    """poly(k) restarts suffice with high probability; on clean tensors a strong component is found at once.

    Where eigenvalues are equal every v_i is strong: one start each. Otherwise a start ends at a strong v_i with
    probability above 1/2 (they have the larger basins), and 20 starts fail with probability below 1e-6.
    """
    sample = case.draw()
    rng, tensor = np.random.default_rng(0), sample.tensor
    for j in range(case.rank):
        found = algorithm_2(tensor, batches(rng, case.n), 30, case.rank - j)
        tensor = found.deflated
        assert found.starts <= (1 if len(set(case.eigenvalues)) == 1 else 20)
    result = odeco.decompose(sample.tensor, case.rank, method="power-stopping", max_restarts=20, random_state=0)
    assert result.status.ok


@pytest.mark.parametrize("seed", range(5))
def test_what_is_accepted_is_close_to_a_component(seed):
    """The lemma that opens appendix C, alpha = 1/20 and beta = 1/2: its three claims, for any vector at all."""
    alpha, beta, k = 0.05, 0.5, 10
    rng = np.random.default_rng(seed)
    eigenvalues = rng.uniform(1, 3, k)
    noise = alpha * eigenvalues.min() / np.sqrt(k)
    average = np.sqrt(np.mean(eigenvalues**2))
    # Half of the noise that the lemma allows, because its norm is known from below only.
    error = symmetric_noise(k, operator_norm=noise / 2, random_state=rng)
    assert np.linalg.norm(error) <= np.sqrt(k) * (0.5 - alpha / (beta * np.sqrt(k))) * average
    tensor = rank_one_sum(eigenvalues, np.eye(k)) + error
    accepted = 0
    for spread in np.linspace(0.01, 0.5, 60):
        theta = np.eye(k)[rng.integers(k)] + spread * rng.standard_normal(k) / np.sqrt(k)
        theta /= np.linalg.norm(theta)
        if not stopping_condition(tensor, theta, k):
            continue
        accepted += 1
        strength = eigenvalues * np.abs(theta)
        best = int(np.argmax(strength))
        assert eigenvalues[best] >= beta * average / 2
        assert np.delete(strength, best).max() <= np.sqrt(7 * alpha) * strength[best]
        assert theta[best] >= 1 - 2 * alpha
    assert 10 <= accepted <= 50  # neither nothing nor everything
