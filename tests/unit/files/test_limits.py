"""What a small file may claim: limits that are stated, and that can be raised."""

import gzip

import numpy as np
import pytest
from scipy import sparse

from odeco.exceptions import InputFileError
from odeco.files import jsonl, opening, read_counts, read_signals, read_table, read_views, stored
from odeco.files.limits import Limits, limits
from tests.file_cases import small_rows, whole, write

MARKET = "%%MatrixMarket matrix coordinate integer general\n{} 2 1\n1 1 1\n"


def refused(read, match):
    with pytest.raises(InputFileError, match=match) as caught:
        read()
    assert "\n" not in str(caught.value)


def test_the_environment_raises_a_limit(monkeypatch):
    assert limits() == Limits()
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", "123")
    assert limits() == Limits(line_bytes=123)
    for wrong in ("many", "-1", "0", "1e9"):
        monkeypatch.setenv("ODECO_MAX_LINE_BYTES", wrong)
        with pytest.raises(ValueError, match=f"ODECO_MAX_LINE_BYTES must be a whole number above 0, got '{wrong}'"):
            limits()


def test_a_column_of_a_high_number_is_no_table(tmp_path, monkeypatch):
    path = write(tmp_path / "a.svm", "1 2147483645:1\n")
    match = "it has 2147483645 columns, the limit is 1048576: set ODECO_MAX_TABLE_COLUMNS"
    refused(lambda: read_table(path), match)
    refused(lambda: read_views([path] * 3), match)
    assert read_counts(path).source.n_features == 2147483645
    four = write(tmp_path / "b.svm", "1 4:1\n")
    monkeypatch.setenv("ODECO_MAX_TABLE_COLUMNS", "3")
    refused(lambda: read_table(four), "it has 4 columns")
    monkeypatch.setenv("ODECO_MAX_TABLE_COLUMNS", "4")
    np.testing.assert_array_equal(read_table(four).read(), [[0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a,b,c\n1,2,3\n"),
        ("a.jsonl", '{"a": 1}\n{"b": 1}\n{"c": 1}\n'),
        ("a.mtx", MARKET.replace("2 1\n", "3 1\n").format(1)),
    ],
)
def test_columns_of_every_table_are_limited(tmp_path, monkeypatch, name, content):
    path = write(tmp_path / name, content)
    monkeypatch.setenv("ODECO_MAX_TABLE_COLUMNS", "2")
    refused(lambda: read_table(path), "ODECO_MAX_TABLE_COLUMNS")


def test_columns_of_arrays_are_limited(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", small_rows(2))
    np.savez(tmp_path / "a.npz", X=small_rows(2))
    monkeypatch.setenv("ODECO_MAX_TABLE_COLUMNS", "2")
    for name in ("a.npy", "a.npz"):
        refused(lambda name=name: read_table(tmp_path / name), "the array has 3 columns, the limit is 2")


def test_rows_that_are_only_declared_are_refused(tmp_path, monkeypatch):
    refused(lambda: read_counts(write(tmp_path / "a.mtx", MARKET.format(10**9))), "ODECO_MAX_EMPTY_ROWS")
    empty = sparse.coo_array(([1], ([0], [0])), shape=(10**9, 2))
    sparse.save_npz(tmp_path / "a.npz", empty)
    refused(lambda: read_counts(tmp_path / "a.npz"), "it declares 1000000000 rows and only 1 entries")
    path = write(tmp_path / "b.mtx", MARKET.format(5))
    monkeypatch.setenv("ODECO_MAX_EMPTY_ROWS", "3")
    refused(lambda: read_counts(path), "the limit is 3")
    monkeypatch.setenv("ODECO_MAX_EMPTY_ROWS", "4")
    assert whole(read_counts(path).source).shape == (5, 2)


def test_rows_of_few_names_among_many_come_in_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "BATCH_NUMBERS", 200)
    path = write(tmp_path / "a.jsonl", "".join(f'{{"k{i}": {i}}}\n' for i in range(50)))
    batches = [np.asarray(batch) for batch in read_table(path).source()]
    assert {batch.shape for batch in batches} == {(4, 50), (2, 50)}
    expected = np.full((50, 50), np.nan)
    np.fill_diagonal(expected, np.arange(50))
    np.testing.assert_array_equal(np.concatenate(batches), expected)


def test_names_that_occur_once_make_no_table(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl", "".join(f'{{"k{i}": {i}}}\n' for i in range(200)))
    monkeypatch.setenv("ODECO_MAX_EMPTY_CELLS", str(200 * 200 - 100 * 200))
    assert np.asarray(read_table(path).read()).shape == (200, 200)
    monkeypatch.setenv("ODECO_MAX_EMPTY_CELLS", str(200 * 200 - 100 * 200 - 1))
    refused(lambda: read_table(path), "its 200 rows of 200 columns hold only 200 values.* ODECO_MAX_EMPTY_CELLS")


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(tmp_path, monkeypatch, size):
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", "100")
    for n, most in ((100, True), (101, False)):
        for end in ("", "\n"):
            file = opening.open_input(write(tmp_path / "a.gz", gzip.compress(("a\n" + "b" * n + end).encode())))
            for read in (file.line_blocks, file.text_blocks):
                if most:
                    assert sum(len(block) for _, block in read()) > 0
                else:
                    refused(lambda read=read: list(read()), "line 2: a line is too long .* set ODECO_MAX_LINE_BYTES")


def test_headers_are_lines_too(tmp_path, monkeypatch):
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", "60")
    path = write(tmp_path / "a.mtx", MARKET.replace("\n", "\n%" + 70 * "x" + "\n", 1).format(1))
    refused(lambda: read_counts(path), "line 2: a line is too long")


def test_compressed_arrays_may_not_unpack_to_anything(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "packed.npz", X=np.zeros((1000, 3)))
    np.savez(tmp_path / "plain.npz", X=np.zeros((1000, 3)))
    np.save(tmp_path / "a.npy", np.asfortranarray(np.zeros((1000, 3))))
    write(tmp_path / "b.npy.gz", gzip.compress((tmp_path / "a.npy").read_bytes()))
    monkeypatch.setenv("ODECO_MAX_UNPACKED_BYTES", "20000")
    refused(lambda: read_table(tmp_path / "packed.npz"), r"its arrays are 24\d\d\d bytes .*ODECO_MAX_UNPACKED_BYTES")
    refused(lambda: read_table(tmp_path / "b.npy.gz").read(), "too many bytes when it is unpacked")
    for name in ("plain.npz", "a.npy"):
        assert np.asarray(read_table(tmp_path / name).read()).shape == (1000, 3)
    monkeypatch.setenv("ODECO_MAX_UNPACKED_BYTES", "30000")
    for name in ("packed.npz", "b.npy.gz"):
        assert read_signals(tmp_path / name).X.shape == (1000, 3)


def test_a_large_market_file_that_cannot_be_streamed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ODECO_MAX_MARKET_ENTRIES", "1")
    for kind, content in (
        ("coordinate real symmetric", "2 2 2\n1 1 1\n2 1 1\n"),
        ("array real general", "1 2\n1\n1\n"),
    ):
        path = write(tmp_path / "a.mtx", f"%%MatrixMarket matrix {kind}\n{content}")
        refused(lambda path=path: read_counts(path), "it has 2 entries.* ODECO_MAX_MARKET_ENTRIES")


def test_the_batches_of_stored_rows_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "BATCH_NUMBERS", 7)
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(small_rows(5), order=order))
        batches = list(read_table(tmp_path / "a.npy").source())
        assert [len(batch) for batch in batches] == [2, 2, 1]
        np.testing.assert_array_equal(np.concatenate(batches), small_rows(5))
