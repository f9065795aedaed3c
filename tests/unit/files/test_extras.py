"""Without pyarrow what needs it says so, all else does without; and nothing heavy is imported in advance."""

import subprocess
import sys

import numpy as np
import pytest

from odeco.exceptions import InputFileError
from odeco.files import arrow, read_counts, read_table, write_counts, write_table
from tests.file_cases import LetterCounter, small_counts, whole, write


@pytest.fixture
def without_pyarrow(monkeypatch):
    for name in list(sys.modules):
        if name == "pyarrow" or name.startswith("pyarrow."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("without_pyarrow")
@pytest.mark.parametrize("name", ["a.npz", "a.mtx", "a.svm", "a.ldac", "docword.a.txt.gz"])
def test_formats_of_counts_need_no_extra(tmp_path, name):
    write_counts(tmp_path / name, small_counts())
    np.testing.assert_array_equal(whole(read_counts(tmp_path / name).source), small_counts().toarray())


@pytest.mark.usefixtures("without_pyarrow")
def test_texts_json_lines_and_arrays_need_no_extra(tmp_path):
    text = write(tmp_path / "a.txt", "ab\n")
    assert read_counts(text, vectorizer=LetterCounter()).vocabulary == ["a", "b"]
    for name in ("a.jsonl", "a.npy"):
        write_table(tmp_path / name, [[1.0, 2.0]])
        assert np.asarray(read_table(tmp_path / name).read()).tolist() == [[1.0, 2.0]]
    write_table(tmp_path / "a.csv", [[1.0]])  # written by Python itself


@pytest.mark.usefixtures("without_pyarrow")
def test_csv_and_parquet_name_what_is_missing(tmp_path):
    with pytest.raises(InputFileError, match=r"a\.csv: reading CSV needs pyarrow.*pip install pyarrow"):
        read_table(write(tmp_path / "a.csv", "a,b\n1,2\n"))
    with pytest.raises(InputFileError, match="reading Parquet needs pyarrow"):
        read_table(write(tmp_path / "a.parquet", b"PAR1"))
    with pytest.raises(InputFileError, match="writing Parquet needs pyarrow"):
        write_table(tmp_path / "b.parquet", [[1.0]])
    assert not (tmp_path / "b.parquet").exists()
    with pytest.raises(InputFileError, match="needs pyarrow"):
        arrow.import_arrow("file", "this")


def test_nothing_heavy_is_imported_in_advance():
    script = (
        "import sys, odeco.files\n"
        "heavy = ('pyarrow', 'pandas', 'sklearn', 'numba', 'scipy.io', 'odeco.text')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
