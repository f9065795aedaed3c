"""One scoring step on the likelihood of a mixture (the paper's introduction, after Le Cam).

From a consistent start, one step delta = I^-1 g, with g the score and I the information, is as efficient as the maximum
of the likelihood to first order. I is the observed one: what complete data would tell less what the hidden component
takes away, the covariance of the complete scores under its posterior (Louis, 1982). In coordinates where the former is
the identity, g itself is EM's step, and I^-1 g is what all of EM's steps would add up to if each were as linear as the
first. I is never formed: conjugate gradients need only products I v, one pass each, at about the cost of an EM step.

All mixtures here have log densities that are linear in features of a row, and so is the complete score of a row along a
direction. A model gives these two linear functions and the way back to its parameters (`Mixture`, `Coordinates`);
sums, solution and the length of the step are written here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import normalize
from odeco.moments.base import Additive
from odeco.refinement.loop import Record, StopReason, Trace

Floats = NDArray[np.float64]
# Blocks of the features of some rows, dense or sparse, each with the columns that it fills.
Features = list[tuple[Any, Any]]
Reader = Callable[[Any], Iterator[tuple[Features, Floats | None]]]

# Directions of the conjugate gradients: the residual fell below 1e-3 of the score's within 20 on overlapping spheres.
_DIRECTIONS, _TOLERANCE = 20, 1e-3
# Halvings of a step that leads nowhere: after eight the rest of it is nothing.
_HALVINGS = 8
# What a step leaves of a probability, a rate or a variance at least, as a share: they stay positive.
_LEAST = 0.01


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function of the features for each component: slopes (k, P) and offsets (k,)."""

    slopes: Floats = field(repr=False)
    offsets: Floats = field(repr=False)

    def __call__(self, features: Features) -> Any:
        """Its values (k, m), in the precision of the features."""
        values = [np.asarray(block @ self.slopes[:, columns].T.astype(block.dtype)) for columns, block in features]
        total = np.repeat(self.offsets[:, None].astype(values[0].dtype), len(values[0]), axis=1)
        for value in values:
            total += value.T
        return total


class ScoreSums(Additive):
    """Sums over rows of posterior times features.

    With a direction each component of a row counts by its complete score along it, less the mean of all components
    under the posterior: the score of these sums is then what the hidden component takes away of the information.

    Attributes
    ----------
    features, totals : (k, P), (k,)
    log_likelihood, weight : float
        Of all rows, whatever the direction.
    """

    _sums: ClassVar[tuple[str, ...]] = ("features", "totals", "log_likelihood", "weight")
    _on: ClassVar[tuple[str, ...]] = ("read", "joint", "along")
    _by_threads: ClassVar[bool] = True

    def __init__(self, read: Reader, joint: Linear, along: Linear | None = None) -> None:
        self.read, self.joint, self.along = read, joint, along
        self.features, self.totals = np.zeros(joint.slopes.shape), np.zeros(joint.offsets.shape)
        self.log_likelihood, self.weight = 0.0, 0.0

    def update(self, batch: Any) -> None:
        """The E step on a batch."""
        for features, weights in self.read(batch):
            shares, values = normalize(self.joint(features))
            counts = np.ones(values.size) if weights is None else weights
            self.log_likelihood += float(counts @ values)
            self.weight += float(counts.sum())
            if self.along is not None:
                scores = self.along(features)
                shares *= scores - np.einsum("km,km->m", shares, scores)
            shares *= counts.astype(shares.dtype)
            self.totals += shares.sum(axis=1, dtype=np.float64)
            for columns, block in features:
                self.features[:, columns] += np.asarray(block.T @ shares.T).T

    @property
    def value(self) -> float:
        """Log-likelihood per row."""
        return self.log_likelihood / max(self.weight, np.finfo(float).tiny)


Moved = TypeVar("Moved", bound="Mixture")
Target = TypeVar("Target", covariant=True)


class Mixture(Protocol):
    """A mixture whose log densities are linear in the features."""

    def joint(self) -> Linear:
        """Log weight plus log density of each component."""

    def coordinates(self: Moved, sums: ScoreSums) -> Coordinates[Moved]:
        """Coordinates about it in which the information of complete data with these sums is the identity.

        Where they are more than the parameters, such as the logits of weights, it is so in all directions that a score
        can have.
        """


class Coordinates(Protocol[Target]):
    """Steps from a mixture, as vectors."""

    def score(self, sums: ScoreSums) -> Floats:
        """The score of rows with these sums, in which it is linear."""

    def along(self, step: Floats) -> Linear:
        """The complete score of a row along a step, for each component: the transpose of `score`."""

    def moved(self, step: Floats) -> Target:
        """The mixture after a step."""


@dataclass(frozen=True, eq=False)
class Step(Generic[Moved]):
    """Where the step led, the share of it that was taken, and the sums of all rows there."""

    mixture: Moved
    share: float
    sums: ScoreSums = field(repr=False)
    gain: float

    @property
    def trace(self) -> Trace:
        """The step as a refinement of one step."""
        return Trace((Record(1, self.sums.value, self.gain),), 1, StopReason.MAX_ITER)


def scoring_step(batches: Iterable[Any], read: Reader, start: Moved) -> Step[Moved]:
    """One step from `start`, on rows that `read` makes features of, batch by batch.

    The step is halved while the likelihood at its end is below that of EM's step, and of the start. In these
    coordinates EM's step is the score itself: where no share of the scoring step is better, it is taken, as a share 0.
    Where not even that gains, the start is returned.
    """

    def sums(mixture: Moved, along: Linear | None = None) -> ScoreSums:
        return ScoreSums(read, mixture.joint(), along).update_all(batches)

    def reached(step: Floats, share: float) -> Step[Moved]:
        moved = about.moved(step)
        found = sums(moved)
        return Step(moved, share, found, found.value - first.value)

    first = sums(start)
    about = start.coordinates(first)
    score = about.score(first) / first.weight
    step = _solved(lambda v: v - about.score(sums(start, about.along(v))) / first.weight, score)
    best = max(reached(score, 0.0), Step(start, 0.0, first, 0.0), key=lambda found: found.gain)
    for halving in range(_HALVINGS):
        found = reached(step / 2**halving, 1 / 2**halving)
        if found.gain >= best.gain - _rounding(first.value):
            return found
    return best


def _rounding(value: float) -> float:
    """What a mean of logarithms is not known to: at the maximum itself no step gains."""
    return 1e-13 * (1 + abs(value))


def _solved(product: Callable[[Floats], Floats], score: Floats) -> Floats:
    """The solution of ``product(step) = score``, near enough."""
    from scipy.sparse.linalg import LinearOperator, cg  # slow to import

    information = LinearOperator((score.size,) * 2, matvec=product, dtype=np.float64)
    return np.asarray(cg(information, score, rtol=_TOLERANCE, maxiter=_DIRECTIONS)[0])


def grown(values: Any, change: Any) -> Any:
    """Positive parameters after a relative change: linear, as EM's own step is, but for what would end below 0."""
    return values * np.maximum(1 + change, _LEAST)


class WeightCoordinates:
    """Logits of weights (k,), scaled: the part of the coordinates that all mixtures have."""

    def __init__(self, weights: Floats) -> None:
        self.weights, self.roots = weights, np.sqrt(np.maximum(weights, 1e-12))

    def score(self, totals: Floats) -> Floats:
        """Of sums of posteriors (k,)."""
        return np.asarray((totals - self.weights * totals.sum()) / self.roots)

    def along(self, step: Floats) -> Floats:
        """Offsets (k,): relative changes of the weights."""
        change = step / self.roots
        return np.asarray(change - self.weights @ change)

    def moved(self, step: Floats) -> Floats:
        """The weights after a step."""
        weights = grown(self.weights, self.along(step))
        return np.asarray(weights / weights.sum())
