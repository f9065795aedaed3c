"""`read_counts`: formats of counts and texts, and what is refused."""

import gzip

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

import odeco
from odeco import archive
from odeco.exceptions import InputFileError
from odeco.files import opening, read_counts, write_counts, write_table
from tests.file_cases import WORDS, LetterCounter, small_counts, whole, write

UCI = "3\n4\n4\n1 1 2\n1 4 1\n3 2 1\n3 3 5\n"
ROWS = [[2, 0, 0, 1], [0, 0, 0, 0], [0, 1, 5, 0]]


def failing(path, match, **options):
    with pytest.raises(InputFileError, match=match) as caught:
        whole(read_counts(path, **options).source)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("docword.a.txt", UCI),
        ("docword.a.txt.gz", gzip.compress(UCI.encode(), mtime=0)),
        ("docword.tabs.txt", UCI.replace(" ", "\t").replace("\n", "\r\n")),
        ("docword.wide.txt", UCI.replace(" ", "  ") + "\n\n"),
        ("a.dat", "2 0:2 3:1\n0\n2 1:1 2:5\n"),
        ("a.svm", "1 1:2 4:1\n-1\n0.5 2:1 3:5\n"),
        ("comments.svm", "# made by hand\n1 1:2 4:1 # first\n-1 qid:3\n0.5 2:1 3:5.0\n"),
        ("labels.svm", "1,2 1:2 4:1\n1\n2,3 2:1 3:5\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n% note\n3 4 4\n1 1 2\n1 4 1\n3 2 1\n3 3 5\n"),
        ("unsorted.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 4\n3 3 5\n1 4 1\n3 2 1\n1 1 2\n"),
        ("dense.mtx", "%%MatrixMarket matrix array integer general\n3 4\n2\n0\n0\n0\n0\n1\n0\n0\n5\n1\n0\n0\n"),
        ("a.csv", "a,b,c,d\n2,0,0,1\n0,0,0,0\n0,1,5,0\n"),
    ],
)
def test_every_text_format_gives_the_same_rows(tmp_path, name, content):
    counts = read_counts(write(tmp_path / name, content))
    assert counts.source.n_features == 4
    np.testing.assert_array_equal(whole(counts.source), ROWS)
    np.testing.assert_array_equal(whole(counts.source), ROWS)  # again


def test_arrays_of_numpy_and_scipy(tmp_path):
    np.save(tmp_path / "a.npy", np.array(ROWS))
    np.savez(tmp_path / "x.npz", X=np.array(ROWS), vocab=np.array(list("abcd")))
    sparse.save_npz(tmp_path / "csr.npz", sparse.csr_matrix(ROWS))
    sparse.save_npz(tmp_path / "csc.npz", sparse.csc_matrix(np.array(ROWS)))
    matrix = sparse.csr_array(ROWS)
    parts = {f"counts_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "parts.npz", **parts)
    for name in ("a.npy", "x.npz", "csr.npz", "csc.npz", "parts.npz"):
        np.testing.assert_array_equal(whole(read_counts(tmp_path / name).source), ROWS)
    assert read_counts(tmp_path / "x.npz").vocabulary == list("abcd")


@pytest.mark.parametrize("size", [1, 3, 10, 64])
def test_triplets_are_the_same_whatever_the_blocks(tmp_path, monkeypatch, size):
    counts = small_counts()
    for name in ("docword.a.txt", "a.mtx"):
        write_counts(tmp_path / name, counts)
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    monkeypatch.setenv("ODECO_MAX_MARKET_ENTRIES", "1")  # streamed although it is small
    for name in ("docword.a.txt", "a.mtx"):
        np.testing.assert_array_equal(whole(read_counts(tmp_path / name).source), counts.toarray())


def test_a_large_matrix_market_file_is_streamed_as_scipy_reads_it(tmp_path, monkeypatch):
    values = sparse.random_array((30, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    scipy_io.mmwrite(tmp_path / "real.mtx", values)
    write(tmp_path / "pattern.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 1\n1 3\n2 2\n")
    monkeypatch.setenv("ODECO_MAX_MARKET_ENTRIES", "1")
    np.testing.assert_array_equal(whole(read_counts(tmp_path / "real.mtx").source), values.toarray())
    np.testing.assert_array_equal(whole(read_counts(tmp_path / "pattern.mtx").source), [[1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 0:2 2:1\n0 1:3\n", [[2, 0, 1], [0, 3, 0]]),  # columns count from 0 where a column 0 occurs
        ("1 1:2 3:1\n0 2:3\n", [[2, 0, 1], [0, 3, 0]]),  # and from 1 elsewhere
        ("1 2:2 3:1\n0 2:3\n", [[0, 2, 1], [0, 3, 0]]),  # whether there is a column 1 or not
    ],
)
def test_columns_of_svmlight_count_from_zero_or_one(tmp_path, content, expected):
    np.testing.assert_array_equal(whole(read_counts(write(tmp_path / "a.svm", content)).source), expected)


def test_the_vocabulary_lies_beside(tmp_path):
    path = write(tmp_path / "docword.news.txt", UCI)
    assert read_counts(path).vocabulary is None
    write(tmp_path / "vocab.news.txt", "a\nb\nc\nd\n")
    assert read_counts(path).vocabulary == list("abcd")
    other = write(tmp_path / "other.ldac", "1 0:1\n")
    write(tmp_path / "vocab.txt", "x\ny\n")
    counts = read_counts(other)
    assert counts.vocabulary == ["x", "y"]
    assert counts.source.n_features == 2
    assert read_counts(path, vocabulary=list("wxyz")).vocabulary == list("wxyz")
    assert read_counts(path, vocabulary=tmp_path / "vocab.news.txt").vocabulary == list("abcd")


def test_columns_beyond_the_files_own_are_empty(tmp_path):
    path = write(tmp_path / "a.ldac", "1 1:3\n")
    np.testing.assert_array_equal(whole(read_counts(path, n_features=4).source), [[0, 3, 0, 0]])
    failing(path, "it has 2 columns, but 1 are expected", n_features=1)
    failing(path, "it has 2 columns, but the vocabulary has 1 words", vocabulary=["a"])
    with pytest.raises(ValueError, match="n_features must be a positive integer, got 0"):
        read_counts(path, n_features=0)


def test_texts_are_counted(tmp_path):
    lines = write(tmp_path / "a.txt", "ab\n\nbcc")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    write(tmp_path / "folder" / "1.txt", "ab")
    write(tmp_path / "folder" / "2.txt", "")
    write(tmp_path / "folder" / "deep" / "3.txt", "bcc")
    write(tmp_path / "folder" / ".hidden", b"\0")
    write(tmp_path / "a.csv", 'id,text\n1,"ab"\n2,\n3,bcc\n')
    write(tmp_path / "a.jsonl", '{"id": 1, "text": "ab"}\n{"id": 2}\n{"id": 3, "text": "bcc"}\n')
    write_table(tmp_path / "a.parquet", {"id": [1, 2, 3], "text": np.array(["ab", None, "bcc"], dtype=object)})
    for path in (lines, tmp_path / "folder", tmp_path / "a.csv", tmp_path / "a.jsonl", tmp_path / "a.parquet"):
        counts = read_counts(path, vectorizer=LetterCounter())
        np.testing.assert_array_equal(whole(counts.source), [[1, 1, 0], [0, 0, 0], [0, 1, 2]])
        assert counts.vocabulary == ["a", "b", "c"]
        assert [list(counts.documents()) for _ in range(2)] == [["ab", "", "bcc"]] * 2
        again = read_counts(path, vectorizer=counts.vectorizer)  # fitted: used as it is
        np.testing.assert_array_equal(whole(again.source), whole(counts.source))


def test_the_column_of_texts_is_found_or_named(tmp_path):
    path = write(tmp_path / "a.csv", "title,text,year\nx,ab,1\ny,c,2\n")
    assert read_counts(path, vectorizer=LetterCounter()).column == "text"
    assert read_counts(path, column="title", vectorizer=LetterCounter()).vocabulary == ["x", "y"]
    failing(path, "there is no column 'body', it has title, text, year", column="body")
    failing(path, "the column 'year' holds numbers, and text is expected", column="year")
    two = write(tmp_path / "b.csv", "one,two\nx,ab\n")
    failing(two, "which column holds the text. Name one of one, two")


def test_options_that_do_not_belong_are_refused(tmp_path):
    path = write(tmp_path / "docword.a.txt", UCI)
    failing(path, "column is for texts", column="text")
    failing(path, "vectorizer is for texts", vectorizer=LetterCounter())
    text = write(tmp_path / "a.txt", "ab\n")
    with pytest.raises(ValueError, match="give one of them"):
        read_counts(text, vocabulary=["a"], vectorizer=LetterCounter())
    with pytest.raises(ValueError, match="n_features is for formats of counts"):
        read_counts(text, n_features=3, vectorizer=LetterCounter())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("3\n4\n", "begins with three lines"),
        ("3\nfour\n4\n", "begins with three lines"),
        ("0\n4\n0\n", "declares 0 documents"),
        ("3\n99999999999\n4\n1 1 1\n", "has 99999999999 columns"),
        ("99999999999\n4\n1\n1 1 1\n", "damaged"),
        ("3\n4\n4\n1 1 2\n", "has 1 entries, its header declares 4: is it cut short"),
        ("3\n4\n1\n1 1 2\n2 1 1\n", "has 2 entries or more, its header declares 1"),
        ("3\n4\n1\n1 5 2\n", "row 1 has the word number 4 .counted from 0., outside 0 to 3"),
        ("3\n4\n1\n1 0 2\n", "row 1 has the word number -1"),
        ("3\n4\n1\n4 1 2\n", "document 4, outside 1 to 3"),
        ("3\n4\n1\n0 1 2\n", "document 0, outside 1 to 3"),
        ("3\n4\n2\n2 1 2\n1 1 2\n", "not in order"),
        ("3\n4\n1\n1 1 -2\n", "row 1 has the count -2: counts must be finite and not negative"),
        ("3\n4\n2\n1 1 1\n1 2\n", "line 5: 3 numbers are expected on a line, found 2"),
        ("3\n4\n2\n1 1 1\n1 two 1\n", "line 5: could not convert string 'two'"),
        ("3\n4\n1\n1 1 1.5\n", "line 4: could not convert string '1.5'"),
        ("3\n4\n1\n1 1 99999999999999999999\n", "could not convert"),
        ("3\n4\n1\n1 1\n", "3 numbers are expected on a line, found 2"),
    ],
)
def test_a_faulty_docword_file_is_refused(tmp_path, content, match):
    failing(write(tmp_path / "docword.a.txt", content), match)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.ldac", "2 0:1\n", "line 1: 2 words are announced and 1 pairs follow"),
        ("a.ldac", "1 0:1\n\n1 0:1 1:1\n", "line 3: 1 words are announced and 2 pairs follow"),
        ("a.ldac", "1 0:1\n1 a:1\n", "line 2 is '1 a:1', expected the number of words"),
        ("a.ldac", "1 0:1.5\n", "not whole numbers"),
        ("a.ldac", "1 -1:1\n", "from line 1 on there is the id -1"),
        ("a.ldac", "1 0:-1\n", "row 1 has the count -1"),
        ("a.ldac", "1 99999999999:1\n", "columns"),
        ("a.ldac", "0\n0\n", "nothing to fit"),
        ("a.svm", "1 2:1\nx 3:y\n", "line 2 is 'x 3:y', expected a label"),
        ("a.svm", "1 -2:1\n", "from line 1 on there is the id -2"),
        ("a.svm", "1 2:nan\n", "row 1 has the count nan"),
        ("a.svm", "1 1:1 2\n", "expected a label"),
        ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 1\n2 1 1\n", "a.mtx"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n", "a.mtx"),
        ("a.mtx", "%%MatrixMarket tensor\n", "first line"),
        ("a.csv", "a,b\n1,-2\n", "row 1 has the count -2"),
        ("a.csv", "a,b\n1,\n", "row 1 has the count nan"),
        ("a.txt", "\n\n", "it holds no text, only empty lines"),
    ],
)
def test_other_faulty_files_are_refused(tmp_path, name, content, match):
    failing(write(tmp_path / name, content), match, **({"vectorizer": LetterCounter()} if name == "a.txt" else {}))


def test_faulty_arrays_are_refused(tmp_path):
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    failing(tmp_path / "text.npy", "numbers are needed")
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    failing(tmp_path / "cube.npy", "rows and columns are needed")
    np.save(tmp_path / "object.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    failing(tmp_path / "object.npy", "Python objects")
    np.save(tmp_path / "cut.npy", np.ones((100, 100)))
    write(tmp_path / "cut.npy", (tmp_path / "cut.npy").read_bytes()[:1000])
    failing(tmp_path / "cut.npy", "cut.npy")
    np.savez(tmp_path / "two.npz", a=np.eye(2), b=np.eye(3))
    failing(tmp_path / "two.npz", "which array")
    np.savez(tmp_path / "words.npz", X=np.eye(2), vocab=np.array(["a"]))
    failing(tmp_path / "words.npz", "it has 2 columns and 1 words")
    wrong = {"data": np.ones(1), "indices": np.array([7]), "indptr": np.array([0, 1]), "shape": np.array([1, 3])}
    np.savez(tmp_path / "csr.npz", **wrong)
    failing(tmp_path / "csr.npz", "csr.npz")
    write(tmp_path / "cut.npz", (tmp_path / "two.npz").read_bytes()[:200])
    failing(tmp_path / "cut.npz", "zip")
    archive.write(tmp_path / "model.odeco", "model", 1, {}, {"a": np.eye(2)})
    failing(tmp_path / "model.odeco", "a file that odeco wrote")


def test_empty_folders_and_binary_files_in_folders(tmp_path):
    failing(tmp_path, "the folder holds no files", vectorizer=LetterCounter())
    write(tmp_path / "a.txt", b"a\0b")
    with pytest.raises(InputFileError, match=r"a\.txt: it holds binary data"):
        read_counts(tmp_path, vectorizer=LetterCounter())


def test_a_format_can_be_forced(tmp_path):
    path = write(tmp_path / "a.txt", "2 0:1 1:1\n")
    assert read_counts(path).format == "ldac"
    assert read_counts(path, format="text", vectorizer=LetterCounter()).format == "text"
    failing(path, "begins with three lines", format="uci")
    with pytest.raises(ValueError, match="format must be"):
        read_counts(path, format="wav")


def test_a_fit_from_a_file_is_the_fit_from_memory(tmp_path):
    """Batches are those of `as_source`, so that even the rounding is the same."""
    drawn = odeco.simulate.lda_documents(400, np.full((3, 30), 1 / 30) + np.eye(3, 30), [0.2] * 3, random_state=0)
    write_counts(tmp_path / "a.parquet", drawn.counts)
    model = odeco.LatentDirichletAllocation(3, refine=None, random_state=0)
    from_memory = model.fit(drawn.counts).components_
    np.testing.assert_array_equal(model.fit(read_counts(tmp_path / "a.parquet").source).components_, from_memory)


def test_words_travel_with_the_counts(tmp_path):
    for name in ("a.parquet", "a.npz", "a.mtx", "docword.a.txt"):
        write_counts(tmp_path / name, small_counts(), WORDS)
        assert read_counts(tmp_path / name).vocabulary == WORDS


def test_texts_are_counted_by_the_librarys_own_vectorizer(tmp_path):
    path = write(tmp_path / "a.txt", "a rose is a rose\n\nthe sky is blue\n")
    counts = read_counts(path)
    assert counts.vocabulary == ["blue", "is", "rose", "sky", "the"]
    np.testing.assert_array_equal(whole(counts.source), [[0, 1, 2, 0, 0], [0] * 5, [1, 1, 0, 1, 1]])
    chosen = read_counts(path, vocabulary=["sky", "rose", "moon"])
    assert chosen.vocabulary == ["sky", "rose", "moon"]
    np.testing.assert_array_equal(whole(chosen.source), [[0, 2, 0], [0, 0, 0], [1, 0, 0]])
    failing(write(tmp_path / "b.txt", "a b c\n"), "no words")
