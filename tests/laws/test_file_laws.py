"""Laws of files: what is written is read, blocks do not matter, and no bytes do anything but fail in one line."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from odeco.exceptions import InputFileError
from odeco.files import (
    Frame,
    opening,
    parquet,
    read_counts,
    read_labels,
    read_sequences,
    read_signals,
    read_table,
    read_views,
    rows,
    triplets,
    write_counts,
    write_table,
)
from tests.file_cases import COUNT_FILES, TABLE_FILES, LetterCounter, small_counts, small_rows, whole

ROUND_TRIP = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORD = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=8)
LABEL = st.one_of(st.none(), WORD.map(lambda word: f"w{word}"))


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    """What is written must be read, not survive a loss of power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@st.composite
def count_matrices(draw):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 6)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 0, 0, 1, 2, 2**20])))
    counts[-1, -1] = max(counts[-1, -1], 1)  # the formats of pairs do not say how many columns there are
    return counts


@pytest.mark.parametrize("name", COUNT_FILES)
@ROUND_TRIP
@given(counts=count_matrices(), data=st.data())
def test_counts_that_are_written_are_read(name, counts, data):
    words = data.draw(st.lists(WORD, min_size=counts.shape[1], max_size=counts.shape[1], unique=True))
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_counts(path, sparse.csr_array(counts), words)
        read = read_counts(path)
        np.testing.assert_array_equal(whole(read.source), counts)
        assert read.vocabulary == words


@pytest.mark.parametrize("name", [name for name in TABLE_FILES if name != "a.npy"])
@ROUND_TRIP
@given(data=st.data(), n=st.integers(1, 20))
def test_mixed_tables_that_are_written_are_read(name, data, n):
    numbers = data.draw(st.lists(st.floats(-1e300, 1e300), min_size=n, max_size=n))
    labels = data.draw(st.lists(LABEL, min_size=n, max_size=n))
    labels[0] = "first"  # a column of nothing has no kind
    columns = {"x": np.array(numbers) + 0.5, "name": np.array(labels, dtype=object), "i": np.arange(n)}
    with TemporaryDirectory() as folder:
        write_table(Path(folder) / name, columns)
        read = read_table(Path(folder) / name, columns=["x", "name", "i"]).read()
    assert isinstance(read, Frame)
    np.testing.assert_array_equal(read.parts[0], columns["x"])
    assert read.parts[1].tolist() == labels
    np.testing.assert_array_equal(read.parts[2], columns["i"])


@pytest.mark.parametrize("name", TABLE_FILES)
@ROUND_TRIP
@given(table=hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=st.floats(-1e9, 1e9)))
def test_numbers_that_are_written_are_read_to_the_last_bit(name, table):
    with TemporaryDirectory() as folder:
        write_table(Path(folder) / name, table)
        np.testing.assert_array_equal(np.asarray(read_table(Path(folder) / name).read(), dtype=float), table)


@pytest.mark.parametrize("name", [*COUNT_FILES, "a.npy", "a.csv", "a.jsonl"])
def test_blocks_and_batches_do_not_matter(tmp_path, monkeypatch, name):
    counts = small_counts(200)
    if name in COUNT_FILES:
        write_counts(tmp_path / name, counts)
    else:
        write_table(tmp_path / name, counts.toarray())
    for block_bytes, batch_rows in ((37, 3), (64, 50), (1000, 7)):
        monkeypatch.setattr(opening, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(rows, "BATCH_ROWS", batch_rows)
        monkeypatch.setattr(triplets, "BATCH_ROWS", batch_rows)
        monkeypatch.setattr(parquet, "_BATCH_ROWS", 16 + batch_rows)
        source = read_counts(tmp_path / name).source
        batches = [batch.counts.toarray() for batch in source]
        np.testing.assert_array_equal(np.vstack(batches), counts.toarray())


# Fuzzing: every reader on every file, valid ones with some bytes changed or made of anything.


def read_everything(path: Path) -> None:
    """All doors; each may refuse the file in one line."""
    doors = [
        lambda: list(read_counts(path, vectorizer=LetterCounter).source),
        lambda: list(read_table(path).source()),
        lambda: list(read_views([path] * 3).source()),
        lambda: list(read_views(path).source()),
        lambda: read_labels(path),
        lambda: read_sequences(path),
        lambda: read_sequences(path, "features"),
        lambda: list(read_signals(path).source()),
    ]
    for door in doors:
        message = ""
        try:
            door()
        except InputFileError as error:
            message = str(error)
        assert "\n" not in message
        assert len(message) < 600


@pytest.fixture(scope="module")
def valid_files(tmp_path_factory) -> dict[str, bytes]:
    from scipy.io import wavfile

    folder = tmp_path_factory.mktemp("valid")
    for name in COUNT_FILES:
        write_counts(folder / name, small_counts(8))
    for name in TABLE_FILES:
        write_table(folder / f"t{name}", np.round(small_rows(6), 2), ["u.a", "v.a", "w.a"])
    write_table(folder / "m.csv", {"id": [1, 2], "text": ["one, two", 'a "b"']})
    write_table(folder / "m.parquet", {"id": [1, 2], "text": ["one, two", "é"]})
    (folder / "m.jsonl").write_text(json.dumps({"id": 1, "text": "é", "more": [1]}) + "\n" + '{"id": null}\n')
    (folder / "a.txt").write_text("one two\nthree\n")
    np.savez(folder / "s.npz", X=small_rows(4), lengths=[2, 2], fs=8.0)
    wavfile.write(folder / "a.wav", 8000, np.arange(20, dtype=np.int16).reshape(10, 2))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


TOKENS = [b"-1", b"9" * 20, b"1e400", b"nan", b"\0", b"\xff", b"\n", b'"', b",", b":", b" ", b"#", b"%", b"[" * 99]


@st.composite
def mutations(draw):
    """A function of bytes: some replaced, cut out, put in, or all that follow cut off."""
    steps = draw(
        st.lists(
            st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from("rdic"), st.sampled_from(TOKENS)), max_size=4
        )
    )

    def mutate(content: bytes) -> bytes:
        for share, how, token in steps:
            i = int(share * len(content))
            after = {"r": i + len(token), "d": i + 3, "i": i, "c": len(content)}[how]
            content = content[:i] + (token if how in "ri" else b"") + content[after:]
        return content

    return mutate


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), mutate=mutations())
def test_a_changed_file_is_read_or_refused_in_one_line(valid_files, data, mutate):
    name = data.draw(st.sampled_from(sorted(valid_files)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(mutate(valid_files[name]))
        read_everything(path)


@settings(max_examples=60)
@given(
    content=st.one_of(st.binary(max_size=200), st.text('0123456789:,. -\n"{}[]ab%#\t', max_size=200).map(str.encode)),
    name=st.sampled_from(["a", "a.csv", "a.tsv", "a.jsonl", "a.svm", "a.ldac", "docword.a.txt", "a.mtx", "a.txt"]),
)
def test_any_bytes_are_read_or_refused_in_one_line(content, name):
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        read_everything(path)
