"""Mixtures of product distributions and latent class analysis (section 3.3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState
from odeco.diagnostics import Diagnostics, without_moments
from odeco.exceptions import MomentError
from odeco.families.counts import BERNOULLI, CATEGORICAL, POISSON
from odeco.families.gaussian import DIAGONAL
from odeco.families.responsibilities import posterior
from odeco.families.simplex import fitted_gain
from odeco.fitting.candidates import check_effort
from odeco.fitting.estimator import Found
from odeco.fitting.free import FINER, POSITIVE, REAL, SHARE, Free
from odeco.fitting.stream import StreamPlan
from odeco.models.mixture_base import (
    Labels,
    MixtureEstimator,
    check_choice,
    check_enough,
    check_integer,
    check_number,
)
from odeco.models.product_mixture.column_pairs import needs_pairs
from odeco.models.product_mixture.identified import advice_on
from odeco.models.product_mixture.moments import (
    completed_passes,
    exact_families,
    first_look,
    narrowed,
    paired_passes,
    product_start,
)
from odeco.models.product_mixture.policy import POLICY
from odeco.models.product_mixture.search import RefinedProducts, Table, choose_start, near_maximum
from odeco.models.product_mixture.solve import CompletedMoments, ProductStart, describe
from odeco.models.product_mixture.stream import StreamedTable, read_table, table_plan
from odeco.models.product_mixture.table import check_matrix, distinct_rows, gather, joined, open_rows, row_chunks
from odeco.models.product_mixture.views import PartedMoments, parted_passes
from odeco.moments.passes import Passes, run_passes
from odeco.refinement.one_step import product_step
from odeco.refinement.product_mixture import Parameters, log_joint, refine_products
from odeco.sources.dense import DenseBatch, first_rows
from odeco.sources.partitions import is_elsewhere
from odeco.sources.rows import TableChunk, TablePiece
from odeco.sources.tables import Schema, TableSource

Floats = NDArray[np.float64]

_ROUTES = ("auto", "completed", "views")
_REFINE = ("auto", "em", "one-step", None)


class ProductMixture(MixtureEstimator):
    """A mixture whose columns are independent within each component: latent classes, naive Bayes without labels.

    Columns are Gaussian, Bernoulli, categorical or Poisson, each of its own family; values may be missing. With
    categorical (or Bernoulli) columns this is latent class analysis.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components (classes) k; "auto" lets the data choose it (`odeco.choose_components`).
    family : str, sequence of str, or dict
        "gaussian", "bernoulli", "categorical", "poisson" for all columns, one per column, or those of some columns by
        name, ``{"age": "gaussian"}``; the others are guessed, as "auto" guesses all: labels and
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
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

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
        "coherence" and "incoherence_limit" (Proposition 3.2, with route="views"), "column_pairs" (pairs of columns).

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
    _criterion = "marginal"

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        family: str | Sequence[str] | Mapping[str, str] = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        route: str = "auto",
        refine: str | None = "auto",
        effort: str = "auto",
        max_iter: int = 500,
        tol: float = 1e-6,
        basis_size: int = 5000,
        random_state: RandomState = None,
        verbose: bool = False,
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
        self.verbose = verbose

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
        return self._fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows in one pass and fit to all since the first call (or the first after `fit`).

        The first `basis_size` rows are held and fitted as `fit` does; so are more, as counts, while no more than
        `basis_size` of them differ. Beyond, only moments are kept: memory does not grow, the chunks do not matter, and
        the result is the moment estimate without EM (`diagnostics_` says so). Families and categories are those of the
        rows held.
        """
        return self._partial_fit(X, sample_weight=sample_weight)

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("route", self.route, _ROUTES)
        check_choice("refine", self.refine, _REFINE)
        check_effort(self.effort)
        for name in ("n_components", "max_iter", "basis_size"):
            check_integer(name, getattr(self, name))
        check_number("tol", self.tol)

    # The parts of the flow.

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> TableSource:
        source = open_rows(self, X, sample_weight)
        if is_elsewhere(source) and (self.route == "views" or self.refine == "one-step"):
            asked = "route='views'" if self.route == "views" else "refine='one-step'"
            raise ValueError(f"{asked} needs the rows in memory: these are elsewhere or out of core. Use the defaults.")
        batch = gather(source)
        if batch is None:
            return source  # type: ignore[no-any-return]
        check_enough(len(batch), self.n_components)
        return joined(source.schema, batch)

    def _reopen(self, X: Any, **given: Any) -> TableSource:
        return open_rows(self, X, schema=self._schema, **given)  # type: ignore[no-any-return]

    def _coded(self) -> Self:
        coded = super()._coded()
        coded._schema = coded._coded_schema = self._schema.coded()
        coded.family = list(self._schema.families)
        return coded

    def _chunk_of(self, batch: DenseBatch) -> TableChunk:
        return TableChunk((TablePiece(batch.rows, batch.weights, read=True),))

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[TableChunk]:
        sums = self._stream.sums if hasattr(self, "_stream") else None
        return row_chunks(self, X, None if sums is None else sums.schema, sample_weight, reset=reset)

    def _plan(self) -> StreamPlan[TableChunk, StreamedTable]:
        known = getattr(self, "_coded_schema", None)
        return table_plan(self.n_components, self.family, self._names(), self.basis_size, known)

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _passes(self, source: TableSource, rng: np.random.Generator) -> Passes[CompletedMoments | PartedMoments]:
        k, schema = self.n_components, source.schema
        if self.route == "views" and k > 1:
            return parted_passes(first_look(source, schema), k, rng, polish=self.refine is not None)
        if self.route != "views" and needs_pairs(schema, k):
            return paired_passes(first_rows(source, POLICY.first_look), schema, k, rng)
        return completed_passes(first_look(source, schema), k, rng)

    def _narrowed(
        self, moments: CompletedMoments | PartedMoments, n_components: int
    ) -> CompletedMoments | PartedMoments | None:
        return narrowed(moments, n_components) if isinstance(moments, CompletedMoments) else None

    def _held_table(self) -> TableSource | None:
        """All rows of the stream; None once only sums are left."""
        stream, plan = self._stream, self._plan()
        if stream.sums is None:
            return joined(*read_table(stream.held(plan), self.family, self._names()))
        return stream.sums.held(stream.waiting(plan))  # type: ignore[no-any-return]

    def _kept_rows(self) -> TableSource | None:
        return self._held_table() if self._stream.n >= self.n_components else None

    def _stream_moments(self, kept: TableSource | None, rng: np.random.Generator) -> CompletedMoments | PartedMoments:
        n, k = self._stream.n, self.n_components
        if n < k:
            raise MomentError(f"n_samples={n} is smaller than n_components={k}: add rows.")
        if kept is not None:
            return run_passes(self._passes(kept, rng), kept)
        return self._stream.read(self._plan()).moments(k)  # type: ignore[no-any-return]

    def _stream_schema(self) -> Schema:
        assert self._stream.sums is not None
        return self._stream.sums.schema  # type: ignore[no-any-return]

    def _warns(self) -> bool:
        return True

    def _theorem(self, moments: CompletedMoments | PartedMoments, rng: np.random.Generator) -> ProductStart:
        return moments.start(rng, self._decomposer())

    def _refine(self, found: Found, rng: np.random.Generator) -> RefinedProducts:
        """EM, or one step, from the estimate where it is asked for or trusted, else from the best of several starts."""
        table, one_step = self._table_of(found), self.refine == "one-step"
        effort = "quick" if one_step or self.n_components == 1 else self.effort
        max_iter, tol = int(self.max_iter), float(self.tol)
        near = near_maximum(table, found.estimate, max_iter, tol) if effort == "auto" else None
        if near is not None:
            start, done = near
        else:
            start = choose_start(table, found.estimate, self.n_components, self._decomposer(), effort, rng)
            if one_step:
                moved, step = product_step(table.data, start.parameters)
                return RefinedProducts(table.families, moved, table.log_likelihood(moved), start, step_share=step.share)
            done = refine_products(table.data, start.parameters, max_iter=max_iter, tol=min(tol, start.tol))
        likelihood = float(done.log_likelihood[0]) + table.base
        return RefinedProducts(table.families, done.parameters, likelihood, start, done.trace)

    def _table_of(self, found: Found) -> Table:
        """The likelihood of all rows."""
        rows, estimate = found.rows, found.estimate
        return Table.of(rows, exact_families(rows) if estimate is None else estimate.families(rows.schema))

    def _conclude(self, found: Found, refined: RefinedProducts | None) -> Diagnostics:
        k, estimate = self.n_components, found.estimate
        schema = self._stream_schema() if found.rows is None else found.rows.schema
        done = self._unrefined(found, schema) if refined is None else refined
        self._learn(schema, done)
        method = ", then ".join([*([] if estimate is None else [estimate.name]), *done.steps])
        advice = (*done.advice(estimate, found.error), *advice_on(schema, k))
        if estimate is None:
            return without_moments(k, method, advice, done.details)
        method = "completed moments, one pass (EM would need the rows again)" if found.rows is None else method
        return describe(estimate, method, done.families, advice, done.details)

    def _unrefined(self, found: Found, schema: Schema) -> RefinedProducts:
        """The estimate as it is."""
        families = found.estimate.families(schema)
        parameters, _ = found.estimate.parameters(families, POLICY.pure_floor)
        if found.rows is None:
            return RefinedProducts(families, parameters)
        return RefinedProducts(families, parameters, Table.of(found.rows, families).log_likelihood(parameters))

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """All components alike, until there are rows to tell them apart."""
        rows, k = self._held_table(), self.n_components
        if rows is None:
            return super()._wait(found, rng)
        one = product_start(rows, rows.schema, 1, rng)
        families = one.families(rows.schema)
        table = np.repeat(one.parameters(families, POLICY.start_floor)[0].table, k, axis=0)
        self._learn(rows.schema, RefinedProducts(families, Parameters(np.full((1, k), 1 / k), table)))
        text = f"the rows so far do not determine the components: {found.error}"
        return without_moments(k, "waiting for more rows", (text, *advice_on(rows.schema, k)), {})

    def _learn(self, schema: Schema, done: RefinedProducts) -> None:
        order = np.argsort(-done.parameters.weights[0], kind="stable")
        families, table = done.families, done.parameters.table[order]
        self._schema, self._families = schema, families
        self.weights_, self.families_ = done.parameters.weights[0][order], schema.families
        self._take_table(table)
        self.categories_ = [np.array(schema.columns[j].categories) for j in families.categorical]
        self.n_iter_, self.converged_, self.lower_bound_ = done.n_iter, done.converged, done.log_likelihood

    # What intervals ask for.

    def _ranges(self) -> dict[str, Any]:
        bounds = {"bernoulli": SHARE, "gaussian": REAL}
        return {"means_": np.array([bounds.get(family, POSITIVE) for family in self.families_])}

    def _free_parameters(self) -> list[Free]:
        families, table = self._families, self._table
        bernoulli, _, counts, numbers, squares = families.spans
        deviations = np.sqrt(table[:, squares])
        parts = zip(families.categorical, families.category_tables(table), strict=True)
        return [
            Free("weights_", "simplex", self.weights_),
            Free("bernoulli", "share", table[:, bernoulli], columns=families.bernoulli),
            *(Free(f"categories {j}", "simplex", part, columns=np.full(part.shape[1], j)) for j, part in parts),
            Free("counts", "positive", table[:, counts], columns=families.poisson),
            Free("numbers", "real", table[:, numbers], scale=deviations, columns=families.gaussian),
            Free("squares", "positive", table[:, squares], columns=families.gaussian),
        ]

    def _moved(self, values: Mapping[str, Any]) -> Self:
        moved, families = copy(self), self._families
        # Several versions of the components may stand side by side.
        table = np.tile(self._table, (np.size(values.get("weights_", self.weights_)) // self.weights_.size, 1))
        spans = dict(zip(("bernoulli", "", "counts", "numbers", "squares"), families.spans, strict=True))
        for name, value in values.items():
            if name == "weights_":
                moved.weights_ = value
            elif name in spans:
                table[:, spans[name]] = value
            else:
                place = int(np.flatnonzero(families.categorical == int(name.split()[1]))[0])
                first = families.spans[1].start + families.blocks[place]
                table[:, first : first + families.sizes[place]] = value
        return moved._take_table(table)

    def _take_table(self, table: Floats) -> Self:
        self._table, families = table, self._families
        self.means_, self.variances_ = families.column_moments(table)
        self.probabilities_ = families.category_tables(table)
        return self

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        again = copy(self)
        values = self._schema.read(check_matrix(again, X, reset=False))
        source = joined(self._schema.with_missing(values), DenseBatch(values, given.get("sample_weight")))
        start, families = Parameters(self.weights_[None], self._table), self._families.with_missing(values)
        tol = float(self.tol) / FINER
        done = refine_products(Table.of(source, families).data, start, max_iter=int(self.max_iter), tol=tol)
        again.weights_ = done.parameters.weights[0]
        return again._take_table(done.parameters.table)

    # What `MixtureEstimator` asks for.

    def _clean(self, X: Any) -> Floats:
        return self._schema.read(check_matrix(self, X, reset=False))

    def _log_joint(self, clean: Floats) -> Floats:
        families = self._families.with_missing(clean)
        joint = log_joint(families, families.statistics(clean), self.weights_, self._table)
        return np.asarray(joint + families.base(clean)[:, None])

    def _n_parameters(self) -> int:
        k = self.weights_.size
        return int(k - 1 + k * self._families.free_parameters())

    def _parameter_price(self, members: Floats, trials: float) -> float:
        """Of shares and tables at the expected numbers of rows: BIC would count all rows for answers that few gave."""
        families, rows = self._families, members[:, None]
        ones = self._table[:, families.spans[0]].T
        tables = [*(np.column_stack([1 - p, p]) for p in ones), *families.category_tables(self._table)]
        counted = sum(fitted_gain(rows * table, table) for table in tables)
        others = members.size * (families.free_parameters() - sum(table.shape[1] - 1 for table in tables))
        shares = fitted_gain(members[None], self.weights_[None])
        return float(shares + counted + 0.5 * others * np.log(max(members.sum(), 2.0)))

    def _draw(self, labels: Labels, rng: np.random.Generator) -> Any:
        families, n = self._families, labels.size
        values = np.empty((n, self.n_features_in_))
        for j in families.bernoulli:
            values[:, [j]] = BERNOULLI.draw(self.means_[:, [j]], labels, rng)
        for j in families.poisson:
            values[:, [j]] = POISSON.draw(self.means_[:, [j]], labels, rng)
        for j in families.gaussian:
            values[:, [j]] = DIAGONAL.draw(self.means_[:, [j]], self.variances_[:, [j]], labels, rng)
        drawn: list[Any] = list(values.T)
        for j, table, known in zip(families.categorical, self.probabilities_, self.categories_, strict=True):
            codes = CATEGORICAL.draw(table, labels, rng)
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
