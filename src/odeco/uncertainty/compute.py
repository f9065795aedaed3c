"""`odeco.intervals`: which way goes with a model, and one result whatever the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, t
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState, as_generator
from odeco.fitting.card import Card
from odeco.fitting.options import check_choice, check_integer
from odeco.fitting.rows import check_width
from odeco.kernels.threads import single_threaded_blas
from odeco.models.cards import known_card
from odeco.shared_moments import merge_moments, read_moments
from odeco.uncertainty.blocks import parts_of
from odeco.uncertainty.bounds import Errors, bounded, together
from odeco.uncertainty.halves import replication_of_source
from odeco.uncertainty.likelihood import MOST_COORDINATES, default_trials, likelihood_errors, n_coordinates
from odeco.uncertainty.matching import Matcher
from odeco.uncertainty.opened import Opened, n_sequences, open_again
from odeco.uncertainty.parameters import Learned, learned_arrays
from odeco.uncertainty.replicates import collected, recombined, refitted, replicate_errors
from odeco.uncertainty.replication import claims, replication_of_rows, replication_of_sums
from odeco.uncertainty.result import Intervals
from odeco.uncertainty.sampled import about_maximum, sampled_errors
from odeco.uncertainty.units import Units
from odeco.uncertainty.weighted import BLOCKS as WEIGHTED_BLOCKS
from odeco.uncertainty.weighted import WeightedFits, weighted_fits

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

METHODS = ("auto", "sandwich", "information", "replicates")
_REPLICATES = 100
# Blocks that sums are kept for, at most; a tenth of them at least, or an error is mostly chance.
_BLOCKS = 100
_FEWEST = 10


@dataclass(frozen=True, eq=False)
class Task:
    """A fitted model, what of it gets intervals, and how."""

    model: Any
    card: Card
    arrays: list[Learned] = field(repr=False)
    n_replicates: int
    rng: np.random.Generator = field(repr=False)
    progress: Progress | None = None
    halves: bool = True

    def replication(self, data: Opened) -> Floats:
        """How well components come back from halves of the data, where that was asked for."""
        if not self.halves:
            return self.unknown()
        if data.fits or data.kind == "sequences":  # those cannot be cut into halves where they are
            return replication_of_rows(data.model, data.units(self.rng), self.rng)
        return replication_of_source(data, self.rng)

    def unknown(self) -> Floats:
        """Nothing, for each component."""
        sizes = {learned.of(self.model).shape[learned.axes[0]] for learned in self.arrays if learned.axes}
        return np.full(sizes.pop(), np.nan)


def intervals(
    model: Any,
    X: Any,
    *,
    level: float = 0.95,
    method: str = "auto",
    n_replicates: int | None = None,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    replication: bool = True,
    random_state: RandomState = None,
    progress: Progress | None = None,
) -> Intervals:
    """Intervals of everything that a fitted model has learned, and how well each component replicates.

    Parameters
    ----------
    model : a fitted estimator of odeco, or of your own
    X : the data of the fit, or files of moments
        Rows as `fit` takes them, wherever they lie: in memory, in batches that can be read again, out of core, in Dask
        or Spark. A list of moments files (paths), or of models with moments (`odeco.shared_moments`), one for each
        block of the data, at least ten: then no data are read, and the intervals are those of the moment estimate.
    level : float
        Between 0 and 1.
    method : {"auto", "sandwich", "information", "replicates"}
        "sandwich": of a maximum of the likelihood, from its curvature and the scores of the rows; right even where rows
        do not follow the model. "information": from the curvature alone. "replicates": rows drawn again, or blocks of
        sums weighted, and the whole estimator run on them. "auto": the sandwich where a likelihood was maximised, else
        replicates: from blocks of sums for ``refine=None`` and after `partial_fit`, from rows for LDA and ICA.
    n_replicates : int or None
        100 by default.
    lengths : of the sequences of a hidden Markov model, as in its `fit`
        Sequences are drawn whole where there are 100 or more, else in blocks of steps.
    sample_weight : (n,) array, optional
        As in the fit; for hidden Markov models, one for each sequence.
    replication : bool
        Whether halves of the data are fitted, four times, to see which components come back; NaN otherwise.
    random_state : int, Generator, RandomState or None
    progress : function, optional
        Called with the number of replicates done and of all.

    Examples
    --------
    >>> import numpy as np
    >>> import odeco
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0.0, 0, 0, 0], [4, 0, 0, 0], [0, 4, 0, 0]])
    >>> x = centres[rng.choice(3, 3000, p=[0.5, 0.3, 0.2])] + rng.standard_normal((3000, 4))
    >>> mixture = odeco.GaussianMixture(3, random_state=0).fit(x)
    >>> found = odeco.intervals(mixture, x, random_state=0)
    >>> found.low["weights_"].round(2).tolist(), found.high["weights_"].round(2).tolist()
    ([0.49, 0.27, 0.19], [0.53, 0.3, 0.22])
    >>> bool(found.replicated.all())
    True
    """
    card = known_card(model)
    _check(level, method, n_replicates)
    check_is_fitted(model, [name for name in card.learned if not name.startswith("_")], all_or_any=any)
    model, rng = _with_its_number(model), as_generator(random_state)
    task = Task(model, card, learned_arrays(model, card), n_replicates or _REPLICATES, rng, progress, replication)
    with single_threaded_blas():
        if _are_moments(X):
            return _of_moments(task, _read_parts(X, model), level)
        return _of_rows(task, X, lengths, sample_weight, method, level)


def _with_its_number(model: Any) -> Any:
    """The model, asked for as many components as the data chose: replicates have the same number."""
    if getattr(model, model._count) != "auto":
        return model
    chosen = copy(model)
    setattr(chosen, model._count, model.n_components_)
    return chosen


def _check(level: float, method: str, n_replicates: int | None) -> None:
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}.")
    check_choice("method", method, METHODS)
    if n_replicates is not None:
        check_integer("n_replicates", n_replicates)
        if n_replicates < _FEWEST:
            raise ValueError(f"n_replicates must be at least {_FEWEST}, got {n_replicates}: fewer tell no error.")


def _are_moments(X: Any) -> bool:
    """Whether X are files or models with moments."""
    return (
        isinstance(X, (list, tuple))
        and len(X) > 0
        and all(isinstance(part, (str, os.PathLike)) or hasattr(part, "_stream") for part in X)
    )


def _read_parts(X: Sequence[Any], model: Any) -> list[Any]:
    parts = [part if hasattr(part, "_stream") else read_moments(part)[0] for part in X]
    for place, part in enumerate(parts, start=1):
        if type(part) is not type(model):
            raise ValueError(
                f"part {place} holds moments of {type(part).__name__}, and the model is a {type(model).__name__}: give "
                "moments of the same model."
            )
        check_width(model, part.n_features_in_)
        part._stream.settle(part._plan())
    if len(parts) < _FEWEST:
        raise ValueError(
            f"X has {len(parts)} parts, and intervals from moments need {_FEWEST} or more: make a file of moments for "
            "each of more blocks of the data (odeco moments compute), or give the data."
        )
    merge_moments(parts)  # says where they are not on one basis
    return parts


def _of_rows(task: Task, X: Any, lengths: Any, weights: Any, method: str, level: float) -> Intervals:
    way = _way(task.model, method)
    data = open_again(task.card, task.model, X, lengths, weights)
    if data.n < _FEWEST:
        what = "rows" if data.kind == "rows" else "sequences" if data.length is None else "blocks of steps"
        raise ValueError(f"X has {data.n} {what}, and intervals need {_FEWEST} or more: give more data.")
    task = replace(task, model=data.model)
    if way == "block sums":
        names = [learned.name for learned in task.arrays]
        return _of_moments(task, parts_of(data, names, min(_BLOCKS, data.n), task.rng), level, data)
    if way == "replicates":
        return (_of_draws(task, data, level) if method == "auto" else None) or _of_refits(
            task, data, level, centred=method == "auto"
        )
    errors, name = likelihood_errors(data.model, task.arrays, data.source, way)
    return _result(task, errors, _gaussian(level), level, name, task.replication(data), 0)


def _gaussian(level: float) -> float:
    return float(norm.ppf((1 + level) / 2))


def _of_draws(task: Task, data: Opened, level: float) -> Intervals | None:
    """From a likelihood that only draws know; None where there is none, or not all rows are in memory."""
    if task.model._sampled_parameters() is None or not data.fits:
        return None
    errors = sampled_errors(task.model, task.arrays, data.units(task.rng), task.rng)
    if errors is None:
        return None
    return _result(task, errors, _gaussian(level), level, "sampled likelihood", task.replication(data), 0)


def _way(model: Any, method: str) -> str:
    """What the method comes to for a model."""
    of_sums = model.refine is None or hasattr(model, "_stream")
    frees = None if of_sums or model.refine in model._moments_alone else model._free_parameters()
    if method in ("sandwich", "information") and frees is None:
        raise ValueError(
            f"method={method!r} needs a maximised likelihood, and {type(model).__name__} with refine={model.refine!r} "
            "has none: use method='replicates'."
        )
    if method == "auto" and frees is not None and n_coordinates(frees) <= MOST_COORDINATES:
        return "sandwich"
    if method in ("auto", "replicates"):
        return "block sums" if of_sums else "replicates"
    return method


def _of_refits(task: Task, data: Opened, level: float, *, centred: bool) -> Intervals:
    """From replicates; `centred`: about the maximum of a likelihood where draws know it, else about the fit."""
    weighted = weighted_fits(data, task.n_replicates, task.rng)
    if weighted is not None:
        return _of_weighted(task, data, weighted, level)
    data.announce()
    units = data.units(task.rng)
    n_replicates = units.n if units.kind == "blocks" else task.n_replicates
    models = refitted(task.model, units, n_replicates, task.rng)
    found = collected(Matcher(task.model, task.arrays), models, n_replicates, task.progress)
    left_out = (units.n - 1) / np.sqrt(units.n)  # of the jackknife
    factor = left_out if units.kind == "blocks" else _drawn(units.n)
    factor *= np.sqrt(units.share)  # all data know more than a sample of them
    errors = replicate_errors(task.model, task.arrays, found, _trials(task.model, units), factor)
    if data.length is not None and data.kind == "sequences":
        n = n_sequences(data.source)
        errors = [_binomial(each, n) if each.learned.name == "startprob_" else each for each in errors]
    quantile = float(t.ppf((1 + level) / 2, min(len(found), units.n) - 1))
    moved = about_maximum(task.model, errors, units, task.rng) if centred and data.fits else None
    name = "replicates" if moved is None else "replicates about the maximum"
    return _result(task, moved or errors, quantile, level, name, task.replication(data), len(found))


def _of_weighted(task: Task, data: Opened, models: WeightedFits, level: float) -> Intervals:
    """From replicates that sums of blocks of rows are enough for."""
    found = collected(Matcher(task.model, task.arrays), iter(models), task.n_replicates, task.progress)
    trials = partial(default_trials, totals=models.totals)
    errors = replicate_errors(task.model, task.arrays, found, trials, _drawn(WEIGHTED_BLOCKS))
    quantile = float(t.ppf((1 + level) / 2, min(len(found), WEIGHTED_BLOCKS) - 1))
    return _result(task, errors, quantile, level, "replicates", task.replication(data), len(found))


def _drawn(n: int) -> float:
    """n units drawn again differ among themselves by a little less than n new ones."""
    return float(np.sqrt(n / (n - 1)))


def _binomial(errors: Errors, n: int) -> Errors:
    """Of shares that were counted n times: blocks cut from a sequence say nothing of how it started."""
    values = errors.values
    return Errors.of(errors.learned, values, np.sqrt(values * (1 - values) / n), np.asarray(float(n)))


def _of_moments(task: Task, parts: Sequence[Any], level: float, data: Opened | None = None) -> Intervals:
    models = recombined(parts, task.n_replicates, task.rng)
    found = collected(Matcher(task.model, task.arrays), models, task.n_replicates, task.progress)
    n = float(sum(part._stream.n for part in parts))
    k = task.unknown().size
    totals = n * np.asarray(getattr(task.model, "weights_", np.full(k, 1 / k)))
    trials = partial(default_trials, totals=totals)
    errors = replicate_errors(task.model, task.arrays, found, trials, _drawn(len(parts)))
    quantile = float(t.ppf((1 + level) / 2, min(len(found), len(parts)) - 1))
    if data is not None:
        replication = task.replication(data)
    else:
        replication = replication_of_sums(task.model, task.arrays, parts, task.rng) if task.halves else task.unknown()
    return _result(task, errors, quantile, level, "block sums", replication, len(found))


def _trials(model: Any, units: Units) -> Callable[[Learned, Floats], Floats]:
    X = units.whole[0]
    shares = claims(model, X)
    totals = shares.sum(axis=0) if (shares >= 0).all() else np.full(shares.shape[1], len(shares) / shares.shape[1])
    return partial(default_trials, totals=totals / units.share)


def _result(
    task: Task, errors: list[Errors], quantile: float, level: float, method: str, replication: Floats, n_replicates: int
) -> Intervals:
    found = [(each.learned, each.values, *bounded(each, quantile, (1 - level) / 2)) for each in errors]
    value, standard, low, high = (together([(each[0], each[place]) for each in found]) for place in range(1, 5))
    return Intervals(
        value=value,
        low=low,
        high=high,
        standard_error=standard,
        replication=replication,
        level=float(level),
        method=method,
        n_replicates=n_replicates,
        component=task.card.part,
        axes={each.learned.name: each.learned.axes for each in errors},
    )
