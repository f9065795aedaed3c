"""Texts to counts of words: the rule and the answers of scikit-learn's CountVectorizer, on all cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from odeco.sources import Source, as_source
from odeco.text.stop_words import LANGUAGES, LOOKED_AT, detect_language, stop_words_of

if TYPE_CHECKING:
    from odeco.text.counting import Block, Counter, Rule
    from odeco.text.lexicon import Lexicon

# Counts that `fit_batches` keeps in memory before it goes on in a temporary file.
_MEMORY = 1 << 28
_MOST_THREADS = 16  # each has a vocabulary of its own until the end


class Vectorizer(BaseEstimator):  # type: ignore[misc]
    r"""Count the words of documents.

    A word is a run of two or more word characters (``(?u)\b\w\w+\b``) after `str.lower`. Counts, vocabulary and the
    meaning of every option are those of `sklearn.feature_extraction.text.CountVectorizer`, to which the result is
    equal. Documents are read once, in one stream.

    Parameters
    ----------
    min_df, max_df : int, or float between 0 and 1
        Words in fewer, or more, documents than this are left out; a float is a share of the documents.
    max_features : int or None
        Keep only so many words, those that occur most often.
    stop_words : None, "auto", "english", a language such as "de", or list of str
        Words that are taken out of the texts before anything is counted, in lower case where `lowercase` is. "auto"
        takes those of the language that the first documents are in (`odeco.text.detect_language`), none where that is
        not clear; `language_` says which.
    ngram_range : (int, int)
        Count sequences of so many words, from and to; (1, 1) counts words.
    lowercase : bool
        Whether texts are turned to lower case first.

    Attributes
    ----------
    vocabulary_ : dict
        The column of each word, in alphabetical order (of code points).
    language_ : str or None
        The language that ``stop_words="auto"`` has found, "en" for instance.

    Examples
    --------
    >>> from odeco.text import Vectorizer
    >>> vectorizer = Vectorizer()
    >>> vectorizer.fit_transform(["A rose is a rose.", "Is it?"]).toarray()
    array([[1, 0, 2],
           [1, 1, 0]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['is', 'it', 'rose']
    """

    vocabulary_: dict[str, int]
    language_: str | None

    def __init__(
        self,
        *,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        stop_words: str | Sequence[str] | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
    ) -> None:
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.lowercase = lowercase

    def fit(self, documents: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary of documents. It takes as long as `fit_transform` and less memory."""
        self._learn(documents, lambda block: None)
        return self

    def fit_transform(self, documents: Iterable[str], y: Any = None) -> sparse.csr_matrix:
        """Learn the vocabulary and return the counts, (documents, words) of int64."""
        from odeco.text.matrices import matrix_of

        blocks: list[Block] = []
        columns = self._learn(documents, blocks.append)
        return matrix_of(blocks, columns, len(self.vocabulary_))

    def fit_batches(self, batches: Iterable[Iterable[str]]) -> Source:
        """Learn the vocabulary of documents that need not fit into memory; a source of their counts for any `fit`.

        The documents are read once. In memory are the vocabulary, some megabytes of text and up to 256 MB of counts
        (5 bytes for each distinct word of a document); what is beyond goes to a temporary file that vanishes with the
        source.
        """
        from odeco.text.matrices import BlockStore, CountMatrices

        store = BlockStore(_MEMORY)
        columns = self._learn(chain.from_iterable(batches), store.append)
        return as_source(CountMatrices(store, columns, len(self.vocabulary_)))

    def transform(self, documents: Iterable[str]) -> sparse.csr_matrix:
        """Counts of the words of the vocabulary, (documents, words) of int64."""
        from odeco.text.counting import Counter, batches_of, count_blocks
        from odeco.text.matrices import matrix_of

        self._check_fitted()
        lexicon, column_of = self._known()
        rule, n_threads = self._rule(), _threads()
        counters = [Counter(rule, lexicon, thread) for thread in range(n_threads)]
        blocks = count_blocks(batches_of(documents), counters)
        return matrix_of(blocks, [column_of] * n_threads, len(self.vocabulary_))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The words in the order of the columns."""
        self._check_fitted()
        return np.array(sorted(self.vocabulary_, key=self.vocabulary_.__getitem__), dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """The options, as JSON can hold them; the vocabulary is `get_feature_names_out`."""
        settings: dict[str, Any] = self.get_params(deep=False)
        stop = settings["stop_words"]
        if isinstance(stop, str) and stop == "auto" and hasattr(self, "vocabulary_"):
            stop = self.language_
        words = stop if stop is None or isinstance(stop, str) else list(stop)
        return {**settings, "stop_words": words, "ngram_range": list(settings["ngram_range"])}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], vocabulary: Sequence[str]) -> Self:
        """The vectorizer with these options that counts these words, in the order of the columns."""
        options = dict(settings)
        if "ngram_range" in options:
            options["ngram_range"] = tuple(options["ngram_range"])
        vectorizer = cls(**options)
        vectorizer._rule()
        vectorizer._set_words(vocabulary)
        return vectorizer

    def _learn(self, documents: Iterable[str], keep: Any) -> list[NDArray[np.int32]]:
        """Count everything, hand the blocks to `keep`, choose the vocabulary; the column of each thread's entries."""
        from odeco.text.counting import Counter, batches_of, count_blocks
        from odeco.text.lexicon import Lexicon

        rule = self._rule()
        self._check_limits()
        documents = self._look(documents)
        stop_words = self._stop_words()
        counters = [Counter(rule, Lexicon(stop_words), thread) for thread in range(_threads())]
        n_documents = 0
        for block in count_blocks(batches_of(documents), counters):
            n_documents += len(block)
            keep(block)
        return self._choose(counters, n_documents)

    def _look(self, documents: Iterable[str]) -> Iterable[str]:
        """The documents again, once the first were looked at for their language, where that is asked for."""
        self.language_ = None
        if not (isinstance(self.stop_words, str) and self.stop_words == "auto"):
            return documents
        remaining = iter(documents)
        first = list(islice(remaining, LOOKED_AT))
        self.language_ = detect_language(text for text in first if isinstance(text, str))
        return chain(first, remaining)

    def _choose(self, counters: list[Counter], n_documents: int) -> list[NDArray[np.int32]]:
        """Keep the words that the limits allow, as scikit-learn does it, in alphabetical order."""
        lexicon, parts = counters[0].lexicon, [counter.totals for counter in counters]
        renamed = [np.arange(len(lexicon)), *(lexicon.merge(counter.lexicon) for counter in counters[1:])]
        totals = np.zeros((len(lexicon), 2), dtype=np.int64)
        for numbers, part in zip(renamed, parts, strict=True):
            totals[numbers] += part  # a number occurs once in each
        seen = np.flatnonzero(totals[:, 0])
        if not seen.size:
            raise ValueError("documents have no words: every text is empty, of stop words or of words with one letter.")
        low, high = _in_documents(self.min_df, n_documents), _in_documents(self.max_df, n_documents)
        if high < low:
            raise ValueError(f"max_df={self.max_df} is fewer documents than min_df={self.min_df}.")
        kept = seen[(totals[seen, 0] >= low) & (totals[seen, 0] <= high)]
        names = lexicon.names(kept)
        order = sorted(range(kept.size), key=names.__getitem__)
        if self.max_features is not None and len(order) > self.max_features:
            # The same call on the same numbers as scikit-learn's: ties fall the same way.
            most = (-totals[kept[order], 1]).argsort()[: self.max_features]
            order = [order[i] for i in sorted(most.tolist())]
        if not order:
            raise ValueError("no word is left: try a lower min_df or a higher max_df.")
        self._set_words([names[i] for i in order])
        column_of = np.full(len(lexicon), -1, dtype=np.int32)
        column_of[kept[order]] = np.arange(len(order))
        return [column_of[numbers] for numbers in renamed]

    def _set_words(self, words: Sequence[str]) -> None:
        self.vocabulary_ = {word: column for column, word in enumerate(words)}
        if len(self.vocabulary_) != len(words) or not words:
            raise ValueError("vocabulary must have words, each of them once.")
        self._lookup: tuple[Lexicon, NDArray[np.int32]] | None = None

    def _known(self) -> tuple[Lexicon, NDArray[np.int32]]:
        """A lexicon that knows the vocabulary and no more, and the columns of its entries."""
        from odeco.text.lexicon import Lexicon

        if self._lookup is None:
            lexicon = Lexicon(self._stop_words())
            numbers = lexicon.add_terms(list(self.vocabulary_))
            column_of = np.full(len(lexicon), -1, dtype=np.int32)
            columns = np.fromiter(self.vocabulary_.values(), dtype=np.int32)
            column_of[numbers[numbers >= 0]] = columns[numbers >= 0]
            lexicon.frozen = True
            self._lookup = lexicon, column_of
        return self._lookup

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError("This Vectorizer has no vocabulary yet: call fit_transform first.")

    def _rule(self) -> Rule:
        from odeco.text.counting import Rule

        found = self.ngram_range
        whole = isinstance(found, (tuple, list)) and len(found) == 2 and all(_is_whole(n) for n in found)
        if not whole or not 1 <= found[0] <= found[1] <= 100:
            raise ValueError(f"ngram_range must be two whole numbers, 1 <= from <= to, got {found!r}.")
        return Rule(bool(self.lowercase), int(found[0]), int(found[1]))

    def _stop_words(self) -> list[str]:
        given = self.stop_words
        if isinstance(given, str) and given == "auto":
            given = getattr(self, "language_", None)
        if given is None:
            return []
        if isinstance(given, str):
            if given not in ("english", *LANGUAGES):
                known = ", ".join(map(repr, LANGUAGES))
                raise ValueError(f"stop_words must be None, 'auto', 'english', {known} or a list, got {given!r}.")
            return sorted(stop_words_of(given))
        words = list(given)
        if not all(isinstance(word, str) for word in words):
            raise ValueError("stop_words must be a language or a list of words: one of them is no text.")
        return words

    def _check_limits(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, (float, np.floating)) and 0 <= value <= 1
            if not share and not (_is_whole(value) and value >= 1):
                raise ValueError(
                    f"{name} must be a whole number of documents of at least 1, or a share of them from 0.0 to 1.0, "
                    f"got {value!r}."
                )
        if self.max_features is not None and not (_is_whole(self.max_features) and self.max_features >= 1):
            raise ValueError(f"max_features must be None or a whole number of at least 1, got {self.max_features!r}.")


def _threads() -> int:
    from odeco.kernels.threads import thread_count

    return min(thread_count(), _MOST_THREADS)


def _in_documents(limit: float, n_documents: int) -> float:
    return limit if isinstance(limit, Integral) else limit * n_documents


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
