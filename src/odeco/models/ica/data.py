"""From rows to whitened cumulants: two passes over a source, or one over a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import StreamPlan
from odeco.kernels.channels import NARROW, whiten_rows
from odeco.kernels.cumulants import second_products
from odeco.kernels.products import by_parts
from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count
from odeco.models.ica.policy import POLICY
from odeco.models.ica.solve import Task
from odeco.models.ica.whitening import Whitening, choose_whitening
from odeco.moments.base import Together
from odeco.moments.cumulants import CumulantTensor, FourthMoments, SecondMoments, centred_cumulant
from odeco.moments.passes import Passes
from odeco.refinement.ica_likelihood import squared_norms
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, DenseSource, first_rows
from odeco.sources.rows import VECTORS
from odeco.tensors import ExplicitTensor, SymmetricTensor

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channels:
    """What the first pass tells; `precision` is that of the data."""

    mean: Floats = field(repr=False)
    covariance: Floats = field(repr=False)
    n: int
    weight: float
    precision: float

    def whitened(self, n_components: int | None, noise: str, exact: bool) -> tuple[int, Whitening]:
        """The number of components and the whitening."""
        return choose_whitening(self.mean, self.covariance, self.weight, n_components, noise, self.precision, exact)


@dataclass(frozen=True, eq=False)
class Problem:
    """A task and what leads from its coordinates back to the channels.

    `basis` (d, r') maps the coordinates that were whitened to channels; None where they are the channels.
    """

    task: Task
    channels: Channels
    n_passes: int
    basis: Floats | None = None
    advice: tuple[str, ...] = ()

    @property
    def mean(self) -> Floats:
        """Of the channels, (d,)."""
        return self.channels.mean

    @property
    def covariance(self) -> Floats:
        """Of the channels, (d, d)."""
        return self.channels.covariance

    def narrowed(self, n_components: int, noise: str, exact: bool) -> Problem | None:
        """The task of fewer sources; None where it is whitened in directions that these white coordinates lack."""
        k, whitening = self.channels.whitened(n_components, noise, exact)
        task, matrix = self.task, np.asarray(whitening.whitener.matrix, dtype=np.float64)
        if matrix.shape[1] > self.whitening.whitener.n_components:
            return None
        turn = np.asarray(self.whitening.whitener.lift.T @ matrix, dtype=np.float64)
        rows = None if task.rows is None else turn.T.astype(task.rows.dtype) @ task.rows
        if rows is None or isinstance(task.tensor, ExplicitTensor):
            tensor = task.tensor.through(turn)
        else:
            tensor = _cumulant(rows, task.weights)
        return _posed(self.channels, k, whitening, tensor, rows, task.weights)

    @property
    def whitening(self) -> Whitening:
        """How the covariance was whitened."""
        return self.task.whitening

    def lift(self, vectors: Floats) -> Floats:
        """Columns of the whitened space as columns of a mixing matrix, (d, .)."""
        lifted = self.whitening.whitener.unwhiten(vectors)
        return np.asarray(lifted if self.basis is None else self.basis @ lifted)

    def project(self, vectors: Floats) -> Floats:
        """Rows that map centred samples to coordinates along the columns of `vectors`, (., d)."""
        whitener = np.asarray(self.whitening.whitener.matrix)
        matrix = whitener if self.basis is None else self.basis @ whitener
        return np.asarray(vectors.T @ matrix.T)


def channel_passes(source: DenseSource, n_components: int | None, noise: str, exact: bool = False) -> Passes[Problem]:
    """Pass 1: mean and covariance. Pass 2: the fourth cumulant of whitened samples, and those samples if they fit."""
    second = yield SecondMoments(source.n_features, _first_mean(source))
    precision = float(np.finfo(source.dtype).eps)
    channels = Channels(second.mean, second.covariance, second.n, second.weight, precision)
    size_advice(second.n, source.n_features, n_components)
    k, whitening = channels.whitened(n_components, noise, exact)
    matrix = np.asarray(whitening.whitener.matrix, dtype=np.float64)
    tensor, rows, weights = yield from _second_pass(second.n, second.mean, matrix, not source.holds_rows)
    return _posed(channels, k, whitening, tensor, rows, weights, asked=n_components)


def _posed(
    channels: Channels, k: int, whitening: Whitening, tensor: SymmetricTensor, rows: NDArray[np.floating] | None,
    weights: Floats | None, *, asked: int | None = 1,
) -> Problem:  # fmt: skip
    """The task, and what the white samples say of how they depend on each other."""
    advice, factor = size_advice(channels.n, channels.mean.size, asked), 1.0
    if rows is not None:
        advice += _outlier_advice(rows, weights)
        factor = dependence(rows)
    signals = rows is not None and (factor > 1 or has_memory(rows, weights))
    task = Task(tensor, whitening, k, channels.weight / factor, rows, weights, signals)
    return Problem(task, channels, 2, None, advice)


def _second_pass(
    n: int, mean: Floats, matrix: Floats, out_of_core: bool
) -> Passes[tuple[SymmetricTensor, NDArray[np.floating] | None, Floats | None]]:
    """The cumulant of whitened samples, explicit while it is small; the samples (r, n) if they fit; their weights."""
    r = matrix.shape[1]
    if out_of_core or 4 * n * r > POLICY.most_bytes:
        if r > POLICY.stream_limit:
            raise ValueError(f"{r} components of {n} samples need too much memory: use at most {POLICY.stream_limit}.")
        fourth = yield FourthMoments(matrix, mean)
        return ExplicitTensor(fourth.cumulant()), None, None
    kept = yield WhitenedRows(n, mean, matrix)
    rows, given = kept.rows, kept.weights
    return _cumulant(rows, given), rows, given


def _cumulant(rows: NDArray[np.floating], weights: Floats | None) -> SymmetricTensor:
    """Of white samples (r, n)."""
    if len(rows) <= POLICY.explicit_limit:
        return ExplicitTensor(centred_cumulant(rows, weights))
    return CumulantTensor(rows, weights)


class WhitenedRows:
    """All samples in white coordinates, in their order: asked for only where they may be kept."""

    def __init__(self, n: int, mean: Floats, matrix: Floats) -> None:
        self.rows = np.empty((matrix.shape[1], n), dtype=np.float32 if n >= POLICY.single_samples else np.float64)
        self.weights: Floats | None = None
        self._mean, self._matrix = mean, matrix

    def update_all(self, batches: Iterable[DenseBatch]) -> Self:
        """Keep the samples of every batch, whichever thread takes it; returns self."""
        placed, lock = self._placed(batches), Lock()

        def work(_: int) -> None:
            while True:
                with lock:
                    found = next(placed, None)
                if found is None:
                    return
                self._whiten(*found)

        with single_threaded_blas():
            map_parts(work, min(thread_count(), 1 + self.rows.shape[1] // DENSE_BATCH_SIZE))
        return self

    def _placed(self, batches: Iterable[DenseBatch]) -> Iterator[tuple[DenseBatch, int]]:
        """Every batch and where its samples begin, their weights kept."""
        low = 0
        for batch in batches:
            if batch.weights is not None:
                self.weights = np.ones(self.rows.shape[1]) if self.weights is None else self.weights
                self.weights[low : low + len(batch)] = batch.weights
            yield batch, low
            low += len(batch)

    def _whiten(self, batch: DenseBatch, low: int) -> None:
        """``matrix.T @ (rows - mean).T`` (r, m): centred in the precision of the data, mapped in that of the result."""
        turn, origin = np.ascontiguousarray(self._matrix.T, self.rows.dtype), self._mean.astype(batch.rows.dtype)
        if batch.n_features <= NARROW:
            whiten_rows(np.ascontiguousarray(batch.rows), origin, turn, low, self.rows)
            return
        for start in range(0, len(batch), 1024):  # the copy stays in cache
            centred = (batch.rows[start : start + 1024] - origin).astype(turn.dtype, copy=False)
            self.rows[:, low + start : low + start + len(centred)] = turn @ centred.T


def size_advice(n_samples: int, n_features: int, n_components: int | None) -> tuple[str, ...]:
    """Raise where there are fewer samples than sources were asked for; advise where all dimensions are whitened."""
    if n_components is not None and n_samples <= n_components:
        raise ValueError(
            f"n_samples={n_samples} is not larger than n_components={n_components}: use more samples or fewer sources."
        )
    if n_components is None and n_samples <= n_features:
        return (
            f"n_samples={n_samples} is not larger than n_features={n_features}, and every dimension that the samples "
            "span was taken for a source: give n_components, much smaller than the number of samples.",
        )
    return ()


def _first_mean(source: DenseSource) -> Floats:
    """The mean of the first batch: near enough to the mean for sums about it to keep their digits."""
    return np.asarray(first_rows(source, 1024).rows.mean(axis=0, dtype=np.float64))


def _outlier_advice(rows: NDArray[np.floating], weights: Floats | None) -> tuple[str, ...]:
    """Whether one sample carries the fourth moments."""

    def look(part: slice) -> tuple[float, int, float]:
        fourth = squared_norms(rows[:, part]).astype(np.float64) ** 2
        if weights is not None:
            fourth *= weights[part]
        top = int(np.argmax(fourth))
        return float(fourth[top]), part.start + top, float(fourth.sum())

    found = by_parts(look, rows.shape[1])
    largest, where, _ = max(found, key=lambda of_part: of_part[0])
    share = largest / (sum(total for _, _, total in found) or 1.0)
    if share < 0.25 or rows.shape[1] < 50:  # among few samples one may well carry a quarter
        return ()
    return (
        f"sample {where} alone carries {100 * share:.0f} % of the fourth moments: if it is an "
        "outlier, remove or clip it and fit again.",
    )


def dependence(rows: NDArray[np.floating]) -> float:
    """How many samples in their order carry as much as one independent one: at least 1.

    Samples of signals are neighbours in time. The variance of the covariances of long stretches, against what it would
    be for independent samples, is the factor by which all sampling variances grow. (Not measured for few samples.)
    """
    k, n = rows.shape
    length = n // POLICY.stretches
    if k == 1 or n < POLICY.least_samples:
        return 1.0
    samples = np.ascontiguousarray(rows)
    found = map_parts(lambda t: second_products(samples, slice(t * length, (t + 1) * length)), POLICY.stretches)
    covariances = np.array(found) / length
    squares = rows[:, :: max(length // 100, 1)] ** 2
    off = ~np.eye(k, dtype=bool)
    independent = (squares @ squares.T).astype(np.float64)[off] / squares.shape[1]
    ratio = float((length * covariances.var(axis=0)[off]).mean() / independent.mean())
    return ratio if ratio > 1.25 else 1.0  # 100 stretches of one pair know it to 14 %


def has_memory(rows: NDArray[np.floating], weights: Floats | None) -> bool:
    """Whether samples are correlated with the ones before: more than a tenth, and beyond chance.

    Equal neighbours are one sample given twice, and samples of weight 0 are not there.
    """
    part = rows[:, : min(rows.shape[1], POLICY.least_samples)].astype(np.float64)
    if weights is not None:
        part = part[:, weights[: part.shape[1]] > 0]
    part = part[:, np.append(True, (part[:, 1:] != part[:, :-1]).any(axis=0))]
    squares = np.einsum("ij,ij->i", part[:, 1:], part[:, :-1]) ** 2 / np.einsum("ij,ij->i", part, part) ** 2
    # Independent samples have squared correlations of 1/n in the mean; five standard deviations of it.
    return bool(squares.mean() > max(0.01, (1 + 5 * np.sqrt(2 / part.shape[0])) / part.shape[1]))


class StreamedChannels(Together):
    """Second moments of all channels, and fourth moments on a basis (d, r) of them; `precision` is that of the data."""

    _parts: ClassVar[tuple[str, ...]] = ("second", "fourth")
    _on: ClassVar[tuple[str, ...]] = ("basis", "shift", "precision")

    def __init__(self, basis: Floats, shift: Floats, precision: float) -> None:
        self.precision = precision
        self.second, self.fourth = SecondMoments(len(basis), shift), FourthMoments(basis, shift)

    @property
    def basis(self) -> Floats:
        """(d, r)"""
        return np.asarray(self.fourth.basis, dtype=np.float64)

    @property
    def shift(self) -> Floats:
        """(d,)"""
        return self.second.shift

    def problem(self, n_components: int | None, noise: str, exact: bool = False) -> Problem:
        """The task that the samples so far pose."""
        second, fourth = self.second, self.fourth
        n_features, dimension = self.basis.shape
        advice = size_advice(second.n, n_features, n_components)
        whole = dimension == n_features
        inner, centre = (second.covariance, second.mean) if whole else (fourth.covariance, fourth.mean)
        k, whitening = choose_whitening(centre, inner, second.weight, n_components, noise, self.precision, exact)
        tensor = ExplicitTensor(np.ascontiguousarray(fourth.cumulant(np.asarray(whitening.whitener.matrix))))
        task = Task(tensor, whitening, k, second.weight)
        channels = Channels(second.mean, second.covariance, second.n, second.weight, self.precision)
        return Problem(task, channels, 1, None if whole else self.basis, advice)


def channel_plan(n_features: int, n_components: int | None) -> StreamPlan[DenseBatch, StreamedChannels]:
    """How samples of channels are taken in chunks: the first tell where moments are taken about and, for more than 32
    channels, the principal directions in which they are taken.
    """
    dimension = min(n_features, max(n_components or 0, POLICY.stream_dimension))
    if dimension > POLICY.stream_limit:
        raise ValueError(
            f"partial_fit takes at most {POLICY.stream_limit} components, got n_components={n_components}."
        )

    def learn(first: DenseBatch, rng: np.random.Generator) -> StreamedChannels:
        rows = np.asarray(first.rows, dtype=np.float64)
        basis = np.eye(n_features)
        if dimension < n_features:
            basis = np.linalg.eigh(np.cov(rows.T, bias=True))[1][:, ::-1][:, :dimension]
        return StreamedChannels(basis, rows.mean(axis=0), float(np.finfo(first.rows.dtype).eps))

    return StreamPlan(VECTORS, max(1000, 10 * n_features), learn)
