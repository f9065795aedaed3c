"""What the scikit-learn shells of all mixtures share: posteriors, scores, criteria, draws, rows of numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from odeco._random import as_generator
from odeco.families.responsibilities import posterior
from odeco.fitting.choice.judging import Judged, judged_rows
from odeco.fitting.estimator import MomentEstimator
from odeco.fitting.options import check_choice as check_choice
from odeco.fitting.options import check_enough as check_enough
from odeco.fitting.options import check_integer as check_integer
from odeco.fitting.options import check_number as check_number
from odeco.fitting.rows import open_vectors, vector_chunks
from odeco.models.lazy import by_rows, sum_and_count
from odeco.sources.scale import check_magnitude
from odeco.sources.values import number_block

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


class MixtureEstimator(MomentEstimator, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the mixtures. A family gives four things:

    - ``_clean(X)``: new data, checked against the fit, in the form that ``_log_joint`` takes;
    - ``_log_joint(clean)``: log(weight) + log density of every sample under every component, (n, k);
    - ``_draw(labels, rng)``: one sample per label;
    - ``_n_parameters()``: free parameters, for the criteria.
    """

    n_components: Any
    random_state: Any
    weights_: Floats
    n_features_in_: int

    # What a family gives.

    def _clean(self, X: Any) -> Any:
        if not hasattr(self, "n_features_in_") and hasattr(self, "means_"):  # parameters that were set by hand
            self.n_features_in_ = int(np.shape(self.means_)[1])
        return check_magnitude(validate_data(self, number_block(X), dtype=[np.float64, np.float32], reset=False))

    @abstractmethod
    def _log_joint(self, clean: Any) -> Floats: ...

    @abstractmethod
    def _draw(self, labels: Labels, rng: np.random.Generator) -> Any: ...

    @abstractmethod
    def _n_parameters(self) -> int: ...

    def _batch_joint(self, batch: Any) -> Floats:
        """`_log_joint` of a batch of the rows that a fit reads."""
        return self._log_joint(batch.rows)

    def _judge(self, batch: Any) -> Judged:
        return judged_rows(self._batch_joint(batch), batch.weights)

    # What users of scikit-learn's mixtures expect.

    @by_rows("shares")
    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities of the components, (n, k)."""
        check_is_fitted(self)
        return posterior(self._log_joint(self._clean(X)))[0]

    @by_rows("label")
    def predict(self, X: Any) -> Labels:
        """The most probable component of each sample."""
        check_is_fitted(self)
        return np.asarray(np.argmax(self._log_joint(self._clean(X)), axis=1))

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Labels:
        """Fit, then the most probable component of each sample."""
        return np.asarray(self.fit(X, **params).predict(X))

    @by_rows("score")
    def score_samples(self, X: Any) -> Floats:
        """Log-likelihood of each sample, (n,)."""
        check_is_fitted(self)
        return posterior(self._log_joint(self._clean(X)))[1]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood per sample."""
        total, count = sum_and_count(self.score_samples(X))
        return total / count

    def aic(self, X: Any) -> float:
        """Akaike's criterion on X: smaller is better."""
        return -2 * sum_and_count(self.score_samples(X))[0] + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """Bayes' criterion on X: smaller is better."""
        total, count = sum_and_count(self.score_samples(X))
        return -2 * total + self._n_parameters() * float(np.log(count))

    def sample(self, n_samples: int = 1) -> tuple[Any, Labels]:
        """Draw from the fitted mixture: samples, grouped by component, and their components (n,)."""
        check_is_fitted(self)
        check_integer("n_samples", n_samples)
        rng = as_generator(self.random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        labels = np.repeat(np.arange(counts.size), counts)
        return self._draw(labels, rng), labels

    # Rows of numbers, where a family does not say otherwise.

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to samples (n, d): an array, DataFrame, batches of them, or anything that `as_dense_source` takes."""
        return self._fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add samples and give the moment estimate of all so far: only sums are kept, and chunks do not matter."""
        return self._partial_fit(X, sample_weight=sample_weight)

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> Any:
        return open_vectors(self, X, sample_weight)

    def _reopen(self, X: Any, **given: Any) -> Any:
        return open_vectors(self, X, reset=False, **given)

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[Any]:
        return vector_chunks(self, X, sample_weight, reset=reset)
