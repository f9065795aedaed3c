"""What every estimator is: five parts that a model gives, and the one way in which they are run.

Rows are opened, passes over them fill sums, a theorem reads an estimate from the sums, likelihood steps refine it, and
what was learned gets its names. `MomentEstimator` goes this way for `fit`, from all rows, and for `partial_fit` and
files of moments, from the sums that a stream has left.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from odeco._random import as_generator
from odeco.decomposition import Decomposer
from odeco.diagnostics import Diagnostics, warn_all
from odeco.exceptions import MomentError
from odeco.fitting.choice.judging import Judged
from odeco.fitting.free import Free
from odeco.fitting.hints import with_hints
from odeco.fitting.rows import check_width
from odeco.fitting.rows import vector_chunks as vector_chunks
from odeco.fitting.shown import Shown
from odeco.fitting.stream import MomentStream, StreamPlan
from odeco.kernels.threads import single_threaded_blas
from odeco.moments.passes import Passes, run_passes
from odeco.progress import Lines, listening, tell
from odeco.sources.base import require_passes


@dataclass(frozen=True, eq=False)
class Found:
    """What is known before a refinement.

    Attributes
    ----------
    rows : source or None
        None where there are only the sums of a stream; of one whose first rows are kept, these.
    moments : what the passes, or the stream, gave
    estimate : what the theorem made of them
        None where they do not determine the model: `error` says why.
    error : MomentError or None
    """

    rows: Any
    moments: Any = None
    estimate: Any = None
    error: MomentError | None = None


def _said_of_choice(choice: Any) -> tuple[str, ...]:
    """What is worth a warning: a number that has no end."""
    if not choice.open_ended:
        return ()
    return (
        f"the data would have {choice.best} components or more, the largest number that was tried: components of this "
        "form may not be those of the data. Scale the columns, or use another form (covariance_type, family); "
        "odeco.choose_components tries more.",
    )


class MomentEstimator(Shown):
    """An estimator by moments. A model gives:

    - rows: ``_open(X, ...)``, a source to fit on, and ``_chunks(X, reset=..., ...)`` for a stream;
    - passes: ``_passes(source, rng)``, and ``_plan()`` for a stream;
    - theorem: ``_theorem(moments, rng)``;
    - family: ``_refine(found, rng)``;
    - names: ``_conclude(found, refined)``, which sets the learned attributes.

    ``_check_options`` comes before all of them.
    """

    _count: ClassVar[str] = "n_components"  # the argument that says how many components there are
    _criterion: ClassVar[str] = "bic"  # what decides how many, where that is not said
    _stream_options: ClassVar[tuple[str, ...]] = ("n_components",)  # what the sums are made for
    _moments_alone: ClassVar[tuple[str | None, ...]] = (None,)  # what `refine` is where no refinement follows
    _stream: MomentStream[Any, Any]
    diagnostics_: Diagnostics
    refine: str | None
    method: str
    method_options: Mapping[str, Any] | None
    random_state: Any
    n_components_: int
    n_features_in_: int
    get_params: Callable[..., dict[str, Any]]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "__init__" in vars(cls):
            cls.__init__ = with_hints(cls.__init__)  # type: ignore[method-assign]

    # What a model gives.

    _open: Callable[..., Any]  # ``_open(X, ...)``: a source, once X is checked and its form learned
    # ``_chunks(X, *, reset, ...)``: checked chunks of X; with `reset` the form of the data is learned from the first.
    _chunks: Callable[..., Iterator[Any]]

    def _check_options(self) -> None:
        """Raise for options that could not be used, before anything is computed."""
        self._decomposer()

    @abstractmethod
    def _passes(self, source: Any, rng: Any) -> Passes[Any]:
        """The passes over the rows (`odeco.moments.passes`), which return the moments."""

    @abstractmethod
    def _plan(self) -> StreamPlan[Any, Any]:
        """How chunks are held and summed, once the form of the data is known."""

    def _kept_rows(self) -> Any:
        """Rows of the stream that are still there, for likelihood steps: none, unless a model keeps some."""
        return None

    def _stream_moments(self, kept: Any, rng: Any) -> Any:
        """The moments of all that the stream has seen, in the form in which `_passes` returns them."""
        return self._stream.read(self._plan())

    @abstractmethod
    def _theorem(self, moments: Any, rng: Any) -> Any:
        """What the paper reads from the moments, and nothing else; MomentError where they do not determine it."""

    def _refine(self, found: Found, rng: Any) -> Any:
        """The refined parameters, from the theorem's estimate or, where there is none, from another start.

        A model without a refinement stays with the estimate.
        """
        if found.error is not None:
            raise found.error
        return None

    @abstractmethod
    def _conclude(self, found: Found, refined: Any) -> Diagnostics:
        """Set the learned attributes, from what was refined or, where that is None, from the estimate; a report."""

    def _wait(self, found: Found, rng: Any) -> Diagnostics:
        """Placeholders for a stream that does not determine the model yet, and words that say so; or the error."""
        assert found.error is not None
        raise found.error

    # What a choice of the number of components asks for (`odeco.fitting.choice`).

    def _narrowed(self, moments: Any, n_components: int) -> Any:
        """The moments of fewer components as a part of those of more; None where they have to be read."""
        return None

    def _judge(self, batch: Any) -> Judged:
        """What the fitted model says of some samples, where it has a likelihood."""
        raise NotImplementedError

    def _judges(self) -> bool:
        """Whether it has one."""
        return type(self)._judge is not MomentEstimator._judge

    def _n_parameters(self) -> int | None:
        """Those of the fitted model; None where its likelihood is not one of all rows."""
        return None

    def _parameter_price(self, members: Any, trials: float) -> float | None:
        """Nats that samples gain by parameters that were fitted to them; None: there is BIC's count alone.

        `members` (k,) are the samples that each component is expected to have, `trials` the draws that all of them
        consist of: words of documents, elsewhere the samples themselves. With the price the log-likelihood is one with
        the parameters integrated out (Cheeseman and Stutz 1996): expected counts stand for the hidden ones.
        """
        return None

    def _described_components(self) -> Any:
        """A row of numbers for each component by which two fits are compared; None: by whose samples they are."""
        return None

    def _shown_components(self) -> int | None:
        """How many components the moments show above noise, from the report of a fit of many."""
        return self.diagnostics_.suggested_components

    def _most_components(self, source: Any) -> int | None:
        """As many as these columns can have at all; None where nothing limits them."""
        return None

    def _most_judged(self) -> int | None:
        """Samples of a half at most, where more would not judge better; None for all."""
        return None

    # What intervals ask for (`odeco.uncertainty`).

    _signed: ClassVar[tuple[str, ...]] = ()  # learned attributes whose components may be turned by their sign

    def _ranges(self) -> dict[str, Any]:
        """Bounds of learned numbers (`odeco.fitting.free`) where the card's words do not tell them."""
        return {}

    def _free_parameters(self) -> list[Free] | None:
        """The parameters whose likelihood a refinement maximises; None where there is none, or nobody has said."""
        return None

    def _moved(self, values: Mapping[str, Any]) -> Self:
        """The fitted model with other values of free parameters, and all learned attributes that follow from them."""
        moved = copy(self)
        for name, value in values.items():
            setattr(moved, name, value)
        return moved

    def _reopen(self, X: Any, **given: Any) -> Any:
        """A source of other rows, checked to have the form of those of the fit, which stays what was learned of it."""
        fresh = type(self)(**self.get_params(deep=False))
        source = fresh._open(X, **given)
        check_width(self, fresh.n_features_in_)
        return source

    def _coded(self) -> Self:
        """A fitted copy that takes rows as sources hold them: columns without names, labels by their numbers.

        It is sent to where rows are, and leaves behind what is of no use there.
        """
        coded = copy(self)
        for name in ("_stream", "diagnostics_", "feature_names_in_"):
            vars(coded).pop(name, None)
        return coded

    def _chunk_of(self, batch: Any) -> Any:
        """A batch of a source as a chunk of a stream."""
        return batch

    def _trial_shapes(self) -> dict[str, tuple[int, ...]]:
        """Attributes whose shares were not counted in the rows of each component: the shapes of what `_batch_trials`
        says of them.
        """
        return {}

    def _batch_trials(self, batch: Any, shares: Any) -> dict[str, Any]:
        """The observations in a batch that these shares were counted in, `shares` being those of the components times
        the weights of rows; they add up over batches.
        """
        return {}

    def _sampled_parameters(self) -> list[Free] | None:
        """The parameters of a likelihood that only draws know (`_sampled`); None where there is none."""
        return None

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        """A copy refined on other data from where this fit ended, components in the same order; None: fit anew."""
        return None

    def _evidence(self) -> Any:
        """Of sources, (k,), how far each stands out from noise: beyond 1 or -1 it does; None where nobody has said."""
        return None

    def _warns(self) -> bool:
        """Whether the estimate of a stream warns: not as long as its first samples are waited for."""
        return self._stream.started

    def _blas(self) -> AbstractContextManager[None]:
        """How many threads BLAS has: one, where matrices are small or batches are shared by threads."""
        return single_threaded_blas()

    # How the parts are run.

    def _fit(self, X: Any, **given: Any) -> Self:
        """`fit`, whatever comes with X."""
        number = getattr(self, self._count)
        if isinstance(number, str):
            if number != "auto":
                raise ValueError(f"{self._count} must be a positive integer or 'auto', got {number!r}.")
            return self._fit_chosen(X, given)
        vars(self).pop("n_components_", None)
        self._check_options()
        self._forget_stream()
        with single_threaded_blas():  # threads that a check has woken wait for more, busily, for 10 ms or longer
            source = self._open(X, **given)
        require_passes(source, 2)
        return self._fit_rows(source, as_generator(self.random_state))

    def _fit_rows(self, source: Any, rng: Any) -> Self:
        return self._run(source, lambda: run_passes(self._passes(source, rng), source), rng)

    def _fit_chosen(self, X: Any, given: Mapping[str, Any], candidates: Iterable[int] | None = None) -> Self:
        """`fit` with a number of components that the data choose: that of the chosen number, and the choice."""
        from odeco.fitting.choice.choose import fit_chosen

        choice, model = fit_chosen(self, X, given, candidates)
        self._forget_stream()
        arguments = self.get_params(deep=False)
        vars(self).update({name: value for name, value in vars(model).items() if name not in arguments})
        self.n_components_ = choice.best
        report = model.diagnostics_
        advice = (*report.advice, *_said_of_choice(choice))
        self._finish(replace(report, advice=advice, details={**report.details, "choice": choice}))
        return self

    def _partial_fit(self, X: Any, **given: Any) -> Self:
        """`partial_fit`, whatever comes with X."""
        if getattr(self, self._count) == "auto":
            raise ValueError(
                f"{self._count}='auto' compares fits to all rows, and a stream keeps none: choose the number on a part "
                f"of them (odeco.choose_components) and give it as {self._count}, or use fit."
            )
        self._check_options()
        self._add_chunks(X, **given)
        return self._read_moments()

    def _read_moments(self) -> Self:
        """Estimate from all that the stream has seen."""
        rng, kept = as_generator(self.random_state), self._kept_rows()
        return self._run(kept, lambda: self._stream_moments(kept, rng), rng, stream=True)

    def _run(self, rows: Any, moments: Callable[[], Any], rng: Any, *, stream: bool = False) -> Self:
        """The theorem, likelihood steps where there are rows for them and they are asked for, and the names."""
        with self._blas(), self._telling():
            found = self._find(rows, moments, rng)
            if rows is not None and self.refine not in self._moments_alone:
                tell("refinement by likelihood")
                report = self._conclude(found, self._refine(found, rng))
            elif found.error is None:
                report = self._conclude(found, None)
            elif stream:
                report = self._wait(found, rng)
            else:
                raise found.error
            tell(lambda: f"done: {report.method}. {report.verdict.trust.value}")
        self._finish(report, warn=not stream or self._warns())
        return self

    def _telling(self) -> AbstractContextManager[None]:
        """Lines on stderr where `verbose` asks for them."""
        return listening(Lines(type(self).__name__)) if getattr(self, "verbose", False) else nullcontext()

    def _find(self, rows: Any, moments: Callable[[], Any], rng: Any) -> Found:
        read = None
        try:
            read = moments()
            tell("estimate from the moments")
            return Found(rows, read, self._theorem(read, rng))
        except MomentError as error:
            return Found(rows, read, error=error)

    def _finish(self, diagnostics: Diagnostics, *, warn: bool = True) -> None:
        """Keep the report of a fit, and raise its advice as warnings."""
        self.diagnostics_ = warn_all(diagnostics) if warn else diagnostics

    def _decomposer(self) -> Decomposer:
        """What decomposes the moment tensor, checked."""
        return Decomposer.of(self.method, self.method_options)

    def _add_chunks(self, X: Any, **given: Any) -> None:
        """Add samples to the stream, which begins with the first of them."""
        for chunk in self._chunks(X, reset=not hasattr(self, "_stream"), **given):
            if not hasattr(self, "_stream"):
                options = {name: getattr(self, name) for name in self._stream_options}
                self._stream = MomentStream(self._stream_seed(), options)
            self._check_stream()
            self._stream.update(chunk, self._plan())

    def _stream_seed(self) -> int:
        return int(as_generator(self.random_state).integers(2**31))

    def _check_stream(self) -> None:
        """Raise where the sums were begun for other options."""
        for name, begun in self._stream.options.items():
            if getattr(self, name) != begun:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} does not go with the moments kept so far, which are for "
                    f"{name}={begun!r}: start a new estimator, or call fit."
                )

    def _forget_stream(self) -> None:
        """Drop the sums of `partial_fit`: a new `fit` starts from nothing."""
        if hasattr(self, "_stream"):
            del self._stream


class Converging:
    """`converged_` of the models whose refinement says so in its trace alone."""

    diagnostics_: Diagnostics

    @property
    def converged_(self) -> bool:
        """Whether the refinement ended by its rule (`tol`), not at `max_iter`; False where nothing was refined."""
        traces = self.diagnostics_.traces
        return bool(traces) and traces[-1].converged
