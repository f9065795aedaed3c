"""Separation of signals by the covariances of stretches of time, which stationary noise does not bias.

Sources of signals are louder at some times than at others. With y = (I + D) s + e the outputs of a nearly right
unmixing, v_bi the variance of output i in stretch b, and noise e of one covariance N throughout, to first order in D

    cov_b(y_i, y_j) = v_bj D_ij + v_bi D_ji + N_ij

Weighted least squares over the stretches for the three unknowns of every pair. Without noise it is the maximum of the
likelihood of Gaussian signals whose variances change (Pham and Cardoso 2001). It asks for no shape of the sources, nor
that they be loud independently of each other: common pauses, which mislead cumulants and scores, do not matter where
anything else differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.ica_pairs import Anchor, PairProblem, Pairs, Separation, Step

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# Stretches of at least this many samples, and no more of them than this; ten of them tell variances apart.
_LEAST_LENGTH = 50
_MOST_STRETCHES = 100
_LEAST_STRETCHES = 10
# Half the mean squared difference of the loudness of two outputs over the stretches, each with a mean of 1, from which
# they are told apart: 0.001 to 0.15 for stationary signals, where what is left of a period may look like a change, and
# 0.4 to 10 for heart beats, speech and bursts.
_CHANGING = 0.25
_UNTOLD = 1e-6
# Variance that every output is given in every stretch: digital silence would be infinitely certain.
_SILENCE = 1e-7


def stretch_covariances(rows: Rows, weights: Floats | None) -> tuple[Floats, Floats]:
    """Second moments (b, r, r) of samples (r, n) in stretches of equal length, and the weight of each, (b,)."""
    r, n = rows.shape
    count = max(min(_MOST_STRETCHES, n // _LEAST_LENGTH), 1)
    ends = np.linspace(0, n, count + 1).astype(int)
    sums, totals = np.empty((count, r, r)), np.empty(count)
    for b in range(count):
        stretch = slice(ends[b], ends[b + 1])
        part = rows[:, stretch]
        weighted = part if weights is None else part * weights[stretch].astype(rows.dtype)
        sums[b] = weighted @ part.T
        totals[b] = part.shape[1] if weights is None else weights[stretch].sum()
    present = totals > 0
    return sums[present] / totals[present, None, None], totals[present]


@dataclass(frozen=True, eq=False)
class _StretchProblem(PairProblem):
    """The statistics are covariances of outputs, stretch by stretch; pairs that are not `told` (p,) have none."""

    covariances: Floats = field(repr=False)
    totals: Floats
    told: NDArray[np.bool_]

    def equations(self, unmixing: Floats, noise: Floats, own: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
        """Neighbours in time are no independent samples: what the fit leaves tells how many of them are worth one."""
        design, weights, residual = self._regression(unmixing, noise, own, pairs)
        weighted = design * weights[:, :, None]
        normal = np.einsum("bpu,bpv->puv", weighted, design)
        right = np.einsum("bpu,bp->pu", weighted, residual)
        found = np.einsum("puv,pv->pu", np.linalg.pinv(normal, hermitian=True), right)
        left = residual - np.einsum("bpu,pu->bp", design, found)
        squares = (weights * left**2).sum(axis=0) / (len(weights) - 3)
        share = np.where(self.told, 1.0, _UNTOLD) / max(float(squares[self.told].mean()), 1.0)
        return normal * share[:, None, None], right * share[:, None]

    def _regression(self, unmixing: Floats, noise: Floats, own: Floats, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
        """Regressors (b, p, 3), the certainty (b, p) of an equation, and covariances (b, p) beyond the noise."""
        i, j = pairs
        outputs = unmixing @ self.covariances @ unmixing.T
        variances = np.einsum("bii->bi", outputs) + _SILENCE
        sources, residual = variances - own, outputs[:, i, j] - noise[pairs]
        design = np.stack([sources[:, j], sources[:, i], np.ones_like(residual)], axis=-1)
        return design, self.totals[:, None] / (variances[:, i] * variances[:, j]), residual

    def descend(self, vectors: Floats, n_iter: int, tol: float) -> tuple[Step, int]:
        """Steps until they are small: the last one, and how many there were."""
        for iteration in range(1, n_iter + 1):
            found = self.step(vectors)
            vectors = found.vectors
            if found.change <= tol:
                break
        return found, iteration


def separate_signals(
    rows: Rows,
    weights: Floats | None,
    anchor: Anchor,
    *,
    noise: Floats | None,
    shape: Floats,
    n_iter: int,
    tol: float,
) -> Separation | None:
    """Steps from the mixing of an anchor, which holds what the stretches do not tell; None where they tell nothing.

    Noise and common pauses bias an anchor. So the stretches are asked alone at first, and the anchor is then believed
    as far as it agrees with them.

    Parameters
    ----------
    rows, noise, shape
        As in `odeco.refinement.ica_pairs.separate`.
    anchor : Anchor
        With variances (k, k).
    """
    covariances, totals = stretch_covariances(rows, weights)
    told = _changing(covariances, anchor.vectors)
    if len(totals) < _LEAST_STRETCHES or not told.any():
        return None
    pairs = np.triu_indices(len(told), 1)
    alone = Anchor(anchor.vectors, np.where(told, 1.0, anchor.variances))
    problem = _StretchProblem(noise, shape, alone, covariances, totals, told[pairs])
    first, n_first = problem.descend(anchor.vectors, n_iter, tol)
    doubt = np.where(told, _disagreement(first, anchor, told), 1.0)
    trusted = replace(problem, anchor=Anchor(anchor.vectors, anchor.variances * doubt))
    last, n_last = trusted.descend(first.vectors, n_iter, tol)
    return Separation(last.vectors, last.shares, last.noise_statistic, n_first + n_last, last.change <= tol)


def _changing(covariances: Floats, vectors: Floats) -> NDArray[np.bool_]:
    """For which pairs of outputs (k, k) loudness changes over time, other than in common."""
    unmixing = np.linalg.pinv(vectors)
    loudness = np.einsum("ir,brs,is->ib", unmixing, covariances, unmixing)
    relative = np.cov(loudness / loudness.mean(axis=1, keepdims=True), bias=True).reshape(len(loudness), -1)
    own = np.diag(relative)
    return np.asarray((own[:, None] + own) / 2 - relative > _CHANGING)


def _disagreement(found: Step, anchor: Anchor, told: NDArray[np.bool_]) -> float:
    """Mean squared crosstalk of the anchor in the outputs found, in units of the variances of both: at least 1."""
    relative = np.linalg.pinv(found.vectors) @ anchor.vectors
    relative = relative / np.diag(relative)
    return max(float((relative**2 / (found.variances + anchor.variances))[told].mean()), 1.0)
