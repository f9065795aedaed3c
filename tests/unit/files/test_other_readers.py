"""Views, crowd labels, sequences and signals."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import wavfile

import odeco
from odeco.exceptions import InputFileError
from odeco.files import (
    opening,
    read_labels,
    read_sequences,
    read_signals,
    read_views,
    views,
    write_counts,
    write_table,
)
from tests.file_cases import small_counts, small_rows, write


def test_views_from_a_file_each(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "_ROWS", 7)
    rows, counts = small_rows(40), small_counts(40)
    write_table(tmp_path / "1.csv", rows)
    write_counts(tmp_path / "2.parquet", counts)
    np.save(tmp_path / "3.npy", rows[:, :2])
    write_counts(tmp_path / "docword.4.txt", counts)
    sparse.save_npz(tmp_path / "5.npz", counts)
    paths = [tmp_path / name for name in ("1.csv", "2.parquet", "3.npy", "docword.4.txt", "5.npz")]
    found = read_views(paths)
    assert found.format == ["csv", "parquet", "npy", "uci", "npz"]
    assert [len(names) for names in found.names] == [3, 12, 2, 12, 12]
    for _ in range(2):
        blocks = found.read()
        assert [sparse.issparse(block) for block in blocks] == [False, True, False, True, True]
        for block, expected in zip(blocks, [rows, counts, rows[:, :2], counts, counts], strict=True):
            dense = [part.toarray() if sparse.issparse(part) else part for part in (block, expected)]
            np.testing.assert_array_equal(*dense)


def test_views_of_one_table(tmp_path):
    rows = small_rows(20)
    write_table(tmp_path / "a.csv", np.hstack([rows, rows]), ["l.a", "l.b", "m:a", "m:b", "r", "l.c"])
    found = read_views(tmp_path / "a.csv")
    assert found.names == [["l.a", "l.b", "l.c"], ["m:a", "m:b"], ["r"]]
    np.testing.assert_array_equal(found.read()[0], rows[:, [0, 1, 2]])
    assert read_views(tmp_path / "a.csv", views=[["r"], ["l.a"], ["m:a"]]).names == [["r"], ["l.a"], ["m:a"]]
    np.savez(tmp_path / "a.npz", X10=rows[:, :1], X2=rows, X1=rows[:, :2])
    assert [len(names) for names in read_views(tmp_path / "a.npz").names] == [2, 3, 1]


def test_a_multi_view_mixture_fits_from_files(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 6)) + 4 * rng.integers(0, 2, 300)[:, np.newaxis]
    write_table(tmp_path / "a.csv", rows, ["u.1", "u.2", "v.1", "v.2", "w.1", "w.2"])
    model = odeco.MultiViewMixture(2, random_state=0).fit(read_views(tmp_path / "a.csv").source)
    expected = odeco.MultiViewMixture(2, random_state=0).fit([rows[:, :2], rows[:, 2:4], rows[:, 4:]])
    np.testing.assert_allclose(model.means_[0], expected.means_[0], rtol=1e-12)  # blocks may be summed otherwise


def test_views_that_do_not_fit_are_refused(tmp_path):
    write_table(tmp_path / "long.csv", small_rows(20))
    write_table(tmp_path / "short.csv", small_rows(19))
    found = read_views([tmp_path / "long.csv", tmp_path / "short.csv", tmp_path / "long.csv"])
    with pytest.raises(InputFileError, match=r"short\.csv: it ends after 19 rows, other views have more"):
        found.read()
    with pytest.raises(InputFileError, match="2 view.s. were found, and three are needed"):
        read_views([tmp_path / "long.csv"] * 2)
    write_table(tmp_path / "text.csv", {"u.a": [1], "v.a": ["x"], "w.a": [1]})
    with pytest.raises(InputFileError, match="these columns hold text: v.a"):
        read_views(tmp_path / "text.csv")
    write(tmp_path / "gap.csv", "u.a,v.a,w.a\n1,,2\n")
    with pytest.raises(InputFileError, match="the column 'v.a' has missing or infinite values"):
        read_views(tmp_path / "gap.csv").read()
    with pytest.raises(ValueError, match="paths is empty"):
        read_views([])
    with pytest.raises(ValueError, match="several files were given"):
        read_views([tmp_path / "long.csv"] * 3, views=[["a"]])
    np.savez(tmp_path / "none.npz", a=np.array(1.0))
    with pytest.raises(InputFileError, match="0 view"):
        read_views(tmp_path / "none.npz")


def test_labels_long_and_wide(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    given = np.where(rng.random((60, 4)) < 0.8, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    write_table(tmp_path / "wide.csv", given, ["ann", "bob", "cat", "dan"])
    write_table(tmp_path / "named.csv", {"item_id": np.arange(60), **{n: given[:, j] for j, n in enumerate("abcd")}})
    items, workers = np.divmod(np.arange(240), 4)
    write_table(tmp_path / "long.csv", {"worker": workers, "label": given.ravel(), "item": items})
    write_table(tmp_path / "other.csv", {"who": workers, "what": items, "said": given.ravel()})
    np.savez(tmp_path / "a.npz", crowd=np.column_stack([items, workers, given.ravel()]))
    wide = read_labels(tmp_path / "wide.csv")
    assert (wide.layout, wide.names, wide.items) == ("wide", ["ann", "bob", "cat", "dan"], None)
    expected = odeco.DawidSkene(2, random_state=0).fit(wide.X).confusion_
    named = read_labels(tmp_path / "named.csv")
    assert named.names == list("abcd")
    np.testing.assert_array_equal(named.items, np.arange(60))
    other = read_labels(tmp_path / "other.csv", layout="long", columns=["what", "who", "said"])
    for labels in (named, read_labels(tmp_path / "long.csv"), other, read_labels(tmp_path / "a.npz")):
        model = odeco.DawidSkene(2, layout=labels.layout, random_state=0).fit(labels.X)
        np.testing.assert_array_equal(model.confusion_, expected)


def test_labels_that_are_none_are_refused(tmp_path):
    write(tmp_path / "a.csv", "ann,bob\n,\n")
    with pytest.raises(InputFileError, match=r"a\.csv: X has no labels"):
        read_labels(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="layout must be"):
        read_labels(tmp_path / "a.csv", layout="tall")
    with pytest.raises(InputFileError, match="three columns, and 2 are named"):
        read_labels(tmp_path / "a.csv", layout="long", columns=["ann", "bob"])


@pytest.mark.parametrize("size", [3, 2**20])
def test_sequences_of_text(tmp_path, monkeypatch, size):
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    letters = read_sequences(write(tmp_path / "a.txt", "abéb\n\nba\n"))
    assert letters.symbols == ["a", "b", "é"]
    assert letters.unit == "characters"
    assert letters.X.tolist() == [0, 1, 2, 1, 1, 0]
    assert letters.lengths.tolist() == [4, 2]
    tokens = read_sequences(write(tmp_path / "b.txt", "up down\ndown\n"))
    assert (tokens.symbols, tokens.X.tolist(), tokens.lengths.tolist()) == (["down", "up"], [1, 0, 0], [2, 1])
    forced = read_sequences(tmp_path / "b.txt", unit="characters")
    assert " " in forced.symbols
    again = read_sequences(tmp_path / "b.txt", symbols=["left", "up", "down"])
    assert again.X.tolist() == [1, 2, 2]
    with pytest.raises(InputFileError, match="symbols that are not known: 'up'"):
        read_sequences(tmp_path / "b.txt", symbols=["down"])


def test_sequences_of_tables(tmp_path):
    write(tmp_path / "a.csv", "session_id,event\n1,x\n2,y\n1,z\n2,\n")
    found = read_sequences(tmp_path / "a.csv")
    assert (found.X.tolist(), found.lengths.tolist(), found.symbols) == ([0, 2, 1, -1], [2, 2], ["x", "y", "z"])
    write(tmp_path / "b.csv", "who,a,b\nu,1,2\nu,3,4\nv,5,6\n")
    features = read_sequences(tmp_path / "b.csv", "features", sequence="who")
    assert (features.X.tolist(), features.lengths.tolist()) == ([[1, 2], [3, 4], [5, 6]], [2, 1])
    assert features.names == ["a", "b"]
    counts = read_sequences(tmp_path / "b.csv", "counts", columns=["b"])
    assert (counts.X.tolist(), counts.lengths.tolist()) == ([[2], [4], [6]], [3])
    write(tmp_path / "dice.csv", "face\n6\n1\n6\n")
    assert read_sequences(tmp_path / "dice.csv").symbols == ["1", "6"]


def test_sequences_of_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([0, 1, 1]), lengths=np.array([1, 2]), vocab=np.array(["u", "v"]))
    found = read_sequences(tmp_path / "a.npz")
    assert (found.X.tolist(), found.lengths.tolist(), found.symbols) == ([0, 1, 1], [1, 2], ["u", "v"])
    np.save(tmp_path / "b.npy", small_rows(5))
    assert read_sequences(tmp_path / "b.npy", "features").lengths.tolist() == [5]
    np.save(tmp_path / "c.npy", np.array(["x", "y", "x"]))
    assert read_sequences(tmp_path / "c.npy").X.tolist() == [0, 1, 0]


def test_sequences_that_are_none_are_refused(tmp_path):
    rows = tmp_path / "rows.npy"
    np.save(rows, small_rows(5))
    for options, match in [
        ({}, "symbols are one for each step"),
        ({"kind": "counts"}, "values that are not counts"),
        ({"kind": "features", "columns": ["a"]}, "columns have no names"),
    ]:
        with pytest.raises(InputFileError, match=match):
            read_sequences(rows, **options)
    np.savez(tmp_path / "a.npz", X=np.arange(3), lengths=np.array([1, 1]))
    with pytest.raises(InputFileError, match="lengths add up to 2, but X has 3 observations"):
        read_sequences(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", X=np.arange(3), vocab=np.array(["a"]))
    with pytest.raises(InputFileError, match="it has the symbol 2, and there are names for 1"):
        read_sequences(tmp_path / "b.npz")
    write(tmp_path / "a.csv", "a,b\nx,y\n")
    with pytest.raises(InputFileError, match="which column holds the symbols. Name one of a, b"):
        read_sequences(tmp_path / "a.csv")
    with pytest.raises(InputFileError, match="these columns hold text: a, b"):
        read_sequences(tmp_path / "a.csv", "features")
    for wrong in ({"kind": "words"}, {"unit": "bytes"}):
        with pytest.raises(ValueError, match="must be one of"):
            read_sequences(tmp_path / "a.csv", **wrong)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(np.int16, 32767), (np.int32, 2**31 - 1), (np.uint8, 127), (np.float32, 1)]
)
def test_sounds_become_fractions(tmp_path, dtype, limit):
    wave = np.sin(np.arange(2000) / 10)[:, np.newaxis] * [0.9, 0.5]
    stored = (wave * limit + (128 if dtype == np.uint8 else 0)).astype(dtype)
    wavfile.write(tmp_path / "a.wav", 8000, stored)
    signals = read_signals(tmp_path / "a.wav")
    assert (signals.rate, signals.names, signals.format) == (8000.0, ["channel0", "channel1"], "wav")
    step = 1 / limit if limit > 1 else np.finfo(dtype).eps
    np.testing.assert_allclose(signals.X, wave, rtol=0, atol=1.5 * step)  # rounded towards zero, and 128 steps for 127


def test_silence_of_eight_bits_is_zero(tmp_path):
    """Samples of eight bits have no sign: 128 is silence, and 255 the loudest."""
    wavfile.write(tmp_path / "a.wav", 8000, np.array([128, 255, 1], dtype=np.uint8))
    assert read_signals(tmp_path / "a.wav").X.ravel().tolist() == [0.0, 1.0, -1.0]


def test_microphones_in_a_file_each(tmp_path):
    for name, n in (("left", 30), ("right", 20)):
        wavfile.write(tmp_path / f"{name}.wav", 8000, np.full(n, 100, dtype=np.int16))
    signals = read_signals([tmp_path / "left.wav", tmp_path / "right.wav"])
    assert signals.names == ["left", "right"]
    assert signals.X.shape == (20, 2)
    assert read_signals(tmp_path / "left.wav", columns=["channel0"]).X.shape == (30, 1)
    with pytest.raises(InputFileError, match="there is no channel 'up'"):
        read_signals(tmp_path / "left.wav", columns=["up"])
    wavfile.write(tmp_path / "slow.wav", 4000, np.zeros(9, dtype=np.int16))
    with pytest.raises(InputFileError, match="different rates"):
        read_signals([tmp_path / "left.wav", tmp_path / "slow.wav"])


def test_signals_of_tables_and_arrays(tmp_path):
    rows = small_rows(50)
    write_table(tmp_path / "a.csv", rows, ["u", "v", "w"])
    np.savez(tmp_path / "a.npz", X=rows, fs=250.0, channels=np.array(["u", "v", "w"]))
    np.save(tmp_path / "a.npy", rows)
    for name, rate in (("a.csv", None), ("a.npz", 250.0), ("a.npy", None)):
        signals = read_signals(tmp_path / name)
        np.testing.assert_array_equal(signals.X, rows)
        assert signals.rate == rate
    write(tmp_path / "gap.csv", "u,v\n1,2\n3,\n")
    with pytest.raises(InputFileError, match="row 2 has no number in the column 'v'"):
        read_signals(tmp_path / "gap.csv").X  # noqa: B018
    write(tmp_path / "text.csv", "u,v\n1,x\n")
    with pytest.raises(InputFileError, match="these columns hold text: v"):
        read_signals(tmp_path / "text.csv")
    with pytest.raises(InputFileError, match="wav"):
        read_signals(write(tmp_path / "a.wav", b"RIFF\x24\x00\x00\x00WAVEfmt "))


class TestSymbolsKeepTheirNames:
    def test_codes_of_many_digits_beside_a_missing_cell(self, tmp_path):
        found = read_sequences(write(tmp_path / "a.csv", "id,symbol\n1,10000001\n1,10000002\n1,\n1,10000001\n"))
        assert found.symbols == ["10000001", "10000002"]
        assert found.X.tolist() == [0, 1, -1, 0]

    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
    def test_codes_that_floats_cannot_hold(self, tmp_path, name):
        rows = {"a.csv": "id,symbol\n1,9007199254740993\n1,9007199254740992\n1,\n"}
        rows["a.jsonl"] = "".join(f'{{"symbol": {value}}}\n' for value in (2**53 + 1, 2**53, "null"))
        with pytest.raises(InputFileError, match=rf"{name}: .*9007199254740993"):
            read_sequences(write(tmp_path / name, rows[name]))

    def test_zeros_at_the_beginning(self, tmp_path):
        assert read_sequences(write(tmp_path / "a.csv", "symbol\n007\n7\n008\n")).symbols == ["007", "008", "7"]
        assert read_sequences(write(tmp_path / "b.csv", "symbol\n07\n08\n11\n")).symbols == ["11", "7", "8"]
        labels = read_labels(write(tmp_path / "c.csv", "item,worker,label\na,w1,007\na,w2,7\n"))
        assert labels.X["label"].to_numpy().tolist() == ["007", "7"]

    @pytest.mark.parametrize("rest", ["", "1,\n"])
    def test_truth(self, tmp_path, rest):
        found = read_sequences(write(tmp_path / "a.csv", f"id,symbol\n1,true\n1,false\n{rest}"))
        assert found.symbols == ["False", "True"]

    def test_numbers_that_would_wrap(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([0, 1, 2**31]))
        with pytest.raises(InputFileError, match="it has the symbol 2147483648"):
            read_sequences(tmp_path / "a.npy")
        np.save(tmp_path / "b.npy", np.array([0, 1, -(2**31) - 1]))
        assert read_sequences(tmp_path / "b.npy").X.tolist() == [0, 1, -1]

    def test_lengths_that_overflow(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.arange(3), lengths=np.array([2**63 - 1, 2**63 - 1, 5]))
        with pytest.raises(InputFileError, match="lengths add up to 18446744073709551619"):
            read_sequences(tmp_path / "a.npz")
