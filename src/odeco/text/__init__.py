"""Words of texts, counted."""

from odeco.text.vectorizer import Vectorizer

__all__ = ["Vectorizer"]
