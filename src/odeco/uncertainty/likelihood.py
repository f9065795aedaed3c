"""Errors of a maximum of the likelihood: information and scores, carried over to the learned attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import Entry, Free
from odeco.moments.passes import fill
from odeco.uncertainty.bounds import Errors
from odeco.uncertainty.mixture_scores import MixtureTold
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.scores import ChainTold, Information, Told

Floats = NDArray[np.float64]

# Coordinates at most: their information is a matrix of p x p, and costs n p^2.
MOST_COORDINATES = 1500
# Information of a logarithm is the number of observations that tell of it: with less than this it is at its bound.
_TOLD = 0.5
_STEP = 1e-4  # of derivatives of attributes, which are smooth and of the size of their coordinates
# Steps of a chain whose scores are added up, so that what neighbours have in common counts; enough blocks must be left.
_TOGETHER, _BLOCKS_EACH = 50, 10


def n_coordinates(frees: list[Free]) -> int:
    """How many, those of simplexes that follow from the others included."""
    return sum(free.values.size for free in frees)


def likelihood_errors(model: Any, arrays: list[Learned], source: Any, method: str) -> tuple[list[Errors], str]:
    """Errors of all arrays, and how they were found: one pass over the rows, wherever they are."""
    told = fill(_empty(model, source), source)
    information = told.information()
    kept = determined(information.coordinates, np.diagonal(information.outer))
    covariance, inverse, name = _covariance(information, kept, method)
    left = np.zeros(len(kept)) if information.score is None else inverse @ information.score[kept]
    found = []
    slopes = slopes_of(model, arrays, [information.coordinates[c] for c in kept])
    for learned, slope in zip(arrays, slopes, strict=True):
        values = learned.of(model)
        variances = np.einsum("ap,pq,aq->a", slope, covariance, slope)
        standard = np.sqrt(np.maximum(variances, 0)).reshape(values.shape)
        n = told.trials.get(learned.name, default_trials(learned, values, told.totals))
        found.append(Errors.of(learned, values, standard, n, (slope @ left).reshape(values.shape)))
    return found, name


def _empty(model: Any, source: Any) -> Told:
    """Sums for rows of a mixture, or for steps of chains."""
    if not hasattr(model, "_step_log_likelihoods"):
        return MixtureTold(model)
    length = min(_TOGETHER, int(source.total_weight) // (_BLOCKS_EACH * n_coordinates(model._free_parameters())))
    return ChainTold(model, max(length, 1))


def default_trials(learned: Learned, values: Floats, totals: Floats) -> Floats:
    """Observations that the shares of an array were counted in: those of each component, or all for the weights."""
    if values.ndim == 1 or not learned.axes:
        return np.full(values.shape, totals.sum())
    return np.broadcast_to(
        np.expand_dims(totals, [axis for axis in range(values.ndim) if axis != learned.axes[0]]), values.shape
    )


def determined(coordinates: Sequence[tuple[Entry, int | None]], told: Floats) -> list[int]:
    """Coordinates that are free: not the largest entry of a simplex, nor what is at a bound."""
    return [
        c
        for c, (entry, component) in enumerate(coordinates)
        if not _follows(entry, component) and (entry.free.kind in ("real", "covariance") or told[c] > _TOLD)
    ]


def _follows(entry: Entry, component: int | None) -> bool:
    """Whether an entry of a simplex follows from the others: the largest does."""
    free = entry.free
    if free.kind != "simplex":
        return False
    if free.values.ndim == 1:
        return component == int(np.argmax(free.values))
    whole = list(entry.place)
    if free.axis is not None:
        whole.insert(free.axis, component or 0)
    return whole[-1] == int(np.argmax(free.values[tuple(whole[:-1])]))


def _covariance(information: Information, kept: list[int], method: str) -> tuple[Floats, Floats, str]:
    """Of the coordinates that are free, the inverse information, and how the covariance was found."""
    outer = information.outer[np.ix_(kept, kept)]
    if information.observed is None or not kept:
        return inverse_of(outer), inverse_of(outer), "outer products"
    observed = information.observed[np.ix_(kept, kept)]
    scale = 1 / np.sqrt(np.maximum(np.diagonal(outer), 1e-300))
    if np.linalg.eigvalsh(observed * np.outer(scale, scale))[0] <= 1e-8:  # no maximum in all directions
        return inverse_of(outer), inverse_of(outer), "outer products"
    inverse = inverse_of(observed)
    if method == "information":
        return inverse, inverse, "information"
    return inverse @ outer @ inverse, inverse, "sandwich"


def inverse_of(matrix: Floats) -> Floats:
    """The inverse, of numbers of whatever units; directions of which nothing is known are left out."""
    if not matrix.size:
        return matrix
    scale = 1 / np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    inverse = np.linalg.pinv(matrix * np.outer(scale, scale), rcond=1e-10, hermitian=True)
    return np.asarray(inverse * np.outer(scale, scale))


def slopes_of(model: Any, arrays: list[Learned], coordinates: list[tuple[Entry, int | None]]) -> list[Floats]:
    """Derivatives (numbers, coordinates) of every array."""
    columns: list[list[Floats]] = [[] for _ in arrays]
    for entry, component in coordinates:
        up, down = (_stepped(model, entry, component, step) for step in (_STEP, -_STEP))
        for place, learned in enumerate(arrays):
            columns[place].append(((learned.of(up) - learned.of(down)) / (2 * _STEP)).ravel())
    return [
        np.array(found).T if found else np.zeros((learned.of(model).size, 0))
        for learned, found in zip(arrays, columns, strict=True)
    ]


def _stepped(model: Any, entry: Entry, component: int | None, step: float) -> Any:
    free = entry.free
    alone = step if component is None else step * (np.arange(free.values.shape[free.axis or 0]) == component)
    return model._moved({free.name: free.moved(entry.place, alone)})
