"""Words of texts, counted; stop words, and the language that they tell."""

from odeco.text.stop_words import detect_language, stop_words_of
from odeco.text.vectorizer import Vectorizer

__all__ = ["Vectorizer", "detect_language", "stop_words_of"]
