"""Crowd labels (Dawid and Skene 1979) as the multi-view model they are: groups of workers, Theorem 3.6, then EM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState
from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.families.counts import CATEGORICAL
from odeco.fitting.candidates import EFFORTS, check_effort
from odeco.fitting.candidates import Found as Outcomes
from odeco.fitting.estimator import Found
from odeco.fitting.free import FINER, Free
from odeco.fitting.options import check_choice, check_integer, check_number
from odeco.fitting.stream import StreamPlan
from odeco.models.dawid_skene.moments import (
    Alignment,
    CrowdLook,
    CrowdSolution,
    MajorityVotes,
    align_classes,
    average_solutions,
    solve_crowd,
)
from odeco.models.dawid_skene.policy import POLICY
from odeco.models.dawid_skene.search import search_further
from odeco.models.dawid_skene.stream import StreamedVotes, vote_plan
from odeco.models.lazy import by_rows
from odeco.models.mixture_base import MixtureEstimator
from odeco.moments.crowd import draw_groups
from odeco.moments.passes import Passes, fill
from odeco.refinement.dawid_skene import (
    CrowdParameters,
    CrowdPosteriors,
    CrowdRefinement,
    crowd_log_joint,
    refine_crowd,
)
from odeco.refinement.loop import Trace
from odeco.refinement.one_step import crowd_step
from odeco.sources.counts import check_weights
from odeco.sources.crowd import CrowdLabels, name_codes, read_labels
from odeco.sources.kinds import Checkpointed, OutOfCore, fitted_by
from odeco.sources.votes import CrowdNames, VoteBatch, VoteSource, joined, open_votes

Floats = NDArray[np.float64]

_REFINE = ("auto", "em", "one-step", "least-squares", None)
_NOT_REFINED: dict[str, Any] = {"objectives": [], "start": "moments", "best_replicated": None}


class DawidSkene(MixtureEstimator):
    """True classes of items from the labels of annotators who err, each in his own way.

    Given the true class of an item its labels are independent. Workers are put into three groups at random; the mean
    votes of the groups are three views of the class (Theorem 3.6; Zhang, Chen, Zhou and Jordan 2014), their moments
    give the class probabilities and the confusions of every worker, and EM goes on from there. Labels are taken to be
    missing at random: who labels what says nothing of the class.

    The data cannot say which latent class is called what. Convention: diagonal dominance, that is the one-to-one
    naming under which most votes are right. A crowd that is wrong more often than right is therefore taken at its word.

    Parameters
    ----------
    n_classes : int, "auto" or None
        Number of true classes; None: as many as there are different labels. Fewer is possible (a label such as
        "unsure" that is never true), more is not. "auto" lets the data choose it (`odeco.choose_components`).
    layout : {"auto", "wide", "long"}
        Wide: (items, annotators), NaN, None or -1 where none was given. Long: rows (item, worker, label); a pair that
        comes twice counts twice. "auto" takes DataFrames with columns named item, worker, label for long, and arrays of
        three columns whose pairs (first, second) never repeat and whose first column has more values than the third and
        not only labels; all else for wide. `layout_` says what was decided.
    n_init : int
        Random groupings of the workers. EM starts from each of them, and from majority votes; the best posterior is
        kept, and `diagnostics_` says what it came from.
    refine : {"auto", "em", "one-step", "least-squares", None}
        "least-squares" fits the moments of the groups, from the theorem's estimate. "auto", "em" go on with EM to
        convergence, "one-step" takes one scoring step. None: the theorem alone. But for EM the estimates of all
        groupings are averaged.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    smoothing : float
        Pseudo-counts of each label of each worker in each class. A worker with one label stays near "don't know".
    max_iter, tol : int, float
        EM steps at most; gain of the log posterior per item below which they end.
    method, method_options : str, mapping or None
        Method of `odeco.decompose`, and its options.
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    classes_ : (k,)
        Labels that name the classes, sorted: the order of `weights_` and of the columns of `predict_proba`.
    weights_ : (k,)
    confusion_ : (W, k, L)
        ``confusion_[annotator, true, given]``; rows sum to 1.
    given_labels_ : (L,)
        The last axis of `confusion_`: all labels seen. The same as `classes_` unless `n_classes` is smaller.
    annotators_ : (W,)
        Names of the workers, sorted; column names or numbers for wide input.
    items_ : (n,)
        Names of the items of the fit, sorted, for long input; row numbers for wide. Empty where they lie elsewhere.
    layout_ : str
    n_iter_, converged_, lower_bound_
        EM steps, whether they ended by `tol`, and the log-likelihood per item.
    diagnostics_ : Diagnostics
    n_features_in_ : int
        The number of annotators.
    """

    items_: NDArray[Any]
    annotators_: NDArray[Any]
    given_labels_: NDArray[Any]
    layout_: str

    _stream_options = ("n_classes", "n_init")
    _count = "n_classes"
    _moments_alone = (None, "least-squares")

    def __init__(
        self,
        n_classes: int | str | None = None,
        *,
        layout: str = "auto",
        n_init: int = 5,
        refine: str | None = "auto",
        effort: str = "auto",
        smoothing: float = 0.5,
        max_iter: int = 200,
        tol: float = 1e-6,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.layout = layout
        self.n_init = n_init
        self.refine = refine
        self.effort = effort
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.method = method
        self.method_options = method_options
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to labels.

        Parameters
        ----------
        X : (items, annotators) array or DataFrame, rows (item, worker, label), or batches of wide rows
            Batches: a list of arrays or a function that returns an iterator over them. Labels are kept, in sparse form,
            unless the batches are in `odeco.sources.out_of_core`, which also takes long rows sorted by item. Dask and
            Spark collections, wide or long, stay where they are.
        y : ignored
        sample_weight : (n_items,) array, optional
            Weight of each item, in the order of `items_`.
        """
        return self._fit(X, sample_weight=sample_weight)

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> VoteSource:
        crowd = open_votes(fitted_by(self, X), self.layout, sample_weight)
        self._begin(crowd.names, crowd.items)
        return crowd

    def _reopen(self, X: Any, **given: Any) -> VoteSource:
        known = CrowdNames(self.layout_, self.annotators_, self.given_labels_)
        return open_votes(X, self.layout_, known=known, **given)

    def _coded(self) -> Self:
        """Items as wide rows of codes."""
        coded = super()._coded()
        n_workers, k, n_labels = len(self.annotators_), len(self.weights_), len(self.given_labels_)
        coded.layout, coded.layout_, coded.n_classes = "wide", "wide", k
        coded.annotators_, coded.given_labels_ = np.arange(n_workers), np.arange(n_labels)
        return coded

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        annotators: ArrayLike | None = None,
    ) -> Self:
        """Add items, wide rows or long ones, and fit to all seen so far.

        Only moments are kept: the chunks do not matter, and the result is the moment estimate, least squares included
        unless `refine` is None (EM would need the labels again). Give all labels as `classes` in the first call unless
        its chunk has them all. Wide chunks have the same annotators in each call. Long chunks have whole items, all
        labels of an item in one chunk (sort the rows by item and cut between items; `items_` are those of the last
        chunk); name all `annotators` in the first call unless its chunk has them all.
        """
        if isinstance(X, (OutOfCore, Checkpointed)):
            raise ValueError(
                "partial_fit takes one chunk after the other: give data out of core or checkpointed to fit."
            )
        return self._partial_fit(X, sample_weight=sample_weight, classes=classes, annotators=annotators)

    def _chunks(
        self,
        X: Any,
        *,
        reset: bool,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        annotators: ArrayLike | None = None,
    ) -> Iterator[VoteBatch]:
        if reset:
            crowd = read_labels(X, self.layout, workers=_names(annotators), classes=_names(classes))
            if crowd.layout == "wide" and annotators is not None:
                raise ValueError("annotators is for long rows: a wide table has a column for each of them.")
            self._begin(CrowdNames.of(crowd), crowd.items)
        else:
            crowd = read_labels(X, self.layout_, workers=self.annotators_, classes=self.given_labels_)
            if crowd.layout == "long":
                self._next_items(crowd)
        weights = np.ones(len(crowd)) if sample_weight is None else check_weights(sample_weight, len(crowd))
        yield VoteBatch(crowd.votes, weights)

    def _plan(self) -> StreamPlan[VoteBatch, StreamedVotes]:
        return vote_plan(len(self.annotators_), len(self.given_labels_), int(self.n_init))

    def _next_items(self, crowd: CrowdLabels) -> None:
        """Items of another chunk of long rows; an item that was cut in two would count as two."""
        both = sorted(set(crowd.items.tolist()) & set(self.items_.tolist()))
        if both:
            raise ValueError(
                f"item {both[0]!r} has labels in this chunk and in the one before ({len(both)} such items): "
                "partial_fit needs all labels of an item in one chunk. Sort the rows by item and cut between items."
            )
        self.items_ = crowd.items

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Annotators, classes, labels."""
        n_labels = len(self.given_labels_)
        return len(self.annotators_), n_labels if self.n_classes is None else int(self.n_classes), n_labels

    def _passes(self, source: VoteSource, rng: np.random.Generator) -> Passes[CrowdLook]:
        draws = np.random.default_rng(self._stream_seed())  # the groupings of a stream
        groups = tuple(draw_groups(len(self.annotators_), draws) for _ in range(int(self.n_init)))
        look: CrowdLook = yield CrowdLook(groups, len(self.given_labels_))
        if not look.label_counts.any():
            raise ValueError("sample_weight is 0 for every item that has a label: give some of them weight.")
        return look

    def _narrowed(self, moments: CrowdLook, n_components: int) -> CrowdLook:
        return moments  # of the labels: the number of classes does not matter

    def _most_components(self, source: VoteSource) -> int:
        return len(self.given_labels_)

    def _warns(self) -> bool:
        return False

    def _theorem(self, moments: StreamedVotes, rng: np.random.Generator) -> tuple[CrowdSolution, ...]:
        """Theorem 3.6 for every grouping that allows it."""
        k, method, polish = self._shape[1], self._decomposer(), self.refine is not None
        found, errors = [], []
        for sums in moments.groupings:
            try:
                found.append(solve_crowd(sums, k, rng, smoothing=self.smoothing, method=method, polish=polish))
            except MomentError as error:
                errors.append(error)
        if not found:
            raise MomentError(f"groups of annotators as views: {errors[0]}")
        return tuple(found)

    def _refine(self, found: Found, rng: np.random.Generator) -> _Refined:
        """EM from the estimate of every grouping and from majority votes, all at once; the best is kept."""
        if self.refine == "one-step":
            return self._one_step(found)
        starts = list(found.estimate or ())
        if self.effort != "quick" or not starts:  # votes are one more start of EM, or the only one
            votes = self._majority(found)
            starts.append(replace(starts[0], parameters=votes) if starts else CrowdSolution(votes))
        runs = self._climb(found.rows, [_blurred(start.parameters) for start in starts])
        weight = found.moments.groupings[0].weight
        objectives = [weight * run.objective for run in runs]
        winner = int(np.argmax(objectives))
        same = float(np.mean(np.array(objectives) > max(objectives) - POLICY.same))
        name = "moments" if winner < len(found.estimate or ()) else "majority votes"
        details: dict[str, Any] = {"objectives": objectives, "start": name, "best_replicated": same}
        run, further = runs[winner], None
        if self.effort != "quick" and self.max_iter > 1:
            effort = EFFORTS[self.effort]
            further = search_further(found.rows, run.parameters, name, self.smoothing, effort, rng)
        if further is not None:
            details |= further.details()
            if weight * further.best.value > objectives[winner] + POLICY.same:
                run, details["start"] = self._climb(found.rows, [further.best.state])[0], further.best.name
            else:
                further = None  # it led nowhere
        return _Refined(run, starts[winner], details, further)

    def _one_step(self, found: Found) -> _Refined:
        """One scoring step from the mean of all groupings' estimates."""
        by_worker, name = found.moments.label_counts.sum(axis=1), "moments" if found.estimate else "majority votes"
        start = average_solutions(found.estimate, by_worker) if found.estimate else CrowdSolution(self._majority(found))
        moved, step = crowd_step(found.rows, start.parameters)
        details = _NOT_REFINED | {"start": name, "step_share": step.share}
        return _Refined(CrowdRefinement(moved, step.trace), start, details)

    def _majority(self, found: Found) -> CrowdParameters:
        sums = fill(MajorityVotes(self._shape, found.moments.label_counts, self.smoothing), found.rows)
        return sums.maximized(self.smoothing)[0]  # type: ignore[no-any-return]

    def _climb(self, crowd: VoteSource, starts: list[CrowdParameters]) -> list[CrowdRefinement]:
        return refine_crowd(crowd, starts, smoothing=self.smoothing, max_iter=int(self.max_iter), tol=float(self.tol))

    def _conclude(self, found: Found, refined: _Refined | None) -> Diagnostics:
        items, by_worker = found.moments.groupings[0], found.moments.label_counts.sum(axis=1)
        best = average_solutions(found.estimate, by_worker) if refined is None else refined.start
        parameters = best.parameters if refined is None else refined.run.parameters
        trace = None if refined is None else refined.run.trace
        alignment = self._learn(parameters, by_worker, trace)
        n_found = len(found.estimate or ())
        method = f"moments of {n_found} groupings of the workers"
        details = {"failed_groupings": int(self.n_init) - n_found, "diagonal": alignment.diagonal}
        if found.rows is None:
            return self._describe(best, f"{method}, one pass", [], {"n_items": items.n, **details})
        self.lower_bound_ = float(fill(CrowdPosteriors([parameters]), found.rows).log_likelihood[0] / items.weight)
        advice = self._naming(alignment)
        if n_empty := found.moments.n_empty:
            advice = [f"{n_empty} of {items.n} items have no label: all that is known of them is weights_.", *advice]
        if not n_found:
            advice = [f"the moments could not be used ({found.error}) EM started from majority votes.", *advice]
        if refined is not None:
            voted = self.effort != "quick" and self.refine != "one-step"
            start = (f"{method} and majority votes" if voted else method) if n_found else "majority votes"
            start = start if refined.further is None else f"{start}, {refined.further}"
            steps = "one scoring step" if self.refine == "one-step" else f"{self.n_iter_} EM steps"
            method = f"{start}, then {steps}"
        started = _NOT_REFINED if refined is None else refined.details
        return self._describe(best, method, advice, {"refinement": trace, **started, **details})

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """Even votes while there are too few items."""
        n_workers, k, n_labels = self._shape
        even = CrowdParameters(np.full(k, 1 / k), np.full((n_workers, k, n_labels), 1 / n_labels))
        alignment = self._learn(even, found.moments.label_counts.sum(axis=1), None)
        details = {"n_items": self._stream.n, "failed_groupings": int(self.n_init), "diagonal": alignment.diagonal}
        text = f"the items so far do not determine the classes yet: {found.error}"
        return self._describe(CrowdSolution(even), "none yet", [text], details)

    def _begin(self, crowd: CrowdNames, items: NDArray[Any]) -> None:
        """Take over the names, once they go with the number of classes."""
        self.items_, self.annotators_, self.layout_ = items, crowd.workers, crowd.layout
        self.given_labels_, self.n_features_in_ = crowd.classes, len(crowd.workers)
        k = len(crowd.classes) if self.n_classes is None else int(self.n_classes)
        if self.n_classes is None and k > POLICY.most_classes:
            raise ValueError(
                f"X has {k} different labels: say n_classes if they are classes, or the layout ({crowd.layout!r} was "
                "taken) if they are not."
            )
        if k > len(crowd.classes):
            shown = ", ".join(map(repr, crowd.classes[:5].tolist()))
            raise ValueError(
                f"n_classes={k}, but X has {len(crowd.classes)} different label{'s' * (len(crowd.classes) > 1)} "
                f"({shown}): a class that nobody ever named cannot be named. Lower n_classes, or leave it None."
            )
        if k < len(crowd.classes) and len(crowd.classes) > 20 * k:
            raise ValueError(
                f"X has {len(crowd.classes)} different labels for n_classes={k}: it seems to be read in the wrong "
                f"layout ({crowd.layout!r}). Say layout='long' for rows (item, worker, label), or 'wide'."
            )

    def _learn(self, parameters: CrowdParameters, by_worker: Floats, trace: Trace | None) -> Alignment:
        alignment = align_classes(parameters.confusion, by_worker)
        self.classes_ = self.given_labels_[alignment.labels]
        self.weights_ = parameters.weights[alignment.order]
        self.confusion_ = np.ascontiguousarray(parameters.confusion[:, alignment.order])
        self.n_iter_ = 0 if trace is None else trace.n_iter
        self.converged_ = trace is not None and trace.converged
        self.lower_bound_ = float("nan")
        return alignment

    def _naming(self, alignment: Alignment) -> list[str]:
        own, given = self.classes_.tolist(), self.given_labels_.tolist()
        return [
            f"class {own[i]!r} is labelled {given[label]!r} more often than by its own name: "
            "the names of the classes are in doubt. Use a few items with known truth to check them."
            for i, label in alignment.doubtful
        ]

    def _describe(self, best: CrowdSolution, method: str, advice: list[str], details: dict[str, Any]) -> Diagnostics:
        parts, k = best.components, len(self.weights_)
        spectrum = np.zeros(0) if parts is None else parts.spectrum
        return Diagnostics(
            n_components=k,
            spectrum=spectrum,
            gap=float("nan") if parts is None else _gap(parts.singular_values, k - 1),
            condition=float("nan") if parts is None else float(spectrum[0] / spectrum[-1]),
            residual=float("nan") if parts is None else parts.residual,
            clipped_mass=best.clipped_mass,
            method=method,
            advice=tuple(advice),
            details=details,
        )

    def _check_options(self) -> None:
        super()._check_options()
        if self.n_classes is not None:
            check_integer("n_classes", self.n_classes)
        check_choice("layout", self.layout, ("auto", "wide", "long"))
        check_choice("refine", self.refine, _REFINE)
        check_effort(self.effort)
        check_integer("n_init", self.n_init)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("smoothing", self.smoothing)
        if self.smoothing == 0:
            raise ValueError("smoothing must be positive: without it one label makes a worker certain.")

    # What intervals ask for.

    def _free_parameters(self) -> list[Free]:
        workers = np.repeat(np.arange(len(self.confusion_))[:, None], self.confusion_.shape[2], axis=1)
        return [
            Free("weights_", "simplex", self.weights_),
            Free("confusion_", "simplex", self.confusion_, axis=1, columns=workers),
        ]

    def _trial_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"confusion_": (*self.confusion_.shape[:2], 1)}

    def _batch_trials(self, batch: VoteBatch, shares: Floats) -> dict[str, Floats]:
        """Labels that each annotator gave to items of each class, (W, k, 1)."""
        by_label = np.asarray(batch.votes.T @ shares)
        return {"confusion_": by_label.reshape(len(self.annotators_), -1, shares.shape[1]).sum(axis=1)[:, :, None]}

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        votes, weights = self._clean(X), given.get("sample_weight")
        batch = VoteBatch(votes, np.ones(votes.shape[0]) if weights is None else weights)
        start = CrowdParameters(self.weights_, self.confusion_)
        tol = float(self.tol) / FINER
        done = refine_crowd([batch], [start], smoothing=self.smoothing, max_iter=int(self.max_iter), tol=tol)
        again = copy(self)
        again.weights_, again.confusion_ = done[0].parameters.weights, done[0].parameters.confusion
        return again

    # What the shell of the mixtures asks for.

    def _clean(self, X: Any) -> Any:
        known = CrowdNames(self.layout_, self.annotators_, self.given_labels_)
        return known.read(joined(X))

    def _log_joint(self, clean: sparse.csr_array) -> Floats:
        return crowd_log_joint(clean, CrowdParameters(self.weights_, self.confusion_))

    def _batch_joint(self, batch: VoteBatch) -> Floats:
        return self._log_joint(batch.votes)

    def _n_parameters(self) -> int:
        return CrowdParameters(self.weights_, self.confusion_).n_parameters

    @by_rows("class")
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each item (rows of wide input; items in sorted order for long rows).

        Of long rows in Dask and Spark the answers come with the names of the items.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self._log_joint(self._clean(X)), axis=1)])

    def _draw(self, labels: NDArray[np.intp], rng: np.random.Generator) -> NDArray[Any]:
        """One label of every annotator for items of the given classes, (n, W)."""
        given = [CATEGORICAL.draw(confusion, labels, rng) for confusion in self.confusion_]
        return np.asarray(self.given_labels_[np.stack(given, axis=1)])


@dataclass(frozen=True, eq=False)
class _Refined:
    """The run of EM that ended best, where it started, and what the others came to."""

    run: CrowdRefinement
    start: CrowdSolution
    details: dict[str, Any]
    further: Outcomes[CrowdParameters] | None = None  # the search that led further


def _gap(singular_values: tuple[Floats, Floats, Floats], rank: int) -> float:
    """The smallest gap among the three pairs after `rank` singular values."""
    gaps = [1 - values[rank] / values[rank - 1] for values in singular_values if values.size > rank > 0]
    return float(min(gaps, default=1.0))


def _names(given: ArrayLike | None) -> NDArray[Any] | None:
    return None if given is None else name_codes(given)


def _blurred(parameters: CrowdParameters) -> CrowdParameters:
    """Where EM starts: workers with few labels come out of the moments too sure."""
    even = POLICY.start_share / parameters.confusion.shape[2]
    return CrowdParameters(parameters.weights, (1 - POLICY.start_share) * parameters.confusion + even)
