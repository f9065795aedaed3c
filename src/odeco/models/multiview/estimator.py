"""Mixtures seen in three or more views that are independent given the component (section 3.3, Theorem 3.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco._random import RandomState, draw_counts
from odeco.diagnostics import Diagnostics, without_moments
from odeco.families.gaussian import DIAGONAL
from odeco.fitting.candidates import EFFORTS, check_effort
from odeco.fitting.candidates import Found as Outcomes
from odeco.fitting.estimator import Found
from odeco.fitting.free import FINER, POSITIVE, REAL, SHARE, Free
from odeco.fitting.options import check_choice, check_enough, check_integer, check_number
from odeco.fitting.stream import StreamPlan
from odeco.models.mixture_base import MixtureEstimator
from odeco.models.multiview.likelihoods import ViewKinds, ViewLook, em_start, view_model, within_range
from odeco.models.multiview.moments import ViewSolution, ViewSums, column_scale, read_views, view_passes
from odeco.models.multiview.policy import POLICY
from odeco.models.multiview.search import SearchedViews, beats_clusters, clusters, find_start, near_maximum, sampled
from odeco.models.multiview.stream import StreamedViews, look_at, view_plan
from odeco.moments.passes import Passes, run_passes
from odeco.refinement.loop import Trace
from odeco.refinement.view_scoring import view_step
from odeco.refinement.views import COUNTS, ViewModel, ViewParameters, n_parameters, refine_views, views_log_joint
from odeco.sources.kinds import fitted_by
from odeco.sources.views import ViewBatch, ViewSource, as_view_batch, as_view_source, is_views
from odeco.theory import coherence

Floats = NDArray[np.float64]

_REFINE = ("auto", "em", "one-step", "least-squares", None)


class MultiViewMixture(MixtureEstimator):
    """A mixture whose samples are seen in three or more views, independent of one another given the component.

    Views may differ in dimension and kind: dense or sparse, counts or measurements. The moments need the conditional
    means alone (Theorem 3.6, in the affine form: means of each view affinely independent, so d_t >= k - 1). More than
    three views are joined to three groups. `predict`, `predict_proba`, `score` and the refinement need likelihoods,
    which the moments do not: see `likelihood`.

    Parameters
    ----------
    n_components : int or "auto"
        k; "auto" lets the data choose it (`odeco.choose_components`).
    likelihood : "auto", str, or a list with one for each view
        What is assumed of a view given the component, columns independent of each other: "gaussian" (a mean and a
        variance for every column and component), "bernoulli", "poisson", "multinomial" (rows of counts given their
        sum; one-hot rows are categories). "auto" looks at the values: one-hot rows multinomial, other 0/1 values
        Bernoulli, other counts multinomial where sparse and Poisson where dense, everything else Gaussian.
        `likelihoods_` holds what was taken.
    refine : {"auto", "em", "one-step", "least-squares", None}
        "least-squares" fits the cross moments of the views, from the paper's estimate, and assumes no likelihood.
        "auto", "em" go on with EM to convergence; "one-step" with one scoring step. None: the paper's estimate alone.
        Without EM, variances for `predict` are pooled over the components.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    smoothing : float
        Pseudo-count of each word, outcome or event in every component during EM.
    max_iter, tol : int, float
        EM steps at most; gain of the objective per sample below which they end.
    method, method_options : str, mapping or None
        Method of `odeco.decompose`, and its options.
    basis_size : int
        Samples from which `partial_fit` learns its directions.
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    weights_ : (k,)
        Largest first.
    means_ : list of (k, d_t)
        Conditional means of every view; expected counts for views of counts.
    variances_ : list of (k, d_t), None for views that are not Gaussian
    likelihoods_ : tuple of str
    groups_ : three tuples of views
    n_iter_, converged_, lower_bound_
        EM steps, whether they ended by `tol`, and the objective per sample.
    diagnostics_ : Diagnostics
        Among the details: the coherence of each view's means (Proposition 3.2), between rank / d_t and 1, which is
        large where a component is told by few columns; and the condition of each view's means.
    n_features_in_ : int
        Columns of all views together.
    """

    _moments_alone = (None, "least-squares")

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        likelihood: str | Sequence[str] = "auto",
        refine: str | None = "auto",
        effort: str = "auto",
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-5,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        basis_size: int = 5000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.likelihood = likelihood
        self.refine = refine
        self.effort = effort
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.method = method
        self.method_options = method_options
        self.basis_size = basis_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to views.

        Parameters
        ----------
        X : list [X1, X2, X3, ...] of arrays, sparse matrices or DataFrames with the same rows, or batches of such lists
            Batches: a list of lists, or a function that returns a new iterator over lists at each call. A list of Dask
            collections with the same chunks of rows, or ``from_spark(frame, ["first", "second", "third"])``.
        y : ignored
        sample_weight : (n,) array, optional
        """
        return self._fit(X, sample_weight=sample_weight)

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> ViewSource:
        source = as_view_source(fitted_by(self, X), sample_weight)
        self._take_widths(source.widths, reset=True)
        return source

    def _reopen(self, X: Any, **given: Any) -> ViewSource:
        source = as_view_source(X, **given)
        self._take_widths(source.widths, reset=False)
        return source

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of samples (a list of views) and fit to all seen so far; memory does not grow with them.

        Only moments are kept, so chunks do not matter and the result is the moment estimate, least squares included
        unless `refine` is None (EM would need the samples). Their directions, 2 k + 10 of them, come from the first
        `basis_size` samples; views with fewer columns are kept whole.
        """
        return self._partial_fit(X, sample_weight=sample_weight)

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[ViewBatch]:
        if not is_views(X):
            source = as_view_source(X, sample_weight)
            self._take_widths(source.widths, reset=reset)
            yield from source
            return
        batch = as_view_batch(X if sample_weight is None else (list(X), sample_weight))
        self._take_widths(batch.widths, reset=reset)
        yield batch

    def _take_widths(self, widths: tuple[int, ...], *, reset: bool) -> None:
        if reset:
            self.view_widths_, self.n_features_in_ = widths, int(sum(widths))
        _check_widths(widths, self.view_widths_)

    def _plan(self) -> StreamPlan[ViewBatch, StreamedViews]:
        return view_plan(self.n_components, int(self.basis_size))

    def _passes(self, source: ViewSource, rng: np.random.Generator) -> Passes[ViewSums]:
        look = yield ViewLook(source.widths, source.head)
        check_enough(look.columns.n, self.n_components)
        self._densities(look)  # says whether the views go with their likelihoods
        return (yield from view_passes(look, self.n_components, rng))

    def _narrowed(self, moments: ViewSums, n_components: int) -> ViewSums | None:
        return moments.narrowed(n_components)

    def _stream_moments(self, kept: None, rng: np.random.Generator) -> ViewSums:
        """From the sums, or from the samples as long as they are held."""
        plan = self._plan()
        if self._stream.started:
            sums: StreamedViews = self._stream.read(plan)
            return ViewSums(sums.look, sums.search, sums.moments)
        held = self._stream.held(plan)
        return run_passes(view_passes(look_at(held), self.n_components, rng), ViewSource(lambda: [held]))

    def _warns(self) -> bool:
        return False

    def _densities(self, look: ViewLook) -> ViewModel:
        return view_model(look.kinds.choose(self.likelihood), look.columns, self.smoothing)

    def _theorem(self, moments: ViewSums, rng: np.random.Generator) -> ViewSolution:
        return read_views(moments, self.n_components, rng, self._decomposer(), polish=self.refine is not None)

    def _refine(self, found: Found, rng: np.random.Generator) -> SearchedViews:
        """EM from the estimate where it is asked for or trusted, else from the best of several candidates."""
        look, one_step = found.moments.look, self.refine == "one-step"
        model, solution, moments = self._densities(look), found.estimate, None
        if solution is not None:
            moments = within_range(solution.weights, solution.means, solution.variances, model)[0]
            moments = moments if one_step else em_start(moments, model)
        max_iter, tol = int(self.max_iter), float(self.tol)
        if moments is not None and not one_step and self._shown(found):
            near = near_maximum(found.rows, moments, model, look.columns, max_iter, tol)
            if near is not None:
                return SearchedViews(near.parameters, near.trace)
        start, searched = self._start(found, model, moments, rng)
        if one_step:
            moved, step = view_step(found.rows, start, model, look.kinds.sparse)
            return SearchedViews(moved, step.trace, step_share=step.share)
        least = tol if searched is None else min(tol, POLICY.searched_tol)
        done = refine_views(lambda: found.rows, start, model, max_iter=max_iter, tol=least)
        return SearchedViews(done.parameters, done.trace.by(tol), searched)

    def _shown(self, found: Found) -> bool:
        """Whether a search may be spared: the views show just k components."""
        k = self.n_components
        return self.effort == "auto" and k > 1 and found.estimate.suggested_components == k

    def _start(
        self, found: Found, model: ViewModel, moments: ViewParameters | None, rng: np.random.Generator
    ) -> tuple[ViewParameters, Outcomes[ViewParameters] | None]:
        k, alone = self.n_components, self.effort == "quick" or self.refine == "one-step" or self.n_components == 1
        if alone and moments is not None:
            return moments, None
        columns = found.moments.look.columns
        landscape = sampled(found.rows, columns, model, rng)
        if alone:
            return clusters(landscape, k, rng), None
        if moments is not None and self._shown(found) and beats_clusters(landscape, moments, rng):
            return moments, None
        effort, method = EFFORTS[self.effort], self._decomposer()
        best = find_start(landscape, found.rows, moments, k, method, columns.n, effort, rng)
        return best.best.state, best

    def _conclude(self, found: Found, refined: SearchedViews | None) -> Diagnostics:
        look, solution = found.moments.look, found.estimate
        model = self._densities(look)
        trace = None if refined is None else refined.trace
        if solution is None:
            assert refined is not None
            self._learn(refined.parameters, model, look.kinds, trace)
            return self._describe_without_moments(found, refined)
        parameters, clipped = within_range(solution.weights, solution.means, solution.variances, model)
        self._learn(parameters if refined is None else refined.parameters, model, look.kinds, trace)
        return self._describe(solution, clipped, refined, one_pass=found.rows is None)

    def _describe_without_moments(self, found: Found, refined: SearchedViews) -> Diagnostics:
        """What was done instead, and why."""
        begun = "k-means clusters" if refined.searched is None else f"k-means clusters, {refined.searched}"
        text = f"the moments could not be used ({found.error}) EM started from {begun}: try other seeds."
        return without_moments(self.n_components, f"{begun}, then {refined.told()}", (text,), refined.details())

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """Column means for all components until there are samples enough, and words that say so."""
        k, look = self.n_components, found.moments.look
        means = [np.tile(mean, (k, 1)) for mean in look.columns.means]
        model = self._densities(look)
        parameters, _ = within_range(np.full(k, 1 / k), means, look.columns.variances, model)
        self._learn(parameters, model, look.kinds, None)
        text = f"the samples so far do not determine the components yet: {found.error}"
        return without_moments(k, "none yet", (text,), {})

    def _learn(self, parameters: ViewParameters, model: ViewModel, kinds: ViewKinds, trace: Trace | None) -> None:
        parameters = parameters.ordered(np.argsort(-parameters.weights, kind="stable"))
        self.weights_, self.means_ = parameters.weights, list(parameters.means)
        self.variances_ = list(parameters.variances)
        self.likelihoods_ = model.likelihoods
        self._model, self._kinds = model, kinds
        self.n_iter_ = 0 if trace is None else trace.n_iter
        self.converged_ = trace is not None and trace.converged
        self.lower_bound_ = float("nan") if trace is None else float(trace.values.max())

    def _describe(
        self,
        solution: ViewSolution,
        clipped: float,
        refined: SearchedViews | None,
        *,
        one_pass: bool,
    ) -> Diagnostics:
        k, parts, search = self.n_components, solution.components, solution.search
        self.groups_ = search.basis.groups
        values = search.singular_values
        advice = []
        suggested = solution.suggested_components
        if suggested < k:
            advice.append(
                f"components that stand out from the sampling noise of the pairs of views: {suggested}, and "
                f"n_components={k} asks for more. Lower it, or use more samples."
            )
        if parts.residual > POLICY.doubtful_residual:
            advice.append(
                f"the decomposed tensor leaves {parts.residual:.0%} of its norm: the moments are mostly noise. Use "
                "more samples or fewer components."
            )
        method = "moments, least squares" if parts.n_sweeps else "moments"
        method = f"{method}, one pass" if one_pass else method
        if refined is not None:
            method = method if refined.searched is None else f"{method}, {refined.searched}"
            method = f"{method}, then {refined.told()}"
        return Diagnostics(
            n_components=k,
            spectrum=parts.spectrum,
            gap=float(1 - values[k - 1] / values[k - 2]) if 1 < k <= values.size else 1.0,
            condition=float(parts.spectrum[0] / parts.spectrum[-1]),
            residual=parts.residual,
            clipped_mass=clipped,
            suggested_components=suggested,
            method=method,
            n_passes=1 if one_pass else solution.n_passes,
            advice=tuple(advice),
            details={
                **({"refinement": None} if refined is None else refined.details()),
                "groups": search.basis.groups,
                "pivot": parts.pivot,
                "singular_values": values,
                "noise": solution.noise,
                **_view_details(solution, k),
            },
        )

    def _check_options(self) -> None:
        super()._check_options()
        check_integer("n_components", self.n_components)
        check_choice("refine", self.refine, _REFINE)
        check_effort(self.effort)
        check_integer("max_iter", self.max_iter)
        check_integer("basis_size", self.basis_size)
        check_number("tol", self.tol)
        check_number("smoothing", self.smoothing)

    # What intervals ask for.

    def _ranges(self) -> dict[str, Any]:
        bounds = {"bernoulli": SHARE, "gaussian": REAL}
        return {"means_": [bounds.get(likelihood, POSITIVE) for likelihood in self.likelihoods_]}

    def _free_parameters(self) -> list[Free] | None:
        """None where views are words: how many of them a row has is no part of its likelihood."""
        if "multinomial" in self.likelihoods_:
            return None
        kinds = {"bernoulli": "share", "gaussian": "real", "poisson": "positive"}
        found, first = [Free("weights_", "simplex", self.weights_)], 0
        for t, (mean, variance) in enumerate(zip(self.means_, self.variances_, strict=True)):
            columns = first + np.arange(mean.shape[1])
            scale = None if variance is None else np.sqrt(variance)
            found.append(Free(f"mean {t}", kinds[self.likelihoods_[t]], mean, scale=scale, columns=columns))
            if variance is not None:
                found.append(Free(f"variance {t}", "positive", variance, columns=columns))
            first += mean.shape[1]
        return found

    def _moved(self, values: Mapping[str, Any]) -> Self:
        moved = copy(self)
        moved.means_, moved.variances_ = list(self.means_), list(self.variances_)
        for name, value in values.items():
            if name == "weights_":
                moved.weights_ = value
            else:
                what, t = name.split()
                (moved.means_ if what == "mean" else moved.variances_)[int(t)] = value
        return moved

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        source = as_view_source(X, given.get("sample_weight"))
        start = ViewParameters(self.weights_, tuple(self.means_), tuple(self.variances_))
        tol = float(self.tol) / FINER
        done = refine_views(lambda: source, start, self._model, max_iter=int(self.max_iter), tol=tol).parameters
        again = copy(self)
        again.weights_, again.means_, again.variances_ = done.weights, list(done.means), list(done.variances)
        return again

    # What the shell of the mixtures asks for.

    def _clean(self, X: Any) -> Any:
        if not is_views(X):
            source = as_view_source(X)
            _check_widths(source.widths, self.view_widths_)
            return source
        batch = as_view_batch(X)
        _check_widths(batch.widths, self.view_widths_)
        return batch.pieces()

    def _log_joint(self, clean: Any) -> Floats:
        parameters = ViewParameters(self.weights_, tuple(self.means_), tuple(self.variances_))
        return np.vstack([views_log_joint(batch.blocks, parameters, self._model) for batch in clean])

    def _batch_joint(self, batch: ViewBatch) -> Floats:
        return self._log_joint(batch.pieces())

    def _n_parameters(self) -> int:
        return n_parameters(self.likelihoods_, self.view_widths_, self.weights_.size)

    def _draw(self, labels: NDArray[np.intp], rng: np.random.Generator) -> list[Any]:
        return [self._draw_view(t, labels, rng) for t in range(len(self.means_))]

    def _draw_view(self, t: int, labels: NDArray[np.intp], rng: np.random.Generator) -> Any:
        mean, likelihood = self.means_[t], self.likelihoods_[t]
        if likelihood == "gaussian":
            return DIAGONAL.draw(mean, self.variances_[t], labels, rng)
        if likelihood != "multinomial":
            return COUNTS[likelihood].draw(mean, labels, rng).astype(np.float64)
        drawn = _draw_words(mean, labels, self._kinds.row_sum(t), rng)
        return drawn if self._kinds.sparse[t] else drawn.toarray()


def _check_widths(found: tuple[int, ...], widths: tuple[int, ...]) -> None:
    if found != widths:
        raise ValueError(f"X has views of {found} columns, but MultiViewMixture was fitted on {widths}.")


def _view_details(solution: ViewSolution, k: int) -> dict[str, Any]:
    """Coherence and condition of each view's means, columns of unit variance, about the overall mean."""
    coherences, conditions = [], []
    for mean, center, variance in zip(solution.means, solution.columns.means, solution.columns.variances, strict=True):
        scaled = (mean - center) * column_scale(variance, counts=False) * np.sqrt(solution.weights)[:, None]
        values = np.linalg.svd(scaled, compute_uv=False)[: max(k - 1, 1)]
        conditions.append(float(values[0] / values[-1]) if values[-1] > 0 else float("inf"))
        coherences.append(coherence(scaled) if values[0] > 0 else 1.0)
    return {"coherence": tuple(coherences), "view_conditions": tuple(conditions)}


def _draw_words(
    mean: Floats, labels: NDArray[np.intp], row_sum: float | None, rng: np.random.Generator
) -> sparse.csr_array:
    """Rows of counts: of the sum that all rows of the fit had, else of Poisson sums with the component's mean."""
    totals = mean.sum(axis=1)
    lengths = draw_counts(rng, totals[labels]) if row_sum is None else np.full(len(labels), int(row_sum))
    words = COUNTS["multinomial"].draw(mean, np.repeat(labels, lengths), rng)
    rows = np.repeat(np.arange(len(labels)), lengths)
    return sparse.coo_array((np.ones(words.size), (rows, words)), shape=(len(labels), mean.shape[1])).tocsr()
