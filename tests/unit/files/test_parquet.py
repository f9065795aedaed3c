"""Parquet: the layout of counts, folders of parts, bounded batches."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odeco.exceptions import InputFileError
from odeco.files import parquet, read_counts, read_table, write_counts, write_table
from odeco.files.opening import open_input
from odeco.files.parquet import open_parquet
from tests.file_cases import WORDS, LetterCounter, small_counts, small_rows, whole


def lists(words, counts, **metadata):
    return pa.table(
        {"words": pa.array(words, pa.list_(pa.int32())), "counts": pa.array(counts, pa.list_(pa.float64()))}
    ).replace_schema_metadata(metadata)


def failing(path, match):
    with pytest.raises(InputFileError, match=match):
        whole(read_counts(path).source)


def test_the_layout_is_what_the_guide_says(tmp_path):
    counts = small_counts()
    write_counts(tmp_path / "a.parquet", counts, WORDS)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.names == ["words", "counts"]
    assert table.column("words").to_pylist() == [np.flatnonzero(row).tolist() for row in counts.toarray()]
    said = json.loads(table.schema.metadata[b"odeco"])
    assert said == {"version": 1, "n_features": 12, "n_nonzeros": counts.nnz, "vocabulary": WORDS}


def test_batches_of_any_size_give_the_same_rows(tmp_path, monkeypatch):
    counts = small_counts(300)
    write_counts(tmp_path / "a.parquet", [counts[:7], counts[7:100], counts[100:]])
    for rows in (16, 17, 1000):
        monkeypatch.setattr(parquet, "_BATCH_ROWS", rows)
        np.testing.assert_array_equal(whole(read_counts(tmp_path / "a.parquet").source), counts.toarray())


def test_a_large_row_group_is_read_in_pieces(tmp_path, monkeypatch):
    write_table(tmp_path / "a.parquet", small_rows(5000))
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 2**10)
    sizes = [len(batch) for batch in read_table(tmp_path / "a.parquet").source()]
    assert max(sizes) < 100
    assert sum(sizes) == 5000


def test_fractions_stay_fractions(tmp_path):
    counts = small_counts() * 0.5
    write_counts(tmp_path / "a.parquet", counts)
    np.testing.assert_array_equal(whole(read_counts(tmp_path / "a.parquet").source), counts.toarray())


def test_lists_that_somebody_else_wrote(tmp_path):
    """Unsorted words, repeated words, other types, no metadata."""
    table = pa.table(
        {
            "id": [1, 2],
            "words": pa.array([[3, 1], [2, 2]], pa.large_list(pa.int64())),
            "counts": pa.array([[1, 2], [1, 4]], pa.large_list(pa.uint8())),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(whole(read_counts(tmp_path / "a.parquet").source), [[0, 2, 0, 1], [0, 0, 5, 0]])


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (lists([[0, 1]], [[1.0]]), "more words than counts"),
        (lists([[0, -1]], [[1.0, 1.0]]), "word number -1"),
        (lists([[0, 1]], [[1.0, -1.0]]), "row 1 has the count -1"),
        (lists([[0], [1]], [[1.0], [float("nan")]]), "row 2 has the count nan"),
        (lists([[0], None], [[1.0], None]), "missing values"),
        (lists([[0, None]], [[1.0, 1.0]]), "missing values"),
        (lists([[]], [[]]), "no words"),
        (
            lists([[5]], [[1.0]], odeco='{"version": 1, "n_features": 2, "n_nonzeros": 1, "vocabulary": null}'),
            "number 5",
        ),
        (
            lists([[0]], [[1.0]], odeco='{"version": 9, "n_features": 2, "n_nonzeros": 1, "vocabulary": null}'),
            "version 9",
        ),
        (lists([[0]], [[1.0]], odeco='{"version": 1}'), "metadata of its counts are damaged"),
        (lists([[0]], [[1.0]], odeco="{"), "metadata of its counts are damaged"),
        (lists([], []), "it has no rows"),
        (pa.table({"a": pa.array([[1]]), "b": [1]}), "holds neither numbers nor text"),
    ],
)
def test_faulty_counts_are_refused(tmp_path, table, match):
    pq.write_table(table, tmp_path / "a.parquet")
    failing(tmp_path / "a.parquet", match)


def test_damage_anywhere_is_refused_or_does_no_harm(tmp_path):
    write_counts(tmp_path / "a.parquet", small_counts(), WORDS)
    content = (tmp_path / "a.parquet").read_bytes()
    for place in range(0, len(content), 37):
        (tmp_path / "b.parquet").write_bytes(content[:place])
        with pytest.raises(InputFileError):
            whole(read_counts(tmp_path / "b.parquet", vectorizer=LetterCounter).source)


def test_a_folder_of_parts_is_one_table(tmp_path):
    folder = tmp_path / "set"
    (folder / "year=2001").mkdir(parents=True)
    (folder / "_SUCCESS").write_bytes(b"")
    rows = small_rows(50)
    write_table(folder / "part-0.parquet", rows[:20])
    write_table(folder / "year=2001" / "part-1.parquet", rows[20:])
    np.testing.assert_array_equal(read_table(folder).read(), rows)
    write_table(folder / "part-2.parquet", rows[:, :2])
    with pytest.raises(InputFileError, match=r"part-2\.parquet: its columns differ"):
        read_table(folder)


def test_a_folder_of_parts_may_hold_counts(tmp_path):
    counts = small_counts(60)
    write_counts(tmp_path / "1.parquet", counts[:25], WORDS)
    write_counts(tmp_path / "2.parquet", counts[25:], WORDS)
    read = read_counts(tmp_path)
    assert read.vocabulary == WORDS
    np.testing.assert_array_equal(whole(read.source), counts.toarray())


def test_columns_of_many_types(tmp_path):
    table = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "half": pa.array([1.5, 2.5], pa.float32()),
            "money": pa.array([1, 2], pa.decimal128(5, 2)),
            "code": pa.array(["a", "b"]).dictionary_encode(),
            "when": pa.array([0, 1], pa.timestamp("s")),
            "flag": [True, False],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    kinds = open_parquet(open_input(tmp_path / "a.parquet")).kinds
    assert kinds == {
        "small": "integer", "half": "number", "money": "number", "code": "label", "when": None, "flag": "truth",
    }  # fmt: skip
    read = read_table(tmp_path / "a.parquet", columns=["small", "half", "money", "code", "flag"]).read()
    np.testing.assert_array_equal(read.parts[0], [1, np.nan])
    assert read.parts[1].dtype == np.float32
    assert read.parts[3].tolist() == ["a", "b"]
    with pytest.raises(InputFileError, match="'when' holds neither numbers nor text"):
        read_table(tmp_path / "a.parquet")
