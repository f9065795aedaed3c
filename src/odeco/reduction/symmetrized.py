"""The symmetrization of Theorem 3.6, on moments of k directions per view.

In the affine form a constant 1 is appended to every view, about whose means the moments are then taken: the theorem
itself, applied to the views (y_t - E[y_t], 1). It asks for affinely independent conditional means only, one direction
fewer, and reads the weights from second moments instead of third ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer, Decomposition, run_decomposer
from odeco.exceptions import MomentError
from odeco.moments.views import PAIRS, ThreeViews
from odeco.tensors import ExplicitTensor, multilinear, symmetrize
from odeco.whitening import Whitener, whiten

Floats = NDArray[np.float64]
Three = tuple[Floats, Floats, Floats]

# Relative size of a singular value that is rounding: half of the digits, for pairs are products of sums over samples.
_ROUNDING = 1e-10
# Weight below which a component is taken for noise that hardly meets the constant: its means would be unbounded.
_LEAST_WEIGHT = 1e-4
# Eigenvalues of a noisy M2 below this share of the first are raised to it, where a polish follows.
_RAISED = 1e-3


@dataclass(frozen=True, eq=False)
class Symmetrized:
    """Theorem 3.6 for one pivot.

    Attributes
    ----------
    weights : (k,)
        As they come, not scaled to sum to 1.
    duals : three arrays (k, k)
        Linear functions of each view with ``E[dual_i' y_t | h = j] = (i == j) / w_i``.
    pivot : int
    spectrum : (k,)
        Of the symmetrized M2.
    """

    weights: Floats
    duals: Three = field(repr=False)
    pivot: int
    spectrum: Floats
    decomposition: Decomposition


def symmetrized(
    square: ThreeViews, pivot: int, method: Decomposer, rng: np.random.Generator, *, affine: bool, raised: bool = False
) -> Symmetrized:
    """``M2 = E[x~_a (x) x~_b]`` and ``M3 = E[x~_a (x) x~_b (x) x_p]`` of the theorem, whitened and decomposed.

    Parameters
    ----------
    square : ThreeViews
        Of k directions per view (`on_bases`); in the affine form the first is the constant.
    pivot : int
        The view that plays x_3.
    raised : bool
        Raise small and negative eigenvalues of M2 instead of failing at them: a start for the polish, not an estimate.
    """
    k = len(square.triples)
    a, b = (t for t in range(3) if t != pivot)
    maps: dict[int, Floats] = {pivot: np.eye(k)}
    inverse = _inverse(square.pair(a, b))
    maps[a] = square.pair(pivot, b) @ inverse  # x~_a = E[x_p (x) x_b] E[x_a (x) x_b]^-1 x_a
    maps[b] = square.pair(pivot, a) @ inverse.T
    second = maps[a] @ square.pair(a, pivot)  # R_a P_ab R_b' = R_a P_ap
    second = (second + second.T) / 2
    whitener = _raised_whitener(second) if raised else whiten(second, k)
    into = [maps[t].T @ whitener.matrix for t in range(3)]
    tensor = ExplicitTensor(symmetrize(multilinear(square.triples, *into)))
    decomposition = run_decomposer(method, tensor, k, rng)
    vectors, values = np.asarray(decomposition.eigenvectors), np.asarray(decomposition.eigenvalues)
    if affine:
        constants = whitener.lift[0] @ vectors  # sqrt(w_i) times the constant 1
        vectors = vectors * np.where(constants < 0, -1.0, 1.0)
        roots = np.maximum(np.abs(constants), np.sqrt(_LEAST_WEIGHT / k))
    elif (values == 0).any():
        raise MomentError("the symmetrized third moment has a component of eigenvalue 0: lower n_components.")
    else:
        vectors, roots = vectors * np.sign(values), 1 / np.abs(values)
    first, middle, last = ((part @ vectors / roots).T for part in into)
    return Symmetrized(roots**2, (first, middle, last), pivot, np.asarray(whitener.spectrum, float), decomposition)


def small_means(square: ThreeViews, duals: Three) -> Three:
    """Conditional means of the k directions of each view, from the duals of the other two."""
    means = []
    for t in range(3):
        means.append(np.mean([duals[s] @ square.pair(s, t) for s in range(3) if s != t], axis=0))
    return means[0], means[1], means[2]


def common_bases(views: ThreeViews, n_components: int) -> Three:
    """Orthonormal directions (r_t, k) that the pairs of each view have in common, k - 1 in the affine form.

    Left singular vectors of the pairs of a view, side by side: each pair is divided by its norm, so that no loud
    partner outvotes the other.
    """
    rank = n_components if views.means is None else n_components - 1
    bases = []
    for t in range(3):
        joined = np.hstack([_unit_norm(views.pair(t, s)) for s in range(3) if s != t])
        left, values, _ = np.linalg.svd(joined, full_matrices=False)
        present = int(np.sum(values > _ROUNDING * max(values[0], 1e-300))) if values.size and values[0] > 0 else 0
        if present < rank:
            raise MomentError(
                f"view {t} has {present} direction{'s' * (present != 1)} in common with the other views, and "
                f"n_components={n_components} need {rank}: its conditional means are not "
                f"{'linearly' if views.means is None else 'affinely'} independent (Theorem 3.6). Lower n_components, "
                "or use views with more columns, none of them constant."
            )
        bases.append(left[:, :rank])
    return bases[0], bases[1], bases[2]


def on_bases(views: ThreeViews, bases: Three) -> ThreeViews:
    """The moments on the bases; in the affine form those of (y_t - E[y_t], 1), the constant first."""
    pairs = [bases[s].T @ views.pair(s, t) @ bases[t] for s, t in PAIRS]
    triples = multilinear(views.triples, *bases)
    if views.means is None:
        return ThreeViews((pairs[0], pairs[1], pairs[2]), triples)
    k = bases[0].shape[1] + 1
    whole = np.zeros((k, k, k))
    whole[0, 0, 0] = 1.0
    whole[1:, 1:, 1:] = triples
    whole[1:, 1:, 0], whole[1:, 0, 1:], whole[0, 1:, 1:] = pairs
    joined = [np.zeros((k, k)) for _ in pairs]
    for target, pair in zip(joined, pairs, strict=True):
        target[0, 0], target[1:, 1:] = 1.0, pair
    return ThreeViews((joined[0], joined[1], joined[2]), whole)


def _raised_whitener(second: Floats) -> Whitener:
    """A whitener of M2 with small eigenvalues raised to a share of the first."""
    values, vectors = np.linalg.eigh(second)
    enough = np.maximum(values[::-1], _RAISED * max(float(values[-1]), 1e-300))
    return Whitener.of_eigenpairs(enough, vectors[:, ::-1], values[::-1].copy())


def _inverse(pair: Floats) -> Floats:
    """The inverse of a pair on its k directions; MomentError where its rank is lower."""
    left, values, right = np.linalg.svd(pair)
    if values[-1] <= _ROUNDING * values[0]:
        raise MomentError(
            f"a pair of views has rank {int(np.sum(values > _ROUNDING * values[0]))}, below n_components={len(pair)}: "
            "the conditional means of one of them are not independent. Lower n_components."
        )
    return np.asarray((right.T / values) @ left.T)


def _unit_norm(matrix: Floats) -> Floats:
    norm = float(np.linalg.norm(matrix))
    return matrix / norm if norm > 0 else matrix
