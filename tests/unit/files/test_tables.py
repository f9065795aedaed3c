"""`read_table`: columns of numbers and labels, from tables and arrays."""

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.exceptions import InputFileError
from odeco.files import Frame, opening, read_table, write_table
from tests.file_cases import TABLE_FILES, write


def failing(path, match, **options):
    with pytest.raises(InputFileError, match=match) as caught:
        read_table(path, **options).read()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def mixed(n=24):
    rng = np.random.default_rng(0)
    return {
        "height": np.round(rng.normal(size=n), 3),
        "age": rng.integers(0, 90, n),
        "member": rng.random(n) < 0.5,
        "colour": np.array(["red", "grün", "a, b", 'say "no"'], dtype=object)[rng.integers(0, 4, n)],
    }


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("size", [40, 2**22])
def test_mixed_columns_keep_their_kinds(tmp_path, monkeypatch, name, size):
    columns = mixed()
    write_table(tmp_path / name, columns)
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    table = read_table(tmp_path / name)
    assert table.names == list(columns)
    assert table.kinds == ["number", "integer", "truth", "label"]
    assert table.format == name.split(".")[1]
    assert not table.is_numeric
    for _ in range(2):
        read = table.read()
        for part, column in zip(read.parts, columns.values(), strict=True):
            assert part.dtype.kind == column.dtype.kind
            np.testing.assert_array_equal(part, column)


def test_columns_are_chosen_in_the_order_given(tmp_path):
    write_table(tmp_path / "a.csv", mixed())
    table = read_table(tmp_path / "a.csv", columns=["age", "height"])
    assert table.names == ["age", "height"]
    assert table.is_numeric
    np.testing.assert_array_equal(np.asarray(table.read())[:, 0], mixed()["age"])
    failing(tmp_path / "a.csv", "there is no column 'weight', it has height, age, member, colour", columns=["weight"])
    failing(tmp_path / "a.csv", "named twice", columns=["age", "age"])
    failing(tmp_path / "a.csv", "no columns are chosen", columns=[])


@pytest.mark.parametrize("name", TABLE_FILES)
def test_models_fit_from_every_format(tmp_path, name):
    rows = np.random.default_rng(0).laplace(size=(2000, 3)) * [1, 2, 3]
    write_table(tmp_path / name, rows)
    table = read_table(tmp_path / name)
    expected = odeco.GaussianMixture(1, random_state=0).fit(rows).means_
    np.testing.assert_array_equal(odeco.GaussianMixture(1, random_state=0).fit(table.source).means_, expected)
    expected = odeco.ICA(3, random_state=0).fit(rows).mixing_
    np.testing.assert_array_equal(odeco.ICA(3, random_state=0).fit(table.source).mixing_, expected)


def test_a_product_mixture_fits_from_mixed_columns(tmp_path):
    write_table(tmp_path / "a.csv", mixed(60))
    table = read_table(tmp_path / "a.csv")
    model = odeco.ProductMixture(1, random_state=0).fit(table.source)
    assert model.predict(table.read()).shape == (60,)


def test_missing_values(tmp_path):
    write(tmp_path / "a.csv", "x,n,name\n1.5,,a\nNA,2,\n,3,c\n")
    table = read_table(tmp_path / "a.csv")
    assert table.kinds == ["number", "integer", "label"]
    x, n, name = table.read().parts
    np.testing.assert_array_equal(x, [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(n, [np.nan, 2, 3])
    assert name.tolist() == ["a", None, "c"]
    write(tmp_path / "a.jsonl", '{"x": 1.5, "name": "a"}\n\n{"name": null, "n": 2}\n')
    x, name, n = read_table(tmp_path / "a.jsonl").read().parts
    np.testing.assert_array_equal(x, [1.5, np.nan])
    np.testing.assert_array_equal(n, [np.nan, 2])
    assert name.tolist() == ["a", None]


def test_a_column_of_mixed_types_holds_labels(tmp_path, monkeypatch):
    """Whatever the first block says: types are known after one pass over all."""
    monkeypatch.setattr(opening, "BLOCK_BYTES", 8)
    write(tmp_path / "a.csv", "x,y\n" + "1,1\n" * 1000 + "two,2.5\n")
    table = read_table(tmp_path / "a.csv")
    assert table.kinds == ["label", "number"]
    x, y = table.read().parts
    assert x.tolist() == ["1"] * 1000 + ["two"]
    assert y.tolist() == [1.0] * 1000 + [2.5]


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        ("a;b\n1;2\n", ["a", "b"], [[1, 2]]),
        ("a|b\n1|2\n", ["a", "b"], [[1, 2]]),
        ("a\tb\n1\t2\n", ["a", "b"], [[1, 2]]),
        ("1,2\n3,4\n", ["x0", "x1"], [[1, 2], [3, 4]]),
        ("a\n1\n2\n", ["a"], [[1], [2]]),
        ("a,b\r\n 1 ,2\r\n", ["a", "b"], [[1, 2]]),
        (",b\n1,2\n", ["x0", "b"], [[1, 2]]),
        ("\n\na,b\n1,2\n\n3,4\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", ["a", "b"], [[1, 2]]),
    ],
)
def test_delimiters_and_headers(tmp_path, content, names, rows):
    table = read_table(write(tmp_path / "a.csv", content))
    assert table.names == names
    np.testing.assert_array_equal(table.read(), rows)


def test_a_row_may_be_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK_BYTES", 2**10)
    text = "long " * 40_000  # more than Python's own reader takes for a field
    path = write(tmp_path / "a.csv", f"a,text\n1,{text}\n2,short\n")
    assert read_table(path).read().parts[1].tolist() == [text, "short"]
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", str(2**18))
    path = write(tmp_path / "b.csv", 'a,text\n1,"' + "long and\n" * 80_000 + "2,short\n")
    failing(path, "a quote is opened and never closed")


def test_quotes_may_hold_newlines(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\n"one\ntwo",1\nthree,2\n')
    assert read_table(path).read().parts[0].tolist() == ["one\ntwo", "three"]


def test_arrays_and_sparse_formats(tmp_path):
    rows = np.arange(12.0).reshape(4, 3) - 3
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "column.npy", np.arange(3))
    np.savez(tmp_path / "a.npz", X=rows, columns=np.array(["a", "b", "c"]))
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(rows))
    write(tmp_path / "a.svm", "1 1:-3 2:-2 3:-1\n1 1:0 2:1 3:2\n1 1:3 2:4 3:5\n1 1:6 2:7 3:8\n")
    write(
        tmp_path / "a.mtx",
        "%%MatrixMarket matrix array real general\n4 3\n-3\n0\n3\n6\n-2\n1\n4\n7\n-1\n2\n5\n8\n",
    )
    for name in ("a.npy", "a.npz", "s.npz", "a.svm", "a.mtx"):
        np.testing.assert_array_equal(read_table(tmp_path / name).read(), rows)
    assert read_table(tmp_path / "a.npz", columns=["c"]).names == ["c"]
    np.testing.assert_array_equal(read_table(tmp_path / "a.npz", columns=["c"]).read(), rows[:, 2:])
    assert read_table(tmp_path / "column.npy").kinds == ["integer"]
    failing(tmp_path / "a.npy", "there is no column 'a'", columns=["a"])


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv", "a,b\n", "it has a header and no rows"),
        ("a.csv", "\n\n", "it holds no rows"),
        ("a.csv", "a,b\n1,2\n1\n", "Expected 2 columns, got 1"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "Expected 2 columns, got 3"),
        ("a.csv", "a,a\n1,2\n", "two columns are called 'a'"),
        ("a.csv", b"a,b\n\xe9,2\n", "give the encoding"),
        ("a.csv", b"a,b\n\0,2\n", "binary data"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "line 2: it is not JSON"),
        ("a.jsonl", "[1, 2]\n", "line 1: an object .* found a list"),
        ("a.jsonl", "{}\n", "no objects with values"),
        ("a.jsonl", '{"a": "\\ud800"}\n', "line 1: it is not JSON"),
        ("a.jsonl", '{"a": [1]}\n', "the column 'a' holds neither numbers nor text"),
        ("a.txt", "a b\nc\n", "a.txt"),
    ],
)
def test_faulty_tables_are_refused(tmp_path, name, content, match):
    path = write(tmp_path / name, content)
    if name == "a.txt":
        assert read_table(path).names == ["a b"]
    else:
        failing(path, match)


def test_other_encodings(tmp_path):
    path = write(tmp_path / "a.csv", "größe,b\nä,2\n".encode("latin-1"))
    table = read_table(path, encoding="latin-1")
    assert table.names == ["größe", "b"]
    assert table.read().parts[0].tolist() == ["ä"]


def test_a_frame_is_read_like_a_data_frame():
    frame = Frame(("a", "b"), (np.array([1, 2]), np.array(["x", None], dtype=object)))
    assert frame.shape == (2, 2)
    assert len(frame) == 2
    assert frame["b"].to_numpy().tolist() == ["x", None]
    assert frame.iloc[:1].to_numpy().tolist() == [[1, "x"]]
    assert np.asarray(Frame(("a",), (np.array([1, 2]),)), dtype=float).tolist() == [[1.0], [2.0]]
