"""Stop words of languages, and the language that texts are found to be in."""

from __future__ import annotations

import pytest

from odeco.text import Vectorizer, detect_language, stop_words_of
from odeco.text.stop_words import LANGUAGES

SENTENCES = {
    "en": "The government said on Wednesday that it will lower the prices of electricity and of gas.",
    "de": "Die Regierung hat am Mittwoch ein Gesetz beschlossen, das die Preise für Strom und Gas senken soll.",
    "es": "El gobierno anunció el miércoles una nueva ley que debe bajar los precios de la electricidad y del gas.",
    "fr": "Le gouvernement a annoncé mercredi une loi qui doit faire baisser les prix du gaz dans le pays.",
    "it": "Il governo ha annunciato mercoledì una nuova legge che dovrebbe abbassare i prezzi della luce e del gas.",
    "nl": "De regering heeft woensdag een nieuwe wet aangekondigd die de prijzen van gas moet verlagen.",
    "pt": "O governo anunciou na quarta-feira uma nova lei que deve baixar os preços da eletricidade e do gás no país.",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_tells_its_language(language):
    assert detect_language([SENTENCES[language]]) == language
    assert detect_language([SENTENCES[language].upper()]) == language


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["bolt M8 steel", "hex nut zinc"], [SENTENCES["en"] + SENTENCES["de"]], ["Kissa istuu matolla."]],
)
def test_lists_mixtures_and_other_languages_tell_none(texts):
    assert detect_language(texts) is None


def test_lists_are_words_as_the_vectorizer_sees_them():
    for language in LANGUAGES:
        listed = stop_words_of(language)
        assert len(listed) > 90
        if language != "en":  # which is scikit-learn's
            assert sorted(Vectorizer().fit([" ".join(listed)]).vocabulary_) == sorted(listed)
    assert stop_words_of("english") == stop_words_of("en")
    with pytest.raises(ValueError, match="stop words are known of en, de, .* got 'xx'"):
        stop_words_of("xx")


def test_auto_takes_out_the_words_of_the_language_and_remembers_it():
    documents = [SENTENCES["de"]] * 3
    found = Vectorizer(stop_words="auto").fit(documents)
    assert found.language_ == "de"
    assert list(found.vocabulary_) == list(Vectorizer(stop_words="de").fit(documents).vocabulary_)
    assert "und" not in found.vocabulary_
    assert found.to_dict()["stop_words"] == "de"
    again = Vectorizer.from_dict(found.to_dict(), list(found.vocabulary_))
    assert (again.transform(documents) != found.transform(documents)).nnz == 0


def test_auto_loses_no_document_and_keeps_all_words_where_no_language_is_clear():
    documents = (text for text in ["bolt steel", "nut zinc", "bolt the"] * 1500)
    found = Vectorizer(stop_words="auto")
    counts = found.fit_transform(documents)
    assert counts.shape[0] == 4500
    assert found.language_ is None
    assert found.to_dict()["stop_words"] is None
    assert "the" in found.vocabulary_
