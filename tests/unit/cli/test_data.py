"""Data are kept where they are small and read again where they are not: the model is the same."""

from pathlib import Path

import numpy as np
import pytest

from odeco.cli import data as holding
from odeco.cli.console import Stage
from odeco.cli.inputs import READERS, read
from odeco.persistence import load_with_metadata
from tests.command_line import FITS, call, written


@pytest.mark.parametrize("name", ["lda", "gaussian-mixture", "product-mixture", "multiview", "ica"])
def test_a_file_too_large_to_keep_gives_the_same_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(name, tmp_path)
    arguments = [path if each == "FILE" else each for each in FITS[name][0]]
    answers = []
    for limit in (holding.HELD_BYTES, 100):
        monkeypatch.setattr(holding, "HELD_BYTES", limit)
        out = tmp_path / f"{limit}.odeco"
        assert call("fit", name, *arguments, "--refine", "none", "--out", out).returncode == 0
        done = call("transform", out, path, "--out", tmp_path / "answers.npy", "-q")
        assert done.returncode == 0, done.stderr
        answers.append(np.load(tmp_path / "answers.npy"))
        rows = load_with_metadata(out).metadata["fitted"]["rows"]
        assert rows == len(answers[-1])
    # The same sums in other blocks.
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6, atol=1e-8)


def test_held_is_whole_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))]
    np.testing.assert_array_equal(holding.held(lambda: iter(parts), holding.joined_rows), np.vstack(parts))
    monkeypatch.setattr(holding, "HELD_BYTES", sum(part.nbytes for part in parts) - 1)
    assert holding.held(lambda: iter(parts), holding.joined_rows) is None


def test_one_input_is_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one INPUT is expected, got 2"):
        read("table", ["a.csv", "b.csv"], {}, Stage())


def test_every_reader_says_what_it_reads() -> None:
    assert all(reader.what and reader.rows for reader in READERS.values())
