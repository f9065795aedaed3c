"""The free parameters of a likelihood as coordinates about a fitted model, for derivatives by differences.

A step of one coordinate moves a number, the logarithm of a positive one, the logit of a share, or the logarithm of one
entry of a simplex with the others in proportion. Entries of the same name in all components move at once where they
enter no other component's density: one evaluation gives the derivatives of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]

# Bounds of a learned number, and with them the scale on which its error is closest to a Gaussian one.
REAL, POSITIVE, SHARE = 0, 1, 2
# Replicates begin where the fit ended, and a gain that ended the fit would end them at once: they go on to a hundredth.
FINER = 100
KINDS = ("real", "positive", "share", "simplex", "covariance")


@dataclass(frozen=True, eq=False)
class Free:
    """One array of free parameters.

    Attributes
    ----------
    name : str
        What `_moved` of the model calls it.
    kind : one of KINDS
        "simplex": rows along the last axis; "covariance": symmetric in the last two.
    values : array
    axis : int or None
        The axis of the components; None where all share it.
    scale : array or None
        Of real numbers: what is a large step, such as a deviation.
    columns : array like the values of one component, or None
        Parameters of different columns have no second derivative in common; None where all belong together.
    """

    name: str
    kind: str
    values: Floats = field(repr=False)
    axis: int | None = 0
    scale: Floats | None = field(default=None, repr=False)
    columns: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def own_shape(self) -> tuple[int, ...]:
        """The shape of what one component has."""
        shape = self.values.shape
        return shape if self.axis is None else shape[: self.axis] + shape[self.axis + 1 :]

    def entries(self) -> list[tuple[int, ...]]:
        """Places of the numbers of one component, of a symmetric matrix the lower ones."""
        found = list(np.ndindex(*self.own_shape))
        return [place for place in found if place[-2] >= place[-1]] if self.kind == "covariance" else found

    def at(self, place: tuple[int, ...]) -> tuple[int | slice, ...]:
        """The index of a place in all components at once."""
        return place if self.axis is None else (*place[: self.axis], slice(None), *place[self.axis :])

    def moved(self, place: tuple[int, ...], step: float | Floats) -> Floats:
        """Values with one entry moved, in all components, by one step or each (k,) by its own."""
        steps = np.zeros(self.values.shape)
        steps[self.at(place)] = step
        return self.stepped(steps)

    def stepped(self, steps: Floats) -> Floats:
        """Values with every entry moved by its own step; of a symmetric matrix, the lower entries by theirs."""
        values = np.asarray(self.values, dtype=np.float64)
        if self.kind == "real":
            return np.asarray(values + steps * self.scales())
        if self.kind == "positive":
            return np.asarray(values * np.exp(steps))
        if self.kind == "share":
            inside = np.clip(values, 1e-300, 1 - 1e-16)
            return np.where(steps == 0, values, expit(logit(inside) + steps))
        if self.kind == "simplex":
            moved = values * np.exp(steps)
            return np.asarray(moved / moved.sum(axis=-1, keepdims=True))
        deviations = np.sqrt(np.diagonal(values, axis1=-2, axis2=-1))
        lower = steps * deviations[..., :, None] * deviations[..., None, :]
        return np.asarray(values + lower + np.swapaxes(np.tril(lower, -1), -1, -2))

    def scales(self) -> Floats:
        """What is a large step for each real number: as given, or how far components are apart."""
        if self.scale is not None:
            return np.broadcast_to(self.scale, self.values.shape)
        apart = np.std(self.values, axis=0, keepdims=True) if self.axis == 0 else np.abs(self.values)
        apart = np.broadcast_to(apart, self.values.shape)
        least = 1e-6 * max(float(np.abs(self.values).max()), 1e-6)
        return np.asarray(np.maximum(apart, 1e-3 * np.abs(self.values)) + least)


@dataclass(frozen=True, eq=False)
class Entry:
    """One coordinate of one array, in all components: which array, where, and its column."""

    free: Free
    place: tuple[int, ...]
    column: int | None

    @property
    def shared(self) -> bool:
        """Whether all components share it."""
        return self.free.axis is None

    def coupled(self, other: Entry) -> bool:
        """Whether the two may have a second derivative in common."""
        return self.column is None or other.column is None or self.column == other.column


def entries_of(frees: Sequence[Free]) -> Iterator[Entry]:
    """All coordinates."""
    for free in frees:
        for place in free.entries():
            yield Entry(free, place, None if free.columns is None else int(free.columns[place]))


def covariance_ranges(value: Any, *, is_matrix: bool) -> NDArray[np.int64]:
    """Of covariances: variances are positive, what stands beside the diagonal is any number."""
    shape = np.shape(value)
    if not is_matrix:
        return np.full(shape, POSITIVE)
    return np.broadcast_to(np.where(np.eye(shape[-1], dtype=bool), POSITIVE, REAL), shape)
