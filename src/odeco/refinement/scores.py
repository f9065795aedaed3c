"""Score functions -p'/p of many densities at once, from counts on a grid.

The score phi of a density minimises E[phi^2] - 2 E[phi'] (Hyvarinen 2005), and its smoothing spline adds a penalty on
the integral of phi''^2 (Cox 1985): a straight line, the score of a Gaussian, is what remains where the data say
nothing. Everything is a function of the counts, so that candidates cost no pass over the samples.

The samples are in two halves, and the score used on one is fitted to the other: moments of a score on the samples that
it was fitted to are biased, E[phi'] above all, and noise between the sources would carry that bias into the mixing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.products import by_parts

Floats = NDArray[np.float64]

# The grid, in standard deviations: 0.04 apart, which resolves noise of a tenth of a deviation.
_LOW, _CELLS = -8.0, 401
_STEP = -2 * _LOW / (_CELLS - 1)
_GRID = _LOW + _STEP * np.arange(_CELLS)
# From a two-valued source without noise to what is hardly told from a Gaussian.
_PENALTIES: Floats = np.asarray(10.0 ** np.arange(-9, 2, 2), dtype=np.float64)
# Runs of neighbours, about, that the samples are split in.
_RUNS = 200
# Values are told apart by a thousandth: rounding, which differs between processors, then hardly ever moves a run's end.
_RESOLUTION = 2.0**10


def split_in_halves(rows: NDArray[np.floating], weights: Floats | None) -> NDArray[np.int8]:
    """0 or 1 for every sample (column): runs of neighbours, whose ends the samples themselves decide.

    Neighbours in time may be nearly equal, and belong to one half. A repeated sample stays in the half of the first,
    and one of weight 0 ends no run: weights are repetitions.
    """
    present = slice(None) if weights is None else weights > 0
    total = float(rows.shape[1] if weights is None else weights.sum())
    values = rows[0, present]
    lengths = np.diff(np.concatenate([[0], _run_ends(values, min(_RUNS / total, 1.0)), [values.size]]))
    if not 0.25 < lengths[1::2].sum() / max(values.size, 1) < 0.75:
        lengths = np.ones(values.size, dtype=np.int64)
    halves = np.zeros(rows.shape[1], dtype=np.int8)
    halves[present] = np.repeat((np.arange(lengths.size) % 2).astype(np.int8), lengths)
    return halves


def _run_ends(values: NDArray[np.floating], share: float) -> NDArray[np.intp]:
    """Places of about this share of the values, which their hashes choose: each ends a run, and begins another."""
    limit = np.uint32(share * (2**32 - 1))

    def ends(part: slice) -> NDArray[np.intp]:
        before = min(part.start, 1)
        whole = np.floor(values[part.start - before : part.stop] * _RESOLUTION).astype(np.int64).astype(np.uint32)
        found = whole * np.uint32(2654435761) < limit  # Knuth's multiplicative hash
        found[1:] &= whole[1:] != whole[:-1]
        return np.asarray(part.start + np.flatnonzero(found[before:]))

    return np.concatenate(by_parts(ends, values.size))


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in columns (r, n), contiguous, their weights (empty for ones) and the half that each is in."""

    rows: NDArray[np.floating] = field(repr=False)
    weights: Floats = field(repr=False)
    halves: NDArray[np.int8] = field(repr=False)

    @classmethod
    def of(cls, rows: NDArray[np.floating], weights: Floats | None, halves: NDArray[np.int8]) -> Samples:
        """Copied only where they are not contiguous."""
        given = np.empty(0) if weights is None else np.ascontiguousarray(weights)
        return cls(np.ascontiguousarray(rows), given, np.ascontiguousarray(halves))


class Counts:
    """Samples of k outputs of unit variance on the grid, in two halves."""

    def __init__(self, k: int) -> None:
        self._counts = np.zeros((k, 2 * _CELLS, 2))  # weights, and weights times the place in the cell

    def add(self, samples: Samples, part: slice, turn: NDArray[np.floating]) -> Counts:
        """Add the outputs ``turn @ rows`` of some samples; returns self."""
        from odeco.kernels.scores import add_counts

        rows, given, halves = samples.rows, samples.weights, samples.halves
        add_counts(rows, part.start, part.stop, turn, given, halves, _LOW, _STEP, self._counts)
        return self

    def merge(self, other: Counts) -> None:
        """Add the samples of other counts."""
        self._counts += other._counts

    def shares(self) -> tuple[Floats, Floats]:
        """Masses at the nodes and in the cells to their right, (2, k, cells), each half summing to one.

        For a piecewise linear function E f is the sum over nodes and E f' the sum over cells, both exactly.
        """
        cells, offsets = self._counts.reshape(-1, 2, _CELLS, 2).transpose(3, 1, 0, 2)
        nodes = cells - offsets
        nodes[:, :, 1:] += offsets[:, :, :-1]
        totals = cells.sum(axis=2, keepdims=True)
        return np.ascontiguousarray(nodes / totals), np.ascontiguousarray(cells / totals)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of k outputs, and moments of them on the half that each was not fitted to.

    Attributes
    ----------
    tables : (k, 2 cells) float32
        For samples of the first half, then for those of the second.
    slopes : (3, k)
        E[phi'], E[phi''], E[phi''']: what one, two and three factors of noise covariance are multiplied by.
    roughness : (k,)
        Variance of phi': with it the estimate of E[phi'] varies.
    """

    tables: NDArray[np.float32] = field(repr=False)
    slopes: Floats
    roughness: Floats

    def products(self, samples: Samples, part: slice, turn: NDArray[np.floating]) -> Floats:
        """Sums (k + 1, 2 k + 1) over some samples of scores and ones times outputs ``turn @ rows``, scores and ones."""
        from odeco.kernels.scores import add_score_products

        out = np.zeros((len(turn) + 1, 2 * len(turn) + 1))
        rows, given, halves = samples.rows, samples.weights, samples.halves
        add_score_products(rows, part.start, part.stop, turn, given, halves, _LOW, _STEP, self.tables, out)
        return out


def fit_scores(counts: Counts, correlation: Floats, n_samples: float) -> Scores:
    """The scores with the smoothness that promises the best separation.

    In a pair of sources phi_i and y_j - phi_j / E[phi_j'] are multiplied (`odeco.refinement.ica_pairs`). The sampling
    variance of what comes of it is proportional to E[phi^2] / E[phi']^2 of the one and E[g^2] / E[y g]^2 of the
    other, g = y - phi / E[phi']; the least product of the two is chosen, E[y g] less two of its standard errors. Where
    outputs are correlated by noise, an error of E[phi'] enters in proportion.

    Parameters
    ----------
    correlation : (k,)
        Mean squared correlation of each output with the others.
    """
    from odeco.kernels.scores import smoothing_splines

    nodes, cells = counts.shares()
    k = nodes.shape[1]
    right = -cells / _STEP
    right[:, :, 1:] += cells[:, :, :-1] / _STEP
    tables = np.empty((2, _PENALTIES.size, k, _CELLS))
    for half in (0, 1):
        # An empty grid has no unique spline; a mass of 1e-14 is nothing and makes it one.
        smoothing_splines(nodes[1 - half] + 1e-14, right[1 - half], _PENALTIES / _STEP**3, tables[half])
    steps = tables[:, :, :, 1:] - tables[:, :, :, :-1]
    inner = cells[:, :, :-1] / (2 * _STEP)
    slope = np.einsum("hlic,hic->li", steps, inner)
    roughness = np.einsum("hlic,hlic,hic->li", steps, steps, inner) / _STEP - slope**2
    with np.errstate(divide="ignore", invalid="ignore"):
        squares, contrast, sensitivity = _variances(tables, nodes, slope)
        sensitivity = sensitivity - 2 * np.sqrt((contrast + roughness / slope**2) / n_samples)
        spread = correlation * roughness
        risk = (squares + spread) * (contrast + spread / slope**2) / (slope * sensitivity) ** 2
        # A variance of risk / n that is no less than 1 is no knowledge.
        risk = np.where((slope > 0) & (sensitivity > 0) & (risk < n_samples), risk, np.inf)
    risk[-1] = np.minimum(risk[-1], np.finfo(float).max)  # where nothing is known
    best, every = np.argmin(risk, axis=0), np.arange(k)
    chosen = np.ascontiguousarray(tables[:, best, every])
    second = np.gradient(np.gradient(chosen, _STEP, axis=2), _STEP, axis=2)
    higher = [np.einsum("hic,hic->i", d, nodes) / 2 for d in (second, np.gradient(second, _STEP, axis=2))]
    both = chosen.transpose(1, 0, 2).reshape(k, 2 * _CELLS).astype(np.float32)
    return Scores(both, np.stack([slope[best, every], *higher]), roughness[best, every])


def _variances(tables: Floats, nodes: Floats, slope: Floats) -> tuple[Floats, Floats, Floats]:
    """Variances of functions phi (2, levels, k, cells) and of g = y - phi / slope, and E[y g], all (levels, k).

    The moments of g follow from those of phi: an array of its values costs more than all the rest.
    """
    mean = np.einsum("hlic,hic->hli", tables, nodes)
    square = np.einsum("hlic,hlic,hic->hli", tables, tables, nodes)
    cross = np.einsum("hlic,hic->hli", tables, nodes * _GRID)
    centre, second = nodes @ _GRID, nodes @ _GRID**2
    variance = square - mean**2
    covariance = cross - mean * centre[:, None]
    contrast = (second - centre**2)[:, None] - 2 * covariance / slope + variance / slope**2
    return variance.mean(axis=0), np.maximum(contrast.mean(axis=0), 0.0), (second[:, None] - cross / slope).mean(axis=0)
