"""Laws of files: what is written is read, blocks do not matter, and no bytes do anything but fail in one line."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
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
# Anything behind a letter: without it some would be numbers, or missing, where a format has no types.
ANYTHING = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
LABEL = st.one_of(st.none(), ANYTHING.map(lambda text: f"w{text}"))
NAME = ANYTHING.map(lambda text: f"n{text}".strip())


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
    names = data.draw(st.lists(NAME, min_size=3, max_size=3, unique=True))
    columns = np.array(numbers) + 0.5, np.array(labels, dtype=object), np.arange(n)
    with TemporaryDirectory() as folder:
        write_table(Path(folder) / name, dict(zip(names, columns, strict=True)))
        table = read_table(Path(folder) / name)
        read = table.read()
    assert table.names == names
    assert isinstance(read, Frame)
    np.testing.assert_array_equal(read.parts[0], columns[0])
    assert read.parts[1].tolist() == labels
    np.testing.assert_array_equal(read.parts[2], columns[2])


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


# Any size of blocks, the same rows: also of files that others wrote, with all that their formats allow.

SIZES = st.integers(1, 80)
END = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n \t\n"])
NUMBER = st.one_of(
    st.integers(0, 10**19).map(str), st.floats(0, 1e300).map(repr), st.sampled_from(["1.50", "+2", "3e2", ".5", "7."])
)
COMMENT = st.sampled_from(["", "", " # note", "#1:1 2:x", " # qid:7 a,b"])


def read_rows(path: Path, size: int, read):
    """What a door gives with blocks of that size; the words of the error where it refuses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BLOCK_BYTES", size)
        patch.setattr(rows, "BATCH_ROWS", 1 + size % 7)
        patch.setattr(triplets, "BATCH_ROWS", 1 + size % 7)
        patch.setenv("ODECO_MAX_MARKET_ENTRIES", str(1 + size % 7))
        try:
            return read(path)
        except InputFileError:
            return "refused"


def assert_blocks_do_not_matter(name: str, content: bytes, sizes: list[int], read) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        expected = read_rows(path, 2**20 + 6, read)
        for size in sizes:
            assert read_rows(path, size, read) == expected


def counts_of(path: Path) -> list[list[float]]:
    found = read_counts(path, format={".svm": "svmlight"}.get(path.suffix, "auto"))
    return whole(found.source).tolist()


def table_of(path: Path) -> tuple:
    table = read_table(path)
    read = table.read()
    parts = read.parts if isinstance(read, Frame) else np.asarray(read).T
    return table.names, table.kinds, [str(part.dtype) for part in parts], [list(map(repr, p.tolist())) for p in parts]


@st.composite
def svmlight_files(draw):
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        label = draw(st.sampled_from(["1", "-1", "0.5", "1,2", "1,2,3", "+1"]))
        query = draw(st.sampled_from(["", "", " qid:3"]))
        pairs = "".join(f" {draw(st.integers(0, 20))}:{draw(NUMBER)}" for _ in range(draw(st.integers(0, 4))))
        lines.append(label + query + pairs + draw(COMMENT) + draw(END))
        if draw(st.booleans()):
            lines.append(draw(COMMENT) + draw(END))
    return "".join(lines).rstrip("\n" if draw(st.booleans()) else "").encode()


@settings(max_examples=60)
@given(content=svmlight_files(), sizes=st.lists(SIZES, min_size=3, max_size=3))
def test_blocks_of_svmlight_do_not_matter(content, sizes):
    assert_blocks_do_not_matter("a.svm", content, sizes, counts_of)
    assert_blocks_do_not_matter("a.svm", content, sizes, lambda path: table_of(path)[3])


@st.composite
def triplet_files(draw):
    """UCI or Matrix Market, sorted by rows, with blanks and empty lines."""
    market, real = draw(st.booleans()), draw(st.booleans())
    entries = sorted(draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=20)))
    head = [
        f"%%MatrixMarket matrix coordinate {'real' if real else 'integer'} general",
        "% note",
        "",
        f"9 5 {len(entries)}",
    ]
    lines = [line + "\n" for line in (head if market else ["9", "5", str(len(entries))])]
    value = NUMBER if market and real else st.integers(0, 2**62).map(str)
    lines += [f"{i}{draw(st.sampled_from([' ', '  ', chr(9)]))}{j} {draw(value)}{draw(END)}" for i, j in entries]
    return "a.mtx" if market else "docword.a.txt", "".join(lines).encode()


@settings(max_examples=60)
@given(file=triplet_files(), sizes=st.lists(SIZES, min_size=3, max_size=3))
def test_blocks_of_triplets_do_not_matter(file, sizes):
    assert_blocks_do_not_matter(*file, sizes, counts_of)


FIELD = st.one_of(
    st.sampled_from(
        ["", "1", "-2", "2.5", "true", "NA", "w", '"a,b"', '"x\ny"', '"x\r\ny"', '"\r"', '"q""q"', "é", 'b"c']
    ),
    st.text('ab1,"\n\r é', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"'),
)


@settings(max_examples=80)
@given(data=st.data(), width=st.integers(1, 3), sizes=st.lists(SIZES, min_size=3, max_size=3))
def test_blocks_of_csv_do_not_matter(data, width, sizes):
    lines = data.draw(st.lists(st.lists(FIELD, min_size=width, max_size=width), min_size=2, max_size=8))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    content = end.join(map(",".join, lines)) + data.draw(st.sampled_from(["", end]))
    assert_blocks_do_not_matter("a.csv", content.encode(), sizes, table_of)


@settings(max_examples=60)
@given(
    objects=st.lists(
        st.dictionaries(
            st.sampled_from("abc"),
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=4)),
        ),
        min_size=1,
        max_size=8,
    ),
    ends=st.lists(END, min_size=8, max_size=8),
    sizes=st.lists(SIZES, min_size=3, max_size=3),
)
@example(objects=[{}, {"a": 2**53 + 1}], ends=["\n"] * 8, sizes=[1, 1, 1])
def test_blocks_of_json_lines_do_not_matter(objects, ends, sizes):
    content = "".join(json.dumps(row, ensure_ascii=False) + end for row, end in zip(objects, ends, strict=False))
    assert_blocks_do_not_matter("a.jsonl", content.encode(), sizes, table_of)


@settings(max_examples=60)
@given(text=st.text("ab é\n\r\u2028\f", max_size=40), sizes=st.lists(SIZES, min_size=3, max_size=3))
def test_blocks_of_text_do_not_matter(text, sizes):
    def documents(path: Path) -> list[str]:
        return list(read_counts(path, vectorizer=LetterCounter).documents())

    assert_blocks_do_not_matter("a.txt", text.encode(), sizes, documents)
    assert_blocks_do_not_matter("a.txt", text.encode(), sizes, lambda path: read_sequences(path).X.tolist())


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
