"""Replicates of a whole estimator: of rows drawn again and fitted from where the fit ended, or of weighted sums."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError, MomentWarning
from odeco.moments.base import PackedSums
from odeco.uncertainty.bounds import Errors
from odeco.uncertainty.matching import Matcher
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.scales import forward
from odeco.uncertainty.units import Units

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

# Replicates farther than this from the middle, in deviations of the middle half, ended elsewhere: they count as so far.
_FAR = 4.0
_QUARTERS = 1.349  # between the quartiles of a Gaussian


def unfitted(model: Any) -> Any:
    """An estimator with the same arguments."""
    return type(model)(**model.get_params())


def refitted(model: Any, units: Units, n_replicates: int, rng: np.random.Generator) -> Iterator[Any]:
    """Fits of units drawn with replacement, each from where the fit ended where the model can do that.

    Blocks of time are left out one after the other instead: a signal that comes twice depends on itself.
    """
    if units.kind == "blocks":
        yield from (_refitted(model, *units.take(np.delete(np.arange(units.n), out)), rng) for out in range(units.n))
        return
    for _ in range(n_replicates):
        X, given = units.take(np.sort(rng.integers(units.n, size=units.n)))
        yield _refitted(model, X, given, rng)


def _refitted(model: Any, X: Any, given: dict[str, Any], rng: np.random.Generator) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MomentWarning)
            again = model._climbed(X, given, rng)
            if again is not None:
                again._in_order = True
                return again
            again = unfitted(model)
            again.random_state = int(rng.integers(2**31))
            return again.fit(X, **given)
    except (MomentError, ValueError, np.linalg.LinAlgError):
        return None


def recombined(parts: Sequence[Any], n_replicates: int, rng: np.random.Generator) -> Iterator[Any]:
    """Estimates of the sums of blocks, each block as often as it was drawn."""
    packed = [part._stream.sums.pack() for part in parts]
    counts = [int(part._stream.n) for part in parts]
    for _ in range(n_replicates):
        yield combined(
            parts, packed, counts, np.bincount(rng.integers(len(parts), size=len(parts)), minlength=len(parts))
        )


def combined(
    parts: Sequence[Any], packed: Sequence[PackedSums], counts: Sequence[int], times: NDArray[np.int64]
) -> Any:
    """The estimate of all parts, each so many times; None where the sums do not determine the model."""
    total = deepcopy(parts[0])
    total._stream = total._stream.emptied(total._plan())
    drawn = np.flatnonzero(times)
    sums = times_sums(packed[drawn[0]], int(times[drawn[0]]))
    for place in drawn[1:]:
        sums = sums + times_sums(packed[place], int(times[place]))
    total._stream.sums.unpack(sums)
    total._stream.n = int(np.dot(times, counts))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MomentWarning)
            return total._read_moments()
    except (MomentError, ValueError, np.linalg.LinAlgError):
        return None


def times_sums(packed: PackedSums, times: int) -> PackedSums:
    """Sums of samples that come so many times."""
    return PackedSums({name: value * times for name, value in packed.sums.items()}, packed.maxima)


def collected(
    matcher: Matcher, models: Iterator[Any], n_replicates: int, progress: Progress | None
) -> list[list[Floats]]:
    """The arrays of every replicate that could be fitted, in the order of the fit."""
    found = []
    for done, model in enumerate(models, start=1):
        arrays = None if model is None else matcher(model)
        if arrays is not None and all(np.isfinite(array).all() for array in arrays):
            found.append(arrays)
        if progress is not None:
            progress(done, n_replicates)
    if len(found) < max(2, n_replicates // 2):
        raise ValueError(
            f"only {len(found)} of {n_replicates} replicates could be fitted: the data do not determine the model. "
            "Use fewer components, or more data."
        )
    return found


def replicate_errors(
    model: Any,
    arrays: list[Learned],
    found: list[list[Floats]],
    trials: Callable[[Learned, Floats], Floats],
    factor: float,
) -> list[Errors]:
    """Errors from the spread of replicates, on the scale of the intervals, times a factor."""
    errors = []
    for place, learned in enumerate(arrays):
        values = learned.of(model)
        n = trials(learned, values)
        drawn = np.array([each[place] for each in found])
        least = (
            np.where(learned.ranges > 0, 0.5 / np.maximum(n, 1.0), -np.inf) if (learned.ranges == 2).any() else 1e-300
        )
        scaled = factor * _deviation(forward(drawn, learned.ranges, least))
        standard = factor * _deviation(drawn)
        errors.append(Errors(learned, values, standard, scaled, np.broadcast_to(n, values.shape)))
    return errors


def _deviation(drawn: Floats) -> Floats:
    """Standard deviation of replicates (B, ...); those that ended elsewhere count as far, not as farther."""
    low, middle, high = np.quantile(drawn, [0.25, 0.5, 0.75], axis=0)
    reach = _FAR * (high - low) / _QUARTERS
    return np.asarray(np.clip(drawn, middle - reach, middle + reach).std(axis=0, ddof=1))
