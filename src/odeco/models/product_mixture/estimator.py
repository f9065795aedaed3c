"""Mixtures of product distributions and latent class analysis (section 3.3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from odeco._random import RandomState, as_generator, draw_counts
from odeco.fitting.candidates import EFFORTS
from odeco.fitting.stream import StreamPlan
from odeco.models.lazy import take_names
from odeco.models.mixture_base import (
    Labels,
    MixtureEstimator,
    check_choice,
    check_enough,
    check_integer,
    check_number,
    posterior,
)
from odeco.models.product_mixture.fit import Options, ProductFit, fit_products, fit_stream, wait_for_rows
from odeco.models.product_mixture.stream import StreamedTable, read_table, table_plan
from odeco.models.product_mixture.table import distinct_rows, gather, worth_joining
from odeco.refinement.product_mixture import log_joint
from odeco.sources.counts import check_weights
from odeco.sources.dense import DenseBatch, DenseSource, OutOfCoreRows, is_matrix
from odeco.sources.kinds import fitted_by
from odeco.sources.rows import TableChunk, TablePiece
from odeco.sources.tables import Schema, open_table
from odeco.sources.values import is_frame, plain_array

Floats = NDArray[np.float64]

_ROUTES = ("auto", "completed", "views")
_REFINE = ("auto", "em", "one-step", None)
# Batches up to this many cells are read into one table.
_MOST_CELLS = 2**24


class ProductMixture(MixtureEstimator):
    """A mixture whose columns are independent within each component: latent classes, naive Bayes without labels.

    Columns are Gaussian, Bernoulli, categorical or Poisson, each of its own family; values may be missing. With
    categorical (or Bernoulli) columns this is latent class analysis.

    Parameters
    ----------
    n_components : int
        Number of components (classes) k.
    family : str or sequence of str
        "gaussian", "bernoulli", "categorical", "poisson" for all columns, or one per column. "auto" guesses: labels and
        pandas categories are categorical; booleans and 0/1 Bernoulli; whole numbers from 0 to 9 categorical, other
        whole numbers that are not negative Poisson; all else Gaussian.
    method, method_options : str, mapping or None
        The decomposer of the moment tensor, any method of `odeco.decompose`, and its options.
    route : {"auto", "completed", "views"}
        From the data to that tensor. "completed" ("auto"): all columns at once; products of a column with itself are
        left out of the moments and filled with what the others imply. "views": the paper's random partition into three
        views (Theorem 3.6, Proposition 3.2); needs three times the columns and more data.
    refine : {"auto", "em", "one-step", None}
        What polishes the moment estimate: "auto" and "em" run accelerated EM to convergence, "one-step" takes a single
        scoring step (as efficient to first order), None keeps the moments' own estimate.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    max_iter : int
        EM steps at most.
    tol : float
        Gain of the mean log-likelihood per sample and step below which EM stops.
    basis_size : int
        Rows that `partial_fit` holds, and from which it learns the columns and its directions.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    weights_ : (k,)
        Shares of the components, largest first.
    means_, variances_ : (k, d)
        Mean and variance of each column in each component (Bernoulli: probability p of a 1 and p (1 - p); categorical:
        of the number of the category, counted from 0).
    probabilities_ : list of (k, categories)
        One table for each categorical column.
    families_ : tuple of str
        The family of each column.
    categories_ : list
        The values of each categorical column, in the order of its table.
    n_iter_, converged_, lower_bound_
        EM steps, whether they converged, and the mean log-likelihood per sample.
    diagnostics_ : Diagnostics
        ``suggested_components`` counts the directions of the pairs of columns that stand above sampling noise, whatever
        k is, and one. ``details``: "starts" (name and log-likelihood of each, best first), "replicated" (how many ended
        at the best), "spread" (how far the second is behind), "moves" (splits and mergers that led to the best),
        "coherence" and "incoherence_limit" (Proposition 3.2, with route="views"), "lifted" (pairs of columns).

    Examples
    --------
    >>> import numpy as np
    >>> from odeco import ProductMixture
    >>> rng = np.random.default_rng(0)
    >>> h = rng.integers(2, size=500)
    >>> answers = (rng.random((500, 6)) < np.where(h, 0.9, 0.2)[:, None]).astype(int)
    >>> model = ProductMixture(2, random_state=0).fit(answers)
    >>> model.families_[0], model.means_.shape
    ('bernoulli', (2, 6))
    """

    weights_: Floats

    def __init__(
        self,
        n_components: int = 1,
        *,
        family: str | Sequence[str] = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        route: str = "auto",
        refine: str | None = "auto",
        effort: str = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        basis_size: int = 5000,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.method = method
        self.method_options = method_options
        self.route = route
        self.refine = refine
        self.effort = effort
        self.max_iter = max_iter
        self.tol = tol
        self.basis_size = basis_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : (n, d) array or DataFrame, a list of such batches, or a function that returns a new iterator over them
            NaN (None, pandas' NA) where missing, or -1 in columns of codes and counts.
        y : ignored
        sample_weight : (n,) array, optional
            Counts as repetitions of the rows.
        """
        options = self._options()
        self._forget_stream()
        source = self._open_table(X, sample_weight)
        self._fit_source(source, source.schema, options)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows in one pass and fit to all since the first call (or the first after `fit`).

        The first `basis_size` rows are held and fitted as `fit` does; so are more, as counts, while no more than
        `basis_size` of them differ. Beyond, only moments are kept: memory does not grow, the chunks do not matter, and
        the result is the moment estimate without EM (`diagnostics_` says so). Families and categories are those of the
        rows held.
        """
        self._options()
        self._add_chunks(X, sample_weight=sample_weight)
        return self._read_moments()

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[TableChunk]:
        """Rows as they are, or as the stream's columns read them once they are known: what does not fit them is told
        at once.
        """
        sums = self._stream.sums if hasattr(self, "_stream") else None
        if not is_matrix(X):
            schema = None if sums is None else sums.schema
            for batch in open_table(X, self.family, sample_weight, schema=schema):
                yield TableChunk((TablePiece(batch.rows, batch.weights, read=schema is not None),))
            return
        table = self._matrix(X, reset=reset)
        self.n_features_in_ = table.shape[1]
        weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
        rows = table if sums is None else sums.schema.read(table)
        yield TableChunk((TablePiece(rows, weights, read=sums is not None),))

    def _plan(self) -> StreamPlan[TableChunk, StreamedTable]:
        check_integer("basis_size", self.basis_size)
        names = getattr(self, "feature_names_in_", None)
        return table_plan(int(self.n_components), self.family, names, int(self.basis_size))

    def _read_moments(self) -> Self:
        """The estimate of all rows that the stream has seen: the fit to them as long as they are held."""
        options, stream, plan = self._options(), self._stream, self._plan()
        sums = stream.read(plan) if stream.started else None
        if sums is None:
            schema, batch = read_table(stream.held(plan), self.family, getattr(self, "feature_names_in_", None))
            self._fit_held(DenseSource(lambda: [batch]), schema, options)
        elif sums.distinct is not None:
            self._fit_held(sums.distinct.source(), sums.schema.with_missing(sums.distinct.values), options)
        else:
            check_enough(stream.n, options.n_components)
            start = sums.start(options.n_components, as_generator(self.random_state), options.method)
            self._learned(sums.schema, fit_stream(start, sums.schema, options))
        return self

    def _fit_held(self, source: DenseSource, schema: Schema, options: Options) -> None:
        if self._stream.n >= options.n_components:
            self._fit_source(source, schema, options)
        else:
            self._learned(schema, wait_for_rows(source, schema, options, f"{self._stream.n} so far."))

    def _fit_source(self, source: DenseSource, schema: Schema, options: Options) -> None:
        joined = None if isinstance(source, OutOfCoreRows) else gather(source, _MOST_CELLS)
        if joined is not None:
            check_enough(len(joined), options.n_components)
            values, weights = np.asarray(joined.rows, dtype=np.float64), joined.weights
            if worth_joining(schema, values):
                rows = distinct_rows(values, weights)
                values, weights = rows.values, None if (rows.weights == 1.0).all() else rows.weights
            source = DenseSource(lambda: [DenseBatch(values)], len(values), weights)
        self._learned(schema, fit_products(source, schema, options, as_generator(self.random_state)))

    def _learned(self, schema: Schema, fitted: ProductFit) -> None:
        self._set(schema, fitted)
        self._finish(fitted.diagnostics)

    def _options(self) -> Options:
        check_integer("n_components", self.n_components)
        check_choice("route", self.route, _ROUTES)
        check_choice("refine", self.refine, _REFINE)
        check_choice("effort", self.effort, ("quick", *EFFORTS))
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        method = self._decomposer()
        steps = int(self.max_iter), float(self.tol)
        return Options(int(self.n_components), method, self.route, self.refine, self.effort, *steps)

    def _open_table(self, X: Any, sample_weight: ArrayLike | None) -> Any:
        """Check X as scikit-learn does and read it; a table of labels keeps its columns as they are."""
        names = None
        if is_matrix(X):
            X = self._matrix(X, reset=True)
            names = getattr(self, "feature_names_in_", None)
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, X.shape[0])
        take_names(self, X)
        source = open_table(fitted_by(self, X), self.family, sample_weight, names=names)
        self.n_features_in_ = source.n_features
        return source

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """One table, with names and number of columns checked; numbers as scikit-learn reads them."""
        array = X if is_frame(X) or hasattr(X, "tocsr") else plain_array(X)
        if hasattr(X, "tocsr") or _is_numeric(array):
            block = X if hasattr(X, "columns") else array  # a DataFrame of any library has names
            checked = validate_data(self, block, dtype="numeric", ensure_all_finite="allow-nan", reset=reset)
            return array if isinstance(array, np.ndarray) and array.dtype.kind in "biu" else checked
        _check_feature_names(self, X, reset=reset)
        if array.shape[0] == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
        if not reset and array.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {array.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        return array

    def _set(self, schema: Schema, fitted: ProductFit) -> None:
        self._schema, self._families, self._table = schema, fitted.families, fitted.table
        families, table = fitted.families, fitted.table
        bernoulli, indicators, counts, numbers, squares = families.spans
        shape = (len(fitted.weights), len(schema))
        self.weights_, self.means_, self.variances_ = fitted.weights, np.empty(shape), np.empty(shape)
        self.families_ = schema.families
        p, rate = table[:, bernoulli], table[:, counts]
        self.means_[:, families.bernoulli], self.variances_[:, families.bernoulli] = p, p * (1 - p)
        self.means_[:, families.poisson], self.variances_[:, families.poisson] = rate, rate
        centre, scale = families.centre[families.gaussian], families.scale[families.gaussian]
        self.means_[:, families.gaussian] = table[:, numbers] * scale + centre
        self.variances_[:, families.gaussian] = table[:, squares] * scale**2
        cuts = families.blocks[1:]
        parts = np.split(table[:, indicators], cuts, axis=1) if families.categorical.size else []
        self.probabilities_ = [np.ascontiguousarray(part) for part in parts]
        self.categories_ = [np.array(schema.columns[j].categories) for j in families.categorical]
        for j, part in zip(families.categorical, self.probabilities_, strict=True):
            codes = np.arange(part.shape[1])
            self.means_[:, j] = part @ codes
            self.variances_[:, j] = part @ codes**2 - self.means_[:, j] ** 2
        self.n_iter_, self.converged_, self.lower_bound_ = fitted.n_iter, fitted.converged, fitted.log_likelihood

    # What `MixtureEstimator` asks for.

    def _clean(self, X: Any) -> Floats:
        return self._schema.read(self._matrix(X, reset=False))

    def _log_joint(self, clean: Floats) -> Floats:
        families = self._families.with_missing(clean)
        joint = log_joint(families, families.statistics(clean), self.weights_, self._table)
        return np.asarray(joint + families.base(clean)[:, None])

    def _n_parameters(self) -> int:
        k = self.weights_.size
        return int(k - 1 + k * self._families.free_parameters())

    def _draw(self, labels: Labels, rng: np.random.Generator) -> Any:
        families, n = self._families, labels.size
        values = np.empty((n, self.n_features_in_))
        for j in families.bernoulli:
            values[:, j] = rng.random(n) < self.means_[labels, j]
        for j in families.poisson:
            values[:, j] = draw_counts(rng, self.means_[labels, j])
        for j in families.gaussian:
            values[:, j] = rng.normal(self.means_[labels, j], np.sqrt(self.variances_[labels, j]))
        drawn: list[Any] = list(values.T)
        for j, table, known in zip(families.categorical, self.probabilities_, self.categories_, strict=True):
            codes = (rng.random((n, 1)) > np.cumsum(table, axis=1)[labels]).sum(axis=1).clip(max=table.shape[1] - 1)
            values[:, j], drawn[j] = codes, known[codes]
        numbers = all(known.dtype.kind in "biuf" for known in self.categories_)
        return np.column_stack(drawn) if numbers else np.column_stack([np.asarray(d, dtype=object) for d in drawn])

    # What users of latent class analysis expect.

    def class_tables(self) -> dict[str, Floats]:
        """Class-conditional response probabilities of every discrete column by name: (k, categories)."""
        check_is_fitted(self)
        tables = {}
        parts = dict(zip(self._families.categorical, self.probabilities_, strict=True))
        for j, column in enumerate(self._schema.columns):
            if column.family == "bernoulli":
                tables[column.name] = np.column_stack([1 - self.means_[:, j], self.means_[:, j]])
            elif column.family == "categorical":
                tables[column.name] = parts[j]
        return tables

    def entropy(self, X: Any) -> float:
        """Sum over the samples of the entropy of their posteriors: 0 where every class is certain."""
        shares = self.predict_proba(X)
        return float(-np.sum(shares * np.log(np.maximum(shares, np.finfo(float).tiny))))

    def relative_entropy(self, X: Any) -> float:
        """1 - entropy / (n log k): 1 where every class is certain, 0 where none is known."""
        k = self.weights_.size
        return 1.0 if k == 1 else 1.0 - self.entropy(X) / (len(self._clean(X)) * float(np.log(k)))

    def g_squared(self, X: Any) -> float:
        """Likelihood ratio statistic 2 sum O log(O / E) over the patterns of complete rows; discrete columns only."""
        observed, expected = self._patterns(X)
        return float(2 * np.sum(observed * np.log(observed / expected)))

    def chi_squared(self, X: Any) -> float:
        """Pearson's statistic sum (O - E)^2 / E over all patterns, those never seen included (their E is the rest)."""
        observed, expected = self._patterns(X)
        return float(np.sum((observed - expected) ** 2 / expected) + (observed.sum() - expected.sum()))

    def residual_degrees_of_freedom(self, X: Any) -> int:
        """min(patterns that are possible, samples) - 1 - free parameters, as poLCA counts them."""
        cells = float(np.prod([float(column.n_categories) for column in self._schema.columns]))
        return int(min(cells - 1, len(self._clean(X))) - self._n_parameters())

    def _patterns(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        if self._families.poisson.size or self._families.gaussian.size:
            raise ValueError("patterns can be counted only where every column is Bernoulli or categorical.")
        values = self._clean(X)
        rows = distinct_rows(values[~np.isnan(values).any(axis=1)], None)
        if len(rows) == 0:
            raise ValueError("X has no complete rows: every one has a missing value.")
        logs = posterior(self._log_joint(rows.values))[1]
        return rows.weights, np.asarray(rows.weights.sum() * np.exp(logs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _is_numeric(X: Any) -> bool:
    """Whether the types of an array or of a DataFrame's columns are those of numbers: no need to look at values."""
    return all(getattr(dtype, "kind", "O") in "biuf" for dtype in (X.dtypes if is_frame(X) else [X.dtype]))
