"""Writers: whole files or none."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from odeco.files import read_counts, read_table, write_counts, write_table
from tests.file_cases import COUNT_FILES, TABLE_FILES, WORDS, small_counts, small_rows, whole


def batches_that_fail(error):
    yield small_rows(10)
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("name", TABLE_FILES)
def test_a_failure_leaves_the_older_table_and_nothing_else(tmp_path, name, error):
    write_table(tmp_path / name, small_rows(5))
    before = (tmp_path / name).read_bytes()
    with pytest.raises(type(error)):
        write_table(tmp_path / name, batches_that_fail(error))
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", COUNT_FILES)
def test_a_failure_leaves_no_counts(tmp_path, name):
    def batches():
        yield small_counts()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_counts(tmp_path / name, batches, WORDS)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_line(tmp_path):
    """The limit on the size of files stands for the disk; numpy, pyarrow and csv write in their own ways."""
    script = (
        "import resource, signal, sys, numpy as np\n"
        "from odeco.files import write_counts, write_table\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "rows = np.random.default_rng(0).normal(size=(20_000, 3))\n"
        "counts = np.random.default_rng(0).poisson(1, (5000, 20))\n"
        "write_table('warm.parquet', rows[:2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        (write_counts if name.startswith('c') else write_table)(name, counts if name[0] == 'c' else rows)\n"
        "    except OSError as error:\n"
        "        print(type(error).__name__, str(error).count(chr(10)))\n"
    )
    names = ["t.csv", "t.jsonl", "t.npy", "t.parquet", "c.npz", "c.mtx", "c.svm", "c.ldac", "c.parquet"]
    done = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["OSError 0"] * len(names)
    assert os.listdir(tmp_path) == ["warm.parquet"]


def test_tables_in_batches_are_tables(tmp_path):
    rows = small_rows(33)
    for name in TABLE_FILES:
        write_table(tmp_path / name, (rows[i : i + 10] for i in range(0, 33, 10)), ["a", "b", "c"])
        np.testing.assert_array_equal(read_table(tmp_path / name).read(), rows)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), rows)  # numpy agrees on the header


def test_infinity_and_nothing(tmp_path):
    write_table(tmp_path / "a.jsonl", {"x": [1.0, np.nan, np.inf], "n": [1, 2, 3]})
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines == [{"x": 1.0, "n": 1}, {"x": None, "n": 2}, {"x": None, "n": 3}]
    write_table(tmp_path / "a.csv", {"x": [1.0, np.nan, np.inf]})
    assert (tmp_path / "a.csv").read_text() == 'x\n1.0\n""\ninf\n'


def test_the_standard_output(monkeypatch):
    class Stdout:
        buffer = io.BytesIO()

    monkeypatch.setattr(sys, "stdout", Stdout)
    write_table("-", {"a": [1, 2], "b": ["x", "y"]})
    assert Stdout.buffer.getvalue() == b"a,b\n1,x\n2,y\n"
    Stdout.buffer = io.BytesIO()
    assert write_counts("-", np.array([[0, 2]])) == []
    assert Stdout.buffer.getvalue() == b"1\n2\n1\n1 2 2\n"


def test_devices_are_written_to():
    write_table("/dev/null", [[1.0]], format="csv")
    assert os.path.exists("/dev/null")


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match="format of .* is not known by its name"):
        write_table(tmp_path / "a", [[1]])
    with pytest.raises(ValueError, match="format must be 'auto'"):
        write_table(tmp_path / "a", [[1]], format="excel")
    with pytest.raises(ValueError, match="names has 1 names for 2 columns"):
        write_table(tmp_path / "a.csv", [[1, 2]], ["a"])
    with pytest.raises(ValueError, match="a name twice"):
        write_table(tmp_path / "a.csv", [[1, 2]], ["a", "a"])
    with pytest.raises(ValueError, match="there is a column of"):
        write_table(tmp_path / "a.npy", {"a": ["x"]})
    with pytest.raises(ValueError, match="same length"):
        write_table(tmp_path / "a.csv", {"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="batches differ in their columns"):
        write_table(tmp_path / "a.csv", iter([{"a": [1]}, {"b": [1]}]))
    with pytest.raises(ValueError, match="no batches"):
        write_table(tmp_path / "a.csv", iter([]))
    with pytest.raises(ValueError, match="vocabulary has 1 words for 2 columns"):
        write_counts(tmp_path / "a.npz", np.eye(2), ["a"])
    with pytest.raises(ValueError, match="does not fit on a line"):
        write_counts(tmp_path / "a.mtx", np.eye(2), ["a", "b\nc"])
    for name in ("docword.a.txt", "a.ldac"):
        with pytest.raises(ValueError, match="these have fractions"):
            write_counts(tmp_path / name, np.eye(2) / 2)
    with pytest.raises(FileNotFoundError):
        write_table(tmp_path / "nowhere" / "a.csv", [[1]])
    with pytest.raises(IsADirectoryError):
        write_table(tmp_path, [[1]], format="csv")
    assert os.listdir(tmp_path) == []


def test_scipy_reads_the_archive(tmp_path):
    write_counts(tmp_path / "a.npz", small_counts(), WORDS)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), small_counts().toarray())


def test_words_lie_beside_text_formats(tmp_path):
    written = write_counts(tmp_path / "docword.news.txt.gz", small_counts(), WORDS)
    assert written == [tmp_path / "docword.news.txt.gz", tmp_path / "vocab.news.txt"]
    read = read_counts(tmp_path / "docword.news.txt.gz")
    assert read.vocabulary == WORDS
    np.testing.assert_array_equal(whole(read.source), small_counts().toarray())


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"]
TEXTS = ["plain", "-5", "+3.5e2", "-", "'=1", "", "a=b", "5-3"]


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.tsv", "\t")])
def test_a_text_is_no_formula_in_a_spreadsheet(tmp_path, name, delimiter):
    texts = [*FORMULAS, *TEXTS]
    columns = {"=name": texts, "number": -np.arange(1.0, len(texts) + 1), "mixed": np.array([*texts[1:], -3], object)}
    write_table(tmp_path / name, columns)
    with open(tmp_path / name, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    assert header == ["'=name", "number", "mixed"]
    expected = [*(f"'{text}" for text in FORMULAS), *TEXTS]
    assert [row[0] for row in rows] == expected
    assert [float(row[1]) for row in rows] == columns["number"].tolist()
    assert [row[2] for row in rows] == [*expected[1:], "-3"]


def test_other_formats_keep_texts_as_they_are(tmp_path):
    write_table(tmp_path / "t.jsonl", {"a": FORMULAS})
    assert [json.loads(line)["a"] for line in (tmp_path / "t.jsonl").read_text().splitlines()] == FORMULAS
