"""Figures of independent components: how sources mix, and what they look like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.names import batches_without_names, check_suits, column_names
from odeco.sources.dense import as_dense_source

Floats = NDArray[np.float64]

_MOST_SAMPLES = 200_000  # that are read for the figure
_HISTOGRAM_BINS = 40
_WIDEST = 4.0  # standard deviations on either side in a histogram


@dataclass(frozen=True, eq=False)
class Mixing:
    """The mixing matrix.

    Attributes
    ----------
    matrix : (d, k)
        For sources of unit variance.
    channels : tuple of str
    power : (k,)
        Share of the variance of all channels that each source carries; what is missing to 1 is noise.
    kurtosis : (k,)
    identified : (k,) bool
        False where the kurtosis is within sampling error of 0.
    """

    matrix: Floats = field(repr=False)
    channels: tuple[str, ...]
    power: Floats
    kurtosis: Floats
    identified: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sources:
    """The estimated sources of given samples.

    Attributes
    ----------
    low, high : (m, k)
        The lowest and the highest value of each of m stretches of samples: what a plot m pixels wide can show.
    n_samples : int
        Samples that were read.
    histogram : (bins, k)
        Densities of the standardized sources.
    edges : (bins + 1,)
    """

    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    n_samples: int
    histogram: Floats = field(repr=False)
    edges: Floats = field(repr=False)


def mixing(model: Any, feature_names: Iterable[Any] | None = None) -> Mixing:
    """How the sources of a fitted `ICA` reach the channels."""
    check_suits(model, "mixing")
    matrix = np.asarray(model.mixing_, dtype=np.float64)
    names = column_names(model, feature_names, len(matrix), what="channel", argument="feature_names")
    variance = float(np.trace(model.covariance_))
    power = (matrix**2).sum(axis=0) / (variance if variance > 0 else 1.0)
    identified = model.diagnostics_.details.get("identifiable")
    flags = np.ones(matrix.shape[1], dtype=bool) if identified is None else np.asarray(identified, dtype=bool)
    return Mixing(matrix, tuple(names), power, np.asarray(model.kurtosis_, dtype=np.float64), flags)


def source_series(model: Any, data: Any, n_points: int = 400) -> Sources:
    """The sources of the first samples, as wide as a figure can show, and their densities."""
    check_suits(model, "source_series")
    blocks, n = [], 0
    for batch in as_dense_source(data):
        rows = batch.rows[: _MOST_SAMPLES - n]
        with batches_without_names():
            blocks.append(np.asarray(model.transform(rows), dtype=np.float64))
        n += len(rows)
        if n >= _MOST_SAMPLES:
            break
    values = np.vstack(blocks)
    firsts = np.unique(np.linspace(0, n, min(n_points, n), endpoint=False).astype(np.intp))
    low, high = np.minimum.reduceat(values, firsts), np.maximum.reduceat(values, firsts)
    scale = values.std(axis=0)
    standard = np.clip((values - values.mean(axis=0)) / np.where(scale > 0, scale, 1), -_WIDEST, _WIDEST)
    edges = np.linspace(-_WIDEST, _WIDEST, _HISTOGRAM_BINS + 1)
    densities = [np.histogram(column, bins=edges, density=True)[0] for column in standard.T]
    return Sources(low, high, n, np.column_stack(densities), edges)
