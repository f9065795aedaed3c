"""What rows say of a fitted model: log-likelihoods, in blocks that tell how certain they are, and shared components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import posterior
from odeco.moments.base import Additive
from odeco.moments.passes import fill

Floats = NDArray[np.float64]

# Parts of the rows whose scores are kept apart: their spread is the standard error.
BLOCKS = 32


@dataclass(frozen=True, eq=False)
class Judged:
    """Some samples as a model sees them. Units are rows, documents, or stretches of sequences.

    Attributes
    ----------
    log_likelihoods : (u,)
        Of each unit, times its weight.
    sizes : (u,)
        What a unit counts: its weight, its words, its steps.
    completed : (u,) or None
        The same with every sample in its likeliest component.
    shares : (n, k) or None
        Responsibilities of the components for each sample.
    trials : (u,) or None
        Draws that a unit consists of, where these are not what it counts: the words of a document that counts as one.
    """

    log_likelihoods: Floats = field(repr=False)
    sizes: Floats = field(repr=False)
    completed: Floats | None = field(default=None, repr=False)
    shares: Floats | None = field(default=None, repr=False)
    trials: Floats | None = field(default=None, repr=False)


def judged_rows(log_joint: Floats, weights: Floats | None, trials: Floats | None = None) -> Judged:
    """Rows of a mixture by their log joint densities (n, k), and the draws of each row."""
    shares, scores = posterior(log_joint)
    sizes = np.ones(len(scores)) if weights is None else weights
    drawn = None if trials is None else sizes * trials
    return Judged(sizes * scores, sizes, sizes * log_joint.max(axis=1), shares, drawn)


class Scores(Additive):
    """Log-likelihoods under a model, in blocks of units."""

    _sums: ClassVar[tuple[str, ...]] = ("log_likelihood", "completed", "size", "trials", "taken")
    _on: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(self, model: Any) -> None:
        self.model = model
        self.log_likelihood, self.completed, self.size = np.zeros(BLOCKS), np.zeros(BLOCKS), np.zeros(BLOCKS)
        self.trials, self.taken = 0.0, np.zeros(_size(model))

    def update(self, batch: Any) -> Self:
        """Add the units of a batch."""
        judged = self.model._judge(batch)
        blocks = np.arange(judged.sizes.size) % BLOCKS
        completed = judged.log_likelihoods * np.nan if judged.completed is None else judged.completed
        for name, values in (
            ("log_likelihood", judged.log_likelihoods), ("completed", completed), ("size", judged.sizes),
        ):  # fmt: skip
            total = getattr(self, name)
            total += np.bincount(blocks, values, BLOCKS)
        self.trials += float((judged.sizes if judged.trials is None else judged.trials).sum())
        if judged.shares is not None:
            by_sample = len(judged.shares) == judged.sizes.size
            self.taken += judged.sizes @ judged.shares if by_sample else judged.shares.sum(axis=0)
        return self

    @property
    def members(self) -> Floats:
        """How much of the size each component is expected to have, (k,)."""
        return np.asarray(self.size.sum() * self.taken / max(float(self.taken.sum()), np.finfo(float).tiny))


def _size(model: Any) -> int:
    """Components of a fitted model: clusters of few rows may be fewer than were asked for."""
    shares = getattr(model, "weights_", None)
    return int(getattr(model, model._count) if shares is None else len(shares))


class Agreement(Additive):
    """Products of the responsibilities of two models for the same samples: whether they have the same components."""

    _sums: ClassVar[tuple[str, ...]] = ("products", "first_squares", "second_squares")
    _on: ClassVar[tuple[str, ...]] = ("first", "second", "k")

    def __init__(self, first: Any, second: Any, k: int) -> None:
        self.first, self.second, self.k = first, second, k
        self.products, self.first_squares, self.second_squares = np.zeros((k, k)), np.zeros(k), np.zeros(k)

    def update(self, batch: Any) -> Self:
        """Add the samples of a batch."""
        first, second = self.first._judge(batch).shares, self.second._judge(batch).shares
        self.products += first.T @ second
        self.first_squares += (first * first).sum(axis=0)
        self.second_squares += (second * second).sum(axis=0)
        return self

    @property
    def cosines(self) -> Floats:
        """(k, k), each between 0 and 1."""
        lengths = np.sqrt(np.outer(self.first_squares, self.second_squares))
        return np.asarray(self.products / np.maximum(lengths, np.finfo(float).tiny))


def matched(cosines: Floats) -> Floats:
    """The likeness of each component to its own partner: pairs chosen so that they are most alike together."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-cosines)
    return np.asarray(cosines[rows, columns])


def replication(first: Any, second: Any, k: int, rows: Any) -> Floats:
    """How well two fits agree on each component (k,), 1 where fully: by what it looks like, or by whose rows it has."""
    described = [model._described_components() for model in (first, second)]
    if described[0] is not None and described[1] is not None:
        a, b = (each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-300) for each in described)
        return matched(np.abs(a @ b.T))
    return matched(fill(Agreement(first, second, k), rows).cosines)


def standard_error(values: Floats, sizes: Floats) -> float:
    """Of the mean ``sum(values) / sum(sizes)``, from the spread of the blocks; NaN for fewer than two."""
    used = sizes > 0
    n, total = int(np.count_nonzero(used)), float(sizes.sum())
    if n < 2:
        return float("nan")
    left = values[used] - sizes[used] * (values.sum() / total)
    return float(np.sqrt((left @ left) * n / (n - 1)) / total)
