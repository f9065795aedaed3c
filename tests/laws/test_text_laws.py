"""Equal to scikit-learn's CountVectorizer: vocabulary and counts, on any text, with any options, in any division."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from odeco.text import Vectorizer, counting

# Letters of several scripts and cases, what is special in lower case, marks, digits, spaces, lone surrogates, any.
LETTERS = st.one_of(
    st.sampled_from("aAbB_1 .\n-éÉßẞİIıΣσςΑα日ー\u0301\u00ad\u200d²½٣Ⅷ😀𝐀𐐀\ud800\udfff\x00"),
    st.characters(exclude_categories=()),
)
TEXTS = st.lists(st.text(LETTERS, max_size=40), min_size=1, max_size=8)
WORDS = st.lists(
    st.lists(st.sampled_from(["aa", "Aa", "bb", "cc", "b", "dd", "ee"]), max_size=12).map(" ".join),
    min_size=1,
    max_size=8,
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "min_df": st.one_of(st.integers(1, 4), st.floats(0.0, 1.0)),
        "max_df": st.one_of(st.integers(1, 6), st.floats(0.0, 1.0)),
        "max_features": st.integers(1, 5),
        "stop_words": st.lists(st.sampled_from(["aa", "bb", "AA", "cc"]), max_size=3),
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 4), (2, 3)]),
        "lowercase": st.booleans(),
    },
)


def compare(documents: list[str], options: dict) -> None:
    theirs = CountVectorizer(**options)
    try:
        expected = theirs.fit_transform(documents)
    except ValueError:
        with pytest.raises(ValueError, match="max_df|no word"):
            Vectorizer(**options).fit_transform(documents)
        return
    ours = Vectorizer(**options)
    counts = ours.fit_transform(documents)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert counts.shape == expected.shape
    assert (counts != expected).nnz == 0
    assert (ours.transform(documents) != expected).nnz == 0
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@settings(max_examples=300)
@given(TEXTS, st.booleans())
def test_any_text(documents, lowercase):
    compare(documents, {"lowercase": lowercase})


@settings(max_examples=200)
@given(WORDS, LIMITS)
def test_any_options(documents, options):
    compare(documents, options)


@settings(max_examples=50)
@given(TEXTS, st.sampled_from([(1, 1), (1, 2), (2, 3)]))
def test_any_text_in_n_grams(documents, ngram_range):
    compare(documents, {"ngram_range": ngram_range})


@settings(max_examples=50)
@given(TEXTS, TEXTS, st.integers(1, 60))
def test_transform_of_other_texts_and_other_batches(documents, others, batch):
    theirs = CountVectorizer()
    try:
        theirs.fit(documents)
    except ValueError:
        with pytest.raises(ValueError, match="no word"):
            Vectorizer().fit(documents)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_BATCH_LETTERS", batch)
        patch.setattr(counting, "_READ", 1)
        ours = Vectorizer().fit(documents)
        assert (ours.transform(others) != theirs.transform(others)).nnz == 0
        assert ours.vocabulary_ == theirs.vocabulary_
