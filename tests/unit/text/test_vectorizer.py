"""The Vectorizer: its options, its errors, and counts by a naive loop."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import odeco
from odeco.kernels import threads
from odeco.sources import Source
from odeco.text import Vectorizer, counting, vectorizer
from odeco.text.characters import letters
from odeco.text.lexicon import Lexicon, spell
from odeco.text.matrices import BlockStore
from tests.oracles.word_counts import count_words

DOCUMENTS = [
    "A rose is a rose; is a ROSE.",
    "",
    "x y z",
    "Straße, ÉCOLE, naïve: don't_stop 42 7",
    "İstanbul ΣΟΦΌΣ ὈΔΥΣΣΕΎΣ Σ",
    "日本語 テキスト 😀ab cd\u0301ef \ud800gh",
    "rose rose " * 200,
    "e\u0301cole ﬁsh Ǆungla ŉoun",
]


def rows_of(matrix, words) -> list[dict[str, int]]:
    matrix = sparse.csr_matrix(matrix)
    return [{words[j]: int(matrix[i, j]) for j in matrix[[i]].indices} for i in range(matrix.shape[0])]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("stop_words", [None, ["is", "rose"]])
def test_counts_are_those_of_a_naive_loop(lowercase, ngram_range, stop_words):
    options = {"lowercase": lowercase, "ngram_range": ngram_range, "stop_words": stop_words}
    chosen = Vectorizer(**options)
    counts = chosen.fit_transform(DOCUMENTS)
    expected = count_words(DOCUMENTS, **options)
    words = chosen.get_feature_names_out()
    assert list(words) == sorted(set().union(*expected))
    assert rows_of(counts, words) == [dict(row) for row in expected]
    assert rows_of(chosen.transform(DOCUMENTS), words) == [dict(row) for row in expected]


def test_every_character_is_what_the_regular_expression_says():
    """All 1,114,112 code points; those that lower case makes two of, or that depend on their neighbours, are two."""
    table, plain = letters(True), letters(False)
    unlike = []
    for code in range(0x110000):
        lower = chr(code).lower()
        if len(lower) != 1 or code == 0x3A3:
            unlike.append(code)
            continue
        if table[code] != (ord(lower) if lower.isalnum() or lower == "_" else 0):
            unlike.append(code)
    assert unlike == [0x130, 0x3A3]
    everything = "".join(map(chr, range(0x110000)))
    assert [m.start() for m in re.finditer(r"\w", everything)] == np.flatnonzero(plain).tolist()


def test_the_result_is_a_canonical_matrix_of_whole_numbers():
    counts = Vectorizer().fit_transform(DOCUMENTS)
    assert sparse.isspmatrix_csr(counts)
    assert counts.dtype == np.int64
    copy = sparse.csr_matrix((counts.data, counts.indices, counts.indptr), counts.shape)
    assert copy.has_canonical_format


@pytest.mark.parametrize("n_threads", ["1", "2", "5"])
@pytest.mark.parametrize("letters_per_batch", [1, 40, 10**6])
def test_batches_and_threads_do_not_matter(n_threads, letters_per_batch, monkeypatch):
    expected = Vectorizer(ngram_range=(1, 2))
    counts = expected.fit_transform(DOCUMENTS)
    monkeypatch.setenv("ODECO_NUM_THREADS", n_threads)
    monkeypatch.setattr(counting, "_BATCH_LETTERS", letters_per_batch)
    monkeypatch.setattr(counting, "_READ", 1)
    assert threads.thread_count() == int(n_threads)
    other = Vectorizer(ngram_range=(1, 2))
    assert (other.fit_transform(iter(DOCUMENTS)) != counts).nnz == 0
    assert other.vocabulary_ == expected.vocabulary_
    assert (other.transform(DOCUMENTS) != counts).nnz == 0


def test_many_words_make_the_lexicon_grow():
    rng = np.random.default_rng(0)
    documents = [" ".join(f"w{n}" for n in rng.integers(0, 30_000, 400)) for _ in range(100)]
    documents.append("long" * 50_000)
    ours, theirs = Vectorizer(ngram_range=(1, 2)), CountVectorizer(ngram_range=(1, 2))
    assert (ours.fit_transform(documents) != theirs.fit_transform(documents)).nnz == 0
    assert ours.vocabulary_ == theirs.vocabulary_


def test_equal_hashes_are_not_equal_words():
    """Where all hashes are the same, all words are told apart nevertheless."""
    lexicon = Lexicon()
    words = spell([f"word{i} and longer{i}" for i in range(50)], True)
    same = replace(words, digests=np.full_like(words.digests, 7))
    numbers = lexicon.number(same)
    assert len(lexicon) == 101
    assert lexicon.names(numbers)[:6] == ["word0", "and", "longer0", "word1", "and", "longer1"]
    np.testing.assert_array_equal(lexicon.number(same), numbers)


class TestLimits:
    TEXTS = ("aa bb cc dd", "aa bb cc", "aa bb", "aa ee ee ee")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"min_df": 2}, ["aa", "bb", "cc"]),
            ({"min_df": 0.75}, ["aa", "bb"]),
            ({"max_df": 3}, ["bb", "cc", "dd", "ee"]),
            ({"max_df": 0.5}, ["cc", "dd", "ee"]),
            ({"max_features": 2}, ["aa", "bb"]),
            ({"max_features": 2, "max_df": 1}, ["dd", "ee"]),
            ({"stop_words": ["aa", "bb"]}, ["cc", "dd", "ee"]),
            ({"max_df": 1.0, "min_df": 0.0}, ["aa", "bb", "cc", "dd", "ee"]),
        ],
    )
    def test_words_that_stay(self, options, words):
        assert list(Vectorizer(**options).fit(self.TEXTS).vocabulary_) == words

    def test_english_stop_words(self):
        assert list(Vectorizer(stop_words="english").fit(["The cat is on the mat"]).vocabulary_) == ["cat", "mat"]

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"min_df": 0}, "min_df"),
            ({"min_df": -1}, "min_df"),
            ({"min_df": 1.5}, "min_df"),
            ({"min_df": True}, "min_df"),
            ({"min_df": "2"}, "min_df"),
            ({"max_df": 0}, "max_df"),
            ({"max_df": float("nan")}, "max_df"),
            ({"max_features": 0}, "max_features"),
            ({"max_features": 2.0}, "max_features"),
            ({"stop_words": "german"}, "stop_words"),
            ({"stop_words": [1]}, "stop_words"),
            ({"ngram_range": (2, 1)}, "ngram_range"),
            ({"ngram_range": (0, 1)}, "ngram_range"),
            ({"ngram_range": 2}, "ngram_range"),
            ({"ngram_range": (1, 1, 1)}, "ngram_range"),
            ({"min_df": 3, "max_df": 2}, "max_df=2 is fewer"),
            ({"min_df": 4, "stop_words": ["aa"]}, "no word is left"),
            ({"stop_words": ["aa", "bb", "cc", "dd", "ee"]}, "no words"),
        ],
    )
    def test_options_that_cannot_be_used(self, options, match):
        with pytest.raises(ValueError, match=match):
            Vectorizer(**options).fit(self.TEXTS)


@pytest.mark.parametrize(
    "documents", ["one text", b"bytes", [], [""], ["a b c"], [None], ["a", 1.5], [b"bytes"], [["aa"]]]
)
def test_documents_that_cannot_be_counted(documents):
    with pytest.raises(ValueError, match="documents"):
        Vectorizer().fit_transform(documents)


def test_the_wrong_document_is_named():
    with pytest.raises(ValueError, match=r"document 2 is nan \(float\)"):
        Vectorizer().fit(["aa", "bb", float("nan")])


def test_transform_needs_a_vocabulary():
    with pytest.raises(NotFittedError):
        Vectorizer().transform(["aa"])
    with pytest.raises(NotFittedError):
        Vectorizer().get_feature_names_out()


def test_transform_of_nothing_and_of_unknown_words():
    fitted = Vectorizer().fit(["aa bb"])
    assert fitted.transform([]).shape == (0, 2)
    assert fitted.transform(["cc dd", "", "bb bb"]).toarray().tolist() == [[0, 0], [0, 0], [0, 2]]


def test_unknown_words_and_stop_words_in_n_grams():
    """An unknown word stands between its neighbours, a stop word does not."""
    options = {"ngram_range": (2, 2), "stop_words": ["the"]}
    ours, theirs = Vectorizer(**options), CountVectorizer(**options)
    ours.fit(["in the house", "red house"])
    theirs.fit(["in the house", "red house"])
    texts = ["in house", "in the the house", "in new house", "red the house red house"]
    assert ours.transform(texts).toarray().tolist() == theirs.transform(texts).toarray().tolist()


class TestBatches:
    def test_a_source_that_any_fit_takes(self):
        rng = np.random.default_rng(1)
        words = [f"word{i}" for i in range(40)]
        texts = [" ".join(rng.choice(words[:20] if i % 2 else words[20:], 30)) for i in range(200)]
        chosen = Vectorizer()
        source = chosen.fit_batches(texts[i : i + 30] for i in range(0, 200, 30))
        assert isinstance(source, Source)
        counts = Vectorizer().fit_transform(texts)
        for _ in range(2):
            assert (sparse.vstack([batch.counts for batch in source]) != counts).nnz == 0
        model = odeco.SingleTopicModel(2, random_state=0).fit(source)
        expected = odeco.SingleTopicModel(2, random_state=0).fit(counts)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-6)

    def test_counts_beyond_memory_go_to_a_file(self, monkeypatch):
        monkeypatch.setattr(vectorizer, "_MEMORY", 150)
        monkeypatch.setattr(counting, "_BATCH_LETTERS", 1)
        monkeypatch.setattr(counting, "_READ", 1)
        stores = []
        monkeypatch.setattr(
            "odeco.text.matrices.BlockStore", lambda memory: stores.append(BlockStore(memory)) or stores[-1]
        )
        source = Vectorizer().fit_batches([DOCUMENTS, DOCUMENTS])
        assert stores[0]._file is not None
        assert 0 < len(stores[0]._blocks) < 16
        counts = Vectorizer().fit_transform(DOCUMENTS * 2)
        first, second = iter(source), iter(source)  # two readers at a time
        for reader in (first, second):
            assert (sparse.vstack([batch.counts for batch in reader]) != counts).nnz == 0


def test_settings_and_vocabulary_as_json():
    fitted = Vectorizer(stop_words=("is",), ngram_range=(1, 2), min_df=1, max_df=0.9, lowercase=True).fit(DOCUMENTS)
    settings = json.loads(json.dumps(fitted.to_dict()))
    again = Vectorizer.from_dict(settings, [str(word) for word in fitted.get_feature_names_out()])
    assert again.vocabulary_ == fitted.vocabulary_
    assert (again.transform(DOCUMENTS) != fitted.transform(DOCUMENTS)).nnz == 0
    assert again.to_dict() == settings


def test_a_vocabulary_in_any_order():
    chosen = Vectorizer.from_dict({}, ["zz", "aa", "not a token", "b"])
    assert chosen.transform(["aa zz zz b not token"]).toarray().tolist() == [[2, 1, 0, 0]]
    for vocabulary in ([], ["aa", "aa"]):
        with pytest.raises(ValueError, match="vocabulary"):
            Vectorizer.from_dict({}, vocabulary)
    with pytest.raises(ValueError, match="ngram_range"):
        Vectorizer.from_dict({"ngram_range": [3, 1]}, ["aa"])


def test_scikit_learn_manners():
    fitted = Vectorizer(min_df=2)
    assert clone(fitted).get_params() == fitted.get_params()
    assert "min_df=2" in repr(fitted)
    pipeline = make_pipeline(Vectorizer(), odeco.SingleTopicModel(1, random_state=0))
    assert pipeline.fit(["aa bb cc aa", "bb cc dd bb", "dd aa bb cc"] * 5).predict(["aa bb"]).shape == (1,)


def test_importing_odeco_does_not_load_it():
    program = "import sys, odeco; assert 'odeco.text' not in sys.modules and 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
