"""Digests of batches: of their values, not of how these lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco import GaussianMixture
from odeco.sources import as_batch
from odeco.sources.base import Batch
from odeco.sources.dense import DenseBatch
from odeco.sources.sequences import Joined
from odeco.sources.signatures import Signature, described, signed
from odeco.sources.views import ViewBatch
from odeco.sources.votes import VoteBatch

ROWS = np.random.default_rng(0).poisson(0.7, (40, 12)).astype(float)


def digest(batch):
    return signed([batch])[1]


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every second row of another": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "big-endian": lambda rows: rows.astype(">f8"),
    "a part of a wider one": lambda rows: np.hstack([rows, rows])[:, :12],
    "not writable": lambda rows: np.frombuffer(rows.tobytes()).reshape(rows.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_rows_have_one_digest_in_any_layout(layout):
    assert digest(DenseBatch(LAYOUTS[layout](ROWS))) == digest(DenseBatch(ROWS))
    assert digest(ViewBatch((LAYOUTS[layout](ROWS),))) == digest(ViewBatch((ROWS,)))


def test_sparse_rows_have_one_digest_in_any_layout():
    whole = sparse.csr_array(ROWS)
    wide = sparse.csr_array(ROWS)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    part = sparse.csr_array(np.vstack([ROWS, ROWS]))[40:]
    for other in (wide, part, sparse.csc_array(ROWS), ROWS):
        assert digest(as_batch(other)) == digest(as_batch(whole))
    assert digest(VoteBatch(wide)) == digest(VoteBatch(whole))


CHANGES = {
    "a value": lambda rows: rows + np.eye(40, 12) * (np.arange(12) == 7),
    "order of rows": lambda rows: rows[np.r_[1, 0, 2:40]],
    "order of columns": lambda rows: rows[:, np.r_[1, 0, 2:12]],
    "one row less": lambda rows: rows[:-1],
    "shape": lambda rows: rows.reshape(20, 24),
    "type": lambda rows: rows.astype(np.float32),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_rows_have_another_digest(change):
    other = CHANGES[change](ROWS)
    assert digest(DenseBatch(other)) != digest(DenseBatch(ROWS))
    assert digest(as_batch(sparse.csr_array(other))) != digest(as_batch(sparse.csr_array(ROWS)))


def test_weights_and_lengths_count():
    ones = np.ones(40)
    counts = as_batch(ROWS)
    for make in (
        lambda weights: DenseBatch(ROWS, weights),
        lambda weights: Batch(counts.counts, counts.lengths, weights),
        lambda weights: ViewBatch((ROWS, ROWS), weights),
        lambda weights: VoteBatch(counts.counts, weights),
    ):
        assert len({digest(make(weights)) for weights in (None, ones, 2 * ones, np.arange(40.0))}) == 4
    steps = np.arange(10)
    cuts = [np.array([0, 5, 10]), np.array([0, 4, 10]), np.array([0, 10])]
    assert len({digest(Joined(steps, cut, None)) for cut in cuts}) == 3
    assert digest(Joined(np.array(["a", None], object), cuts[2], None)) != digest(
        Joined(np.array(["b", None], object), cuts[2], None)
    )


def test_batches_do_not_run_together():
    assert signed([DenseBatch(ROWS[:10]), DenseBatch(ROWS[10:])])[0] == 40
    assert digest(ViewBatch((ROWS[:, :4], ROWS[:, 4:]))) != digest(ViewBatch((ROWS[:, :5], ROWS[:, 5:])))
    assert signed([])[0] == 0


def test_a_difference_is_told_in_words():
    def of(rows, **arguments):
        return Signature.of([DenseBatch(part) for part in np.array_split(rows, 4)], arguments)

    assert of(ROWS, tol="1").difference(of(ROWS.copy(), tol="1")) is None
    assert of(ROWS).digest == of(ROWS.copy()).digest
    assert "tol was 1 and is 2" in of(ROWS, tol="2").difference(of(ROWS, tol="1"))
    assert "tol was 1 and is not given" in of(ROWS).difference(of(ROWS, tol="1"))
    changed = ROWS.copy()
    changed[25] += 1
    assert "after row 20 (40 rows then, 40 now)" in of(changed).difference(of(ROWS))
    assert of(changed).digest != of(ROWS).digest
    longer = Signature.of([DenseBatch(part) for part in np.split(np.vstack([ROWS, ROWS]), 8)], {})
    assert "after row 40 (40 rows then, 80 now)" in longer.difference(of(ROWS))


def test_arguments_are_told_by_value():
    first = described(GaussianMixture(np.int64(3), tol=np.float64(0.5)))
    assert first == described(GaussianMixture(3, tol=0.5))
    assert first != described(GaussianMixture(3, tol=0.6))
    generators = [described(GaussianMixture(random_state=np.random.default_rng(seed))) for seed in (0, 1)]
    assert generators[0] == generators[1]  # their state has no text: the sums tell them apart
