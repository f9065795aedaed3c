"""Which format a file has, by content and by name."""

import gzip

import numpy as np
import pytest

from odeco.exceptions import InputFileError
from odeco.files.detect import FORMATS, canonical_format, detect
from odeco.files.opening import open_input
from tests.file_cases import write

ALL = [name for name in FORMATS if name != "folder"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a", "just a line\n", "text"),
        ("a.txt", "3:30 is a time\n", "text"),
        ("a.txt", "7\n8\n9\n", "text"),
        ("a.csv", "a,b\n1,2\n", "csv"),
        ("a.tsv", "a\tb\n1\t2\n", "tsv"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n1\t2\n", mtime=0), "tsv"),
        ("a", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("a.jsonl", '{"a": 1}\n', "jsonl"),
        ("a", "2\n3\n2\n1 1 1\n2 3 1\n", "uci"),
        ("docword.a.txt", "2\n3\n0\n", "uci"),
        ("a.dat", "2 0:1 3:2\n1 2:1\n", "ldac"),
        ("a.txt", "0\n2 0:1 3:2\n", "ldac"),
        ("a.txt", "0\n0\n0\n0\n1 0:1\n", "ldac"),
        ("a.dat", "-1 1:0.5 3:2\n+1 2:1e3 # comment\n", "svmlight"),
        ("a.dat", "1,2 1:0.5\n", "svmlight"),
        ("a.svm", "1 4:1\n", "svmlight"),
        ("a.ldac", "1 4:1\n", "ldac"),
        ("a", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", "mtx"),
        ("a", b"RIFF\0\0\0\0WAVE", "wav"),
        ("a", b"PAR1", "parquet"),
        ("a.bin", b"PK\x03\x04", "npz"),
    ],
)
def test_formats_are_recognised(tmp_path, name, content, expected):
    assert detect(open_input(write(tmp_path / name, content)), ALL) == expected


def test_an_array_is_known_by_its_content(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    (tmp_path / "a.npy").rename(tmp_path / "a.txt")
    assert detect(open_input(tmp_path / "a.txt"), ALL) == "npy"


@pytest.mark.parametrize("name", ["a.parquet", "a.npy", "a.npz", "a.mtx", "a.wav"])
def test_a_name_that_the_content_belies_is_an_error(tmp_path, name):
    with pytest.raises(InputFileError, match="does not begin like one"):
        detect(open_input(write(tmp_path / name, "something else\n")), ALL)


def test_binary_data_are_no_text(tmp_path):
    with pytest.raises(InputFileError, match="binary data"):
        detect(open_input(write(tmp_path / "a.txt", b"a\0b\xff")), ALL)


def test_a_format_of_no_use_here_is_an_error(tmp_path):
    with pytest.raises(InputFileError, match="looks like uci, and one of csv, npy is needed"):
        detect(open_input(write(tmp_path / "docword.a.txt", "1\n1\n1\n1 1 1\n")), ["csv", "npy"])


def test_formats_may_be_named_in_several_ways():
    assert canonical_format("LibSVM", FORMATS) == "svmlight"
    with pytest.raises(ValueError, match="format must be 'auto' or of 'csv', 'npy', got 'excel'"):
        canonical_format("excel", ["csv", "npy"])
