"""What people read of topics: their words, the documents that show them, and whether the words belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from odeco.fitting.options import check_integer
from odeco.metrics import topic_coherence
from odeco.models.topics.examples import Examples
from odeco.models.topics.words import DEFAULT_RELEVANCE, relevance, top_words, word_frequencies
from odeco.sources import as_source

Floats = NDArray[np.float64]


class TopicReading:
    """Methods of every topic model, for its readers."""

    components_: Floats

    def top_words(
        self, n: int = 10, *, vocabulary: Sequence[str] | None = None, relevance_weight: float = DEFAULT_RELEVANCE
    ) -> list[list[Any]]:
        """The most telling words of each topic, best first, as ``odeco show`` and the report have them.

        Parameters
        ----------
        n : int
            Words of each topic.
        vocabulary : sequence of str, optional
            The words of the columns: ``vectorizer.get_feature_names_out()``. Without it the names of the DataFrame
            that the model was fitted to, or the numbers of the columns where it had no names.
        relevance_weight : float
            Sievert and Shirley's lambda: at 1 words are in the order of their probability in the topic, at 0 those that
            are found nowhere else come first.

        Examples
        --------
        >>> from odeco import LatentDirichletAllocation
        >>> from odeco.datasets import state_of_the_union
        >>> from odeco.text import Vectorizer
        >>> vectorizer = Vectorizer(stop_words="english", min_df=5, max_df=0.5)
        >>> counts = vectorizer.fit_transform(state_of_the_union().documents[::10])
        >>> model = LatentDirichletAllocation(5, random_state=0).fit(counts)
        >>> topics = model.top_words(4, vocabulary=vectorizer.get_feature_names_out())
        >>> len(topics), any("vessels" in words or "treaty" in words for words in topics)
        (5, True)
        """
        check_integer("n", n)
        chosen = self._top_columns(n, relevance_weight)
        names = self._word_names(vocabulary)
        return [[names[column] for column in columns] for columns in chosen]

    def top_documents(self, X: Any, n: int = 3) -> list[list[int]]:
        """The documents that show each topic best: rows of X with the largest shares of it, best first.

        Documents shorter than half the mean are left out where there are others: a line of three words is all of one
        topic and shows nothing. So a topic may have fewer than `n`.

        Parameters
        ----------
        X : counts (n, d), or whatever `fit` takes
            Read once, in batches.
        n : int
            Documents of each topic.

        Examples
        --------
        >>> from odeco import SingleTopicModel
        >>> counts = [[4, 3, 0, 0], [5, 1, 0, 0], [0, 0, 3, 3], [0, 0, 2, 6]] * 25
        >>> model = SingleTopicModel(2, random_state=0).fit(counts)
        >>> [sorted({row % 4 for row in rows}) for rows in sorted(model.top_documents(counts[:4], 2))]
        [[0, 1], [2, 3]]
        """
        check_is_fitted(self)
        check_integer("n", n)
        examples, first = Examples(len(self.components_), n), 0
        for batch in as_source(X):
            examples.update(batch.counts, batch.lengths, np.asarray(self._shares_of(batch.counts)), first)
            first += len(batch.lengths)
        return [[example.document for example in found] for found in examples.best()]

    def coherence(self, X: Any, n: int = 10) -> Floats:
        """How well the most probable words of each topic go together in documents, best those held out: NPMI, (k,).

        `odeco.metrics.topic_coherence` says what it is: from -1 (never in one document) over 0 (as by chance) to 1.

        Parameters
        ----------
        X : counts (n, d), or whatever `fit` takes
        n : int
            Words of each topic.

        Examples
        --------
        >>> from odeco import SingleTopicModel
        >>> counts = [[4, 3, 0, 0], [5, 1, 0, 0], [0, 0, 3, 3], [0, 0, 2, 6]] * 25
        >>> model = SingleTopicModel(2, random_state=0).fit(counts)
        >>> model.coherence(counts, n=2).round(2)
        array([1., 1.])
        """
        check_is_fitted(self)
        check_integer("n", n, least=2)
        return topic_coherence(self.components_, (batch.counts for batch in as_source(X)), n_words=n)

    def _top_columns(self, n: int, weight: float) -> list[NDArray[np.intp]]:
        check_is_fitted(self)
        components = np.asarray(self.components_, dtype=np.float64)
        return top_words(relevance(components, word_frequencies(components, self._shares()), weight), n)

    def _shares(self) -> Floats:
        """What the model expects of a document, (k,)."""
        weights = np.asarray(self.alpha_ if hasattr(self, "alpha_") else self.weights_)  # type: ignore[attr-defined]
        return np.asarray(weights / weights.sum())

    def _shares_of(self, counts: Any) -> Any:
        """Shares of the topics in documents whose columns are known to be those of the fit."""
        return self.transform(counts) if hasattr(self, "transform") else self.predict_proba(counts)  # type: ignore[attr-defined]

    def _word_names(self, given: Sequence[str] | None) -> list[Any]:
        d = self.components_.shape[1]
        known = getattr(self, "feature_names_in_", None) if given is None else given
        names = list(range(d)) if known is None else [str(name) for name in known]
        if len(names) != d:
            raise ValueError(f"vocabulary must hold {d} words, one for each column of the model, got {len(names)}.")
        return names
