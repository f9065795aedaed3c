"""Real archives through their doors, and real counts through every format."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from odeco.files import read_counts, read_labels, read_sequences, read_signals, read_table, write_counts
from tests.file_cases import COUNT_FILES

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder() -> Path:
    name = os.environ.get("ODECO_DATA")
    if not name:
        pytest.skip("ODECO_DATA is not set: name the folder of real data sets to run this test")
    return Path(name)


@pytest.mark.parametrize("name", COUNT_FILES)
def test_verses_go_through_every_format(folder, tmp_path, name):
    verses = read_counts(folder / "bible_kjv.npz")
    assert (verses.source.n_features, verses.vocabulary[:2]) == (6565, ["lord", "shall"])
    write_counts(tmp_path / name, verses.source, verses.vocabulary)
    back = read_counts(tmp_path / name)
    assert back.vocabulary == verses.vocabulary
    matrices = [sparse.vstack([batch.counts for batch in source]) for source in (verses.source, back.source)]
    assert matrices[0].shape == (31102, 6565)
    assert (matrices[0] != matrices[1]).nnz == 0


def test_other_archives_go_through_their_doors(folder):
    assert len(read_table(folder / "penguins.npz").names) == 4
    votes = read_table(folder / "votes84.npz")
    assert (np.asarray(votes.read()).shape, votes.kinds[0]) == ((435, 16), "integer")
    assert read_labels(folder / "crowd_rte.npz").layout == "long"
    assert read_signals(folder / "foetal_ecg.npz").rate == 250.0
    assert read_sequences(folder / "lambda_phage.npz").symbols == ["A", "C", "G", "T"]
    assert read_sequences(folder / "japanese_vowels.npz", "features").lengths.size == 640
    assert read_sequences(folder / "earthquakes.npz", "counts").X.shape == (107, 1)
