"""Files as people have them: compressed by anything, in UTF-16, with decimal commas, as JSON arrays."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import numpy as np
import pytest

from odeco.exceptions import InputFileError
from odeco.files import opening, read_counts, read_table
from odeco.files.opening import open_input

pyarrow = pytest.importorskip("pyarrow")
TABLE = "city;height;people\nKöln;53,5;1087\nUlm;478,25;127\nBonn;;336,5\n"
ROWS = [["Köln", 53.5, 1087.0], ["Ulm", 478.25, 127.0], ["Bonn", None, 336.5]]


def zstd(content: bytes) -> bytes:
    return pyarrow.compress(content, codec="zstd", asbytes=True)


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def rows_of(path, **options):
    found = np.asarray(read_table(path, **options).read()).tolist()
    return [[None if value != value else value for value in row] for row in found]


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_tables_and_texts(tmp_path, suffix):
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(PACKED[suffix](TABLE.encode()))
    assert rows_of(path) == ROWS
    text = tmp_path / f"b.txt.{suffix}"
    text.write_bytes(PACKED[suffix](b"one two\ntwo\n" * 50_000))
    counts = read_counts(text)
    assert (counts.format, counts.vocabulary) == ("text", ["one", "two"])
    assert sum(batch.counts.sum() for batch in counts.source) == 150_000


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_files_that_are_cut_short(tmp_path, suffix):
    content = PACKED[suffix](np.random.default_rng(0).bytes(50_000).hex().encode() + b"\n")
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputFileError, match="a.txt.*(cut short|Truncated)"):
        list(open_input(path).line_blocks())


def test_a_text_that_begins_like_a_compressed_file_is_a_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("BZh is no bzip2\n")
    assert not open_input(path).compressed


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("block", [3, 2**20])
def test_the_byte_order_mark_tells_the_encoding(tmp_path, monkeypatch, encoding, block):
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    (tmp_path / "a.csv").write_bytes(TABLE.encode(encoding))
    assert rows_of(tmp_path / "a.csv") == ROWS
    (tmp_path / "b.txt").write_bytes("Köln\r\nUlm\r\n".encode(encoding))
    assert read_counts(tmp_path / "b.txt").vocabulary == ["köln", "ulm"]
    (tmp_path / "c").write_bytes(json.dumps([{"n": 1}], ensure_ascii=False).encode(encoding))
    assert read_table(tmp_path / "c").format == "jsonl"


def test_an_encoding_that_is_named_is_taken(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe is y and thorn\n")
    assert "ÿþ" in read_counts(tmp_path / "a.txt", encoding="latin-1").vocabulary


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "a;b\n1,5;2\n-,25;3\n", [[1.5, 2], [-0.25, 3]]),
        ("a.csv", "1,5;2,5\n3,5;4,5\n", [[1.5, 2.5], [3.5, 4.5]]),  # no header
        ("a.csv", "a;b\n1,234;2\n1,5e2;3\n", [[1.234, 2], [150, 3]]),
        ("a.tsv", "a\tb\n1,5\t2.5\n2,5\t3.5\n", [[1.5, 2.5], [2.5, 3.5]]),
        ("a.tsv", "a\tb\n1,234\t2\n5,678\t3\n", [["1,234", 2], ["5,678", 3]]),  # thousands, or not: left as they are
        ("a.csv", "a;b\n1,5;2\n1.5;3\n", [["1,5", 2], ["1.5", 3]]),
        ("a.csv", 'a,b\n"1,5",2\n"2,5",3\n', [["1,5", 2], ["2,5", 3]]),
        ("a.csv", "1,2\n3,4\n", [[1, 2], [3, 4]]),
    ],
)
def test_decimal_commas(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert rows_of(tmp_path / name) == expected


def test_commas_are_decimal_in_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK_BYTES", 64)
    values = [7, 1.5, 3, 2.25] * 50
    (tmp_path / "a.csv").write_text(
        "a;b\n" + "".join(f"{value};{i}\n" for i, value in enumerate(values)).replace(".", ",")
    )
    assert rows_of(tmp_path / "a.csv") == [[value, i] for i, value in enumerate(values)]


ITEMS = [{"n": i, "text": 'a "[{]}," \\ é ' + "x" * i} for i in range(40)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("block", [7, 2**20])
def test_json_arrays(tmp_path, monkeypatch, indent, block):
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    for name, text in (("a.json", json.dumps(ITEMS, indent=indent)), ("b", f"\n {json.dumps(ITEMS)}\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert rows_of(tmp_path / name) == [list(item.values()) for item in ITEMS]


def test_an_array_on_one_line_may_be_longer_than_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", "2000")
    monkeypatch.setattr(opening, "BLOCK_BYTES", 500)
    (tmp_path / "a.json").write_text(json.dumps(ITEMS))
    assert len(rows_of(tmp_path / "a.json")) == 40
    (tmp_path / "b.json").write_text(json.dumps([{"text": "x" * 3000}]))
    with pytest.raises(InputFileError, match="item 1 is too long, or is not closed, the limit is 2000"):
        read_table(tmp_path / "b.json")


def test_an_array_of_texts(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(["one text", "another"]))
    assert read_counts(tmp_path / "a.json").vocabulary == ["another", "one", "text"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"a": 1},', "ends after 1 items without its ]"),
        ('[{"a": 1}', "ends after 1 items without its ]"),
        ('[{"a": 1}] x', "not JSON: 'x'"),
        ('[{"a": 1} {"a": 2}]', "not JSON: '{'"),
        ('[{"a": }]', "not JSON .item 1: Expecting value"),
        ('[{"a": 1}, 2]', "item 2 of the array must be an object"),
        ('[{"a": "\\ud800"}]', "surrogates"),
    ],
)
def test_broken_arrays_are_named(tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputFileError, match=words):
        read_table(tmp_path / "a.json")
