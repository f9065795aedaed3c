"""Files that are damaged, forged or unusual: each is read as it is meant, or refused in one line that names it."""

import gzip
import os
import struct

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse
from scipy.io import wavfile

from odeco.exceptions import InputFileError
from odeco.files import (
    read_counts,
    read_labels,
    read_sequences,
    read_signals,
    read_table,
    read_views,
    stored,
    write_counts,
    write_table,
)
from tests.file_cases import small_rows, whole, write

MARKET = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 "


def refused(read, path, match):
    with pytest.raises(InputFileError, match=match) as caught:
        read()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tail", ["1", "1 ", "1\r", "1\r\n", "1 \t", "1\n\n"])
def test_a_matrix_market_file_may_end_as_it_likes(tmp_path, tail):
    np.testing.assert_array_equal(whole(read_counts(write(tmp_path / "a.mtx", MARKET + tail)).source), [[1]])


@pytest.mark.parametrize("tail", ["1x", "1 x", "1 \0", "1\0", "1.9", "-", "+", "1e2", "1 1", "", "9" * 19])
def test_a_matrix_market_file_may_not_end_in_anything(tmp_path, tail):
    path = write(tmp_path / "a.mtx", MARKET + tail)
    refused(lambda: read_counts(path), path, "line 3: |cut short")


@pytest.mark.parametrize(
    ("name", "format", "content"),
    [("docword.a.txt", "uci", "1\n1\n1\n1 1 {}\n"), ("a", "ldac", "1 0:{}\n"), ("a", "svmlight", "1 1:{}\n")],
)
@pytest.mark.parametrize("number", ["-", "+", "+-1", "1-", "1e", ".", "0x1", "1_0", "1,5"])
def test_half_a_number_is_no_number(tmp_path, name, format, content, number):
    path = write(tmp_path / name, content.format(number))
    match = "line 4: could not convert string" if format == "uci" else "line 1 is .*, expected "
    refused(lambda: list(read_counts(path, format=format).source), path, match)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
@pytest.mark.parametrize("kind", ["coordinate", "array"])
def test_symmetric_matrices_are_those_of_scipy(tmp_path, symmetry, kind):
    half = np.tril(np.arange(1.0, 17).reshape(4, 4), 0 if symmetry == "symmetric" else -1)
    full = half + (np.tril(half, -1).T if symmetry == "symmetric" else -half.T)
    matrix = sparse.coo_array(full) if kind == "coordinate" else full
    scipy_io.mmwrite(tmp_path / "a.mtx", matrix, symmetry=symmetry)
    assert f"{kind} real {symmetry}" in (tmp_path / "a.mtx").read_text()
    np.testing.assert_array_equal(read_table(tmp_path / "a.mtx").read(), full)


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("coordinate integer general\n1 1\n", "line 2: 3 sizes are expected, found '1 1"),
        ("coordinate integer general\n-1 1 1\n", "line 2: 3 sizes"),
        ("coordinate integer general\n", "3 sizes are expected, found ''"),
        ("coordinate integer general\n1 1 1\n1 2 1\n", "an entry in column 2, outside 1 to 1"),
        ("coordinate integer general\n1 1 1\n1 0 1\n", "an entry in column 0, outside 1 to 1"),
        ("coordinate integer general\n1 1 1\n1 1 1\n1 1 1\n", "it has 2 entries or more, its header declares 1"),
        ("coordinate integer symmetric\n1 2 1\n1 1 1\n", "it is symmetric and has 1 rows and 2 columns"),
        ("coordinate real hermitian\n1 1 1\n1 1 1\n", "complex"),
        ("array pattern general\n1 1\n1\n", "'array pattern general' is not known"),
        ("array real general\n1 2\n1\n", "it has 1 numbers, its header declares 2"),
        ("vector real general\n1 2\n1\n", "is not known"),
    ],
)
def test_faulty_matrix_market_files_are_refused(tmp_path, header, match):
    path = write(tmp_path / "a.mtx", f"%%MatrixMarket matrix {header}")
    refused(lambda: read_counts(path), path, match)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo", "dia"])
def test_every_layout_of_scipy_is_read(tmp_path, layout):
    counts = np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 1, 5, 0], [0, 0, 3, 0]])
    matrix = sparse.csr_array(counts)
    matrix = matrix.tobsr((2, 2)) if layout == "bsr" else matrix.asformat(layout)
    sparse.save_npz(tmp_path / "a.npz", matrix)
    np.testing.assert_array_equal(whole(read_counts(tmp_path / "a.npz").source), counts)
    np.testing.assert_array_equal(read_table(tmp_path / "a.npz").read(), counts)


def forged(layout, **parts):
    usual = {"format": np.array(layout.encode()), "shape": np.array([2, 2]), "data": np.ones(2)}
    return {**usual, **{name: np.array(part) for name, part in parts.items()}}


@pytest.mark.parametrize("wrong", [10**6, 2, -1, -(10**9)])
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo"])
def test_indices_out_of_range_are_refused(tmp_path, layout, wrong):
    parts = {"indices": [0, wrong], "indptr": [0, 1, 2]}
    if layout == "bsr":
        parts |= {"data": np.ones((2, 1, 1))}
    if layout == "coo":
        parts = {"row": [0, wrong], "col": [0, 1]}
    np.savez(tmp_path / "a.npz", **forged(layout, **parts))
    for read in (read_counts, read_table, lambda path: read_views([path] * 3)):
        refused(lambda read=read: read(tmp_path / "a.npz"), tmp_path / "a.npz", "outside")


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        ("csr", {"indices": [0, 1], "indptr": [0, 2, 1]}),
        ("csr", {"indices": [0, 1], "indptr": [0, 5, 2]}),
        ("csr", {"indices": [0, 1], "indptr": [1, 1, 2]}),
        ("csr", {"indices": [0, 1], "indptr": [0, 1, 10**9]}),
        ("csc", {"indices": [0, 1], "indptr": [0, 2]}),
        ("csc", {"indices": [0.0, 1.0], "indptr": [0, 1, 2]}),
        ("csr", {"indices": [0, 1], "indptr": [0, 1, 2], "data": np.ones(2) * 1j}),
        ("csr", {"indices": [0, 1], "indptr": [0, 1, 2], "data": np.array(["a", "b"])}),
        ("csr", {"indices": [0, 1], "indptr": [0, 1, 2], "shape": [2]}),
        ("csr", {"indices": [0, 1], "indptr": [0, 1, 2], "shape": [-2, 2]}),
        ("bsr", {"indices": [0, 1], "indptr": [0, 1, 2], "data": np.ones((2, 3, 3))}),
        ("bsr", {"indices": [0, 1], "indptr": [0, 1, 2], "data": np.ones((2, 0, 1))}),
        ("bsr", {"indices": [0, 1], "indptr": [0, 1, 2]}),
        ("coo", {"row": [0], "col": [0, 1]}),
        ("coo", {"row": [0, 1]}),
        ("dia", {"offsets": [0, 1]}),
        ("dia", {"data": np.ones((1, 2)), "offsets": [0.5]}),
        ("lil", {}),
    ],
)
def test_forged_sparse_matrices_are_refused(tmp_path, layout, parts):
    np.savez(tmp_path / "a.npz", **forged(layout, **parts))
    refused(lambda: list(read_counts(tmp_path / "a.npz").source), tmp_path / "a.npz", "its sparse matrix|damaged")


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i2", ">u4", "f2", ">f2", "longdouble", "bool", "i1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_any_type_are_read(tmp_path, dtype, order):
    rows = np.arange(12).reshape(4, 3) % (2 if dtype == "bool" else 12)
    np.save(tmp_path / "a.npy", np.asarray(rows, dtype=dtype, order=order))
    np.savez(tmp_path / "a.npz", X=rows.astype(dtype))
    write(tmp_path / "b.npy.gz", gzip.compress((tmp_path / "a.npy").read_bytes()))
    for name in ("a.npy", "a.npz", "b.npy.gz"):
        path = tmp_path / name
        read = read_table(path).read()
        assert read.dtype.isnative
        assert read.dtype in (np.float32, np.float64) or read.dtype.kind in "iub"
        np.testing.assert_array_equal(read, rows)
        np.testing.assert_array_equal(whole(read_counts(path).source), rows)
        np.testing.assert_array_equal(read_signals(path).X, rows)
        np.testing.assert_array_equal(read_sequences(path, "features").X, rows)
        np.testing.assert_array_equal(read_views([path] * 3).read()[1], rows)


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 2), complex),
        np.zeros(3, [("a", "f8"), ("b", "i4")]),
        np.zeros((2, 2), "S3"),
        np.zeros((2, 2), "M8[s]"),
        np.array([[{}]], object),
        np.zeros((0, 3)),
        np.zeros((2, 2, 2)),
    ],
)
def test_arrays_of_other_things_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=array)
    for name in ("a.npy", "a.npz"):
        path = tmp_path / name
        for read in (read_counts, read_table, read_labels, read_signals, lambda path: read_views([path] * 3)):
            refused(lambda read=read, path=path: read(path), path, "numbers are needed|are needed|Object arrays")


@pytest.mark.parametrize("letter", [0x110000, 0xFFFFFFFF, 0xD800])
def test_strings_of_letters_that_are_none_are_refused(tmp_path, letter):
    strings = np.array(["ab", "c"])
    strings.view(np.uint32)[1] = letter
    np.save(tmp_path / "a.npy", strings)
    np.savez(tmp_path / "a.npz", X=np.arange(2), symbols=strings)
    for name in ("a.npy", "a.npz"):
        refused(lambda name=name: read_sequences(tmp_path / name), tmp_path / name, "letters that are none")


def test_headers_of_older_versions_are_read_without_a_warning(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    content = (tmp_path / "a.npy").read_bytes()
    path = write(tmp_path / "a.npy", content.replace(b"(2, 3), }  ", b"(2L, 3L), }"))
    np.testing.assert_array_equal(read_table(path).read(), np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_that_is_cut_while_it_is_read_is_an_error(tmp_path, monkeypatch, order):
    monkeypatch.setattr(stored, "BATCH_NUMBERS", 3000)
    path = tmp_path / "a.npy"
    np.save(path, np.asarray(small_rows(9000), order=order))
    batches = read_table(path).source()
    next(batches)
    os.truncate(path, 20_000)
    refused(lambda: list(batches), path, "cut short")
    refused(lambda: read_table(path), path, "it is cut short: its header says 216128 bytes, and it has 20000")
    refused(lambda: read_sequences(path, "features"), path, "it is cut short")


def test_a_compressed_array_that_is_cut_short_is_an_error(tmp_path):
    np.save(tmp_path / "a.npy", small_rows(900))
    path = write(tmp_path / "b.npy.gz", gzip.compress((tmp_path / "a.npy").read_bytes()[:5000]))
    refused(lambda: read_table(path).read(), path, "cut short")
    refused(lambda: read_labels(path), path, "cut short")


def sound(samples=b"\0\0" * 4, tag=1, channels=1, rate=8000, bits=16, frame=None, size=None, order="<", extra=b""):
    frame = channels * bits // 8 if frame is None else frame
    described = struct.pack(f"{order}HHIIHH", tag, channels, rate, rate * frame, frame, bits) + extra
    chunks = b"fmt " + struct.pack(f"{order}I", len(described)) + described
    chunks += b"LIST" + struct.pack(f"{order}I", 3) + b"abc\0"  # an odd length is filled up
    chunks += b"data" + struct.pack(f"{order}I", len(samples) if size is None else size) + samples
    return (b"RIFF" if order == "<" else b"RIFX") + struct.pack(f"{order}I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize(
    ("bits", "tag", "kind"), [(8, 1, "u1"), (16, 1, "i2"), (32, 1, "i4"), (64, 1, "i8"), (32, 3, "f4"), (64, 3, "f8")]
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_sounds_of_any_width_are_read(tmp_path, bits, tag, kind, order):
    samples = np.array([[0, 100], [50, 7], [3, 1]]).astype(f"{order}{kind}")
    path = write(tmp_path / "a.wav", sound(samples.tobytes(), tag=tag, channels=2, bits=bits, order=order))
    limit = {"u1": 127.0, "f4": 1.0, "f8": 1.0}.get(kind) or float(np.iinfo(kind).max)
    np.testing.assert_array_equal(read_signals(path).X, (samples.astype(float) - (128 if kind == "u1" else 0)) / limit)
    packed = write(tmp_path / "b.wav", gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_signals(packed).X, read_signals(path).X)


@pytest.mark.parametrize("order", ["<", ">"])
def test_sounds_of_three_bytes_are_those_of_scipy(tmp_path, order):
    content = bytes(range(256))[: 3 * 2 * 40]
    path = write(tmp_path / "a.wav", sound(content, channels=2, bits=24, order=order))
    np.testing.assert_array_equal(read_signals(path).X, wavfile.read(path)[1] / float(2**31 - 1))


def test_extensible_and_streamed_sounds_are_read(tmp_path):
    extra = struct.pack("<HHIH", 22, 16, 3, 1) + b"\0" * 14
    path = write(tmp_path / "a.wav", sound(b"\1\0" * 6, tag=0xFFFE, extra=extra, size=0xFFFFFFFF))
    np.testing.assert_array_equal(read_signals(path).X, np.full((6, 1), 1 / 32767))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (sound(size=1000), "cut short"),
        (sound(b""), "it holds no samples"),
        (sound(b"\0"), "it holds no samples"),
        (sound(channels=0, frame=2), "0 channels"),
        (sound(rate=0), "at 0 per second"),
        (sound(bits=0, frame=0), "of 0 bits"),
        (sound(bits=48), "of 48 bits"),
        (sound(tag=3, bits=16), "of kind 3"),
        (sound(tag=85), "of kind 85"),
        (sound(channels=2, frame=3), "2 channels of 16 bits in 3 bytes"),
        (sound()[:20], "damaged"),
        (sound()[:30], "damaged"),
        (sound()[:40], "damaged"),
        (sound()[:12], "damaged"),
    ],
)
def test_damaged_sounds_are_refused(tmp_path, content, match):
    path = write(tmp_path / "a.wav", content)
    refused(lambda: read_signals(path).X, path, match)


def test_a_sound_that_is_cut_while_it_is_read_is_an_error(tmp_path):
    path = write(tmp_path / "a.wav", sound(b"\0\0" * 5000))
    signals = read_signals(path)
    os.truncate(path, 2000)
    refused(lambda: signals.X, path, "cut short")


def test_a_header_may_hold_newlines(tmp_path):
    path = write(tmp_path / "a.csv", '"two\nlines","three\r\nlong\rlines"\n1,2\n3,4\n')
    table = read_table(path)
    assert table.names == ["two\nlines", "three\r\nlong\rlines"]
    np.testing.assert_array_equal(table.read(), [[1, 2], [3, 4]])


def test_every_kind_of_newline_is_kept_within_a_label(tmp_path):
    labels = ["a\rb", "a\nb", "a\r\nb", "\r", "c"]
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet"):
        write_table(tmp_path / name, {"x\ry": np.array(labels, dtype=object), "n": np.arange(5)})
        table = read_table(tmp_path / name)
        assert table.names == ["x\ry", "n"]
        assert table.read().parts[0].tolist() == labels


@pytest.mark.parametrize("name", ["a.npz", "a.mtx", "a.svm", "a.parquet"])
@pytest.mark.parametrize("count", [2.0**62, 2.0**63, 2.0**64, 1e300])
def test_huge_counts_are_written_as_they_are(tmp_path, name, count):
    write_counts(tmp_path / name, np.array([[count, 1.0]]))
    np.testing.assert_array_equal(whole(read_counts(tmp_path / name).source), [[count, 1.0]])


@pytest.mark.parametrize("name", ["a.ldac", "docword.a.txt"])
def test_counts_that_are_too_large_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"whole counts below 2\^63"):
        write_counts(tmp_path / name, np.array([[2.0**63, 1.0]]))
    assert os.listdir(tmp_path) == []


def test_binary_data_behind_the_first_lines_of_a_text_are_refused(tmp_path):
    path = write(tmp_path / "a.txt", "word\n" * 3000 + "\0\n")
    refused(lambda: read_counts(path, format="text"), path, "binary data")
