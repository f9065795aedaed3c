"""Three views made one: the symmetrization of Theorem 3.6, and the theorem read backwards.

The views come as moments on a few directions each (r_t of them), so nothing here depends on the number of samples or
of columns. In the affine form a constant 1 is appended to every view, about whose means the moments are then taken:
the theorem itself, applied to the views (y_t - E[y_t], 1). It asks for affinely independent conditional means only, one
direction fewer, and reads the weights from second moments instead of third ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposition, run_method
from odeco.exceptions import MomentError
from odeco.moments.views import PAIRS, ThreeViews
from odeco.tensors import ExplicitTensor, multilinear, symmetrize
from odeco.whitening import whiten

__all__ = ["PAIRS", "ThreeViews", "ViewComponents", "common_bases", "recover_views", "three_groups"]

Floats = NDArray[np.float64]

# Relative size of a singular value that is rounding: half of the digits, for pairs are products of sums over samples.
_ROUNDING = 1e-10
# Weight below which a component is taken for noise that hardly meets the constant: its means would be unbounded.
_LEAST_WEIGHT = 1e-4


@dataclass(frozen=True, eq=False)
class ViewComponents:
    """What Theorem 3.6 gives back.

    Attributes
    ----------
    weights : (k,)
        Largest first, summing to 1.
    means : three arrays (k, r_t)
        Conditional means of the views on their directions (not centred).
    functionals : three arrays (k, r_t), and offsets : three arrays (k,)
        Linear functions of the views with ``E[g_ti | h = j] = (i == j) / w_i``. So ``E[x g_ti] = E[x | h = i]`` for
        whatever is independent of view t given h: other views in all their columns, squares, labels. They apply to
        y_t as it is: ``y_t @ functionals[t].T + offsets[t]``.
    raw_total : float
        Sum of the weights before they were scaled to 1 (always about 1 in the affine form).
    pivot : int
        The view onto which the other two were mapped.
    singular_values : three arrays
        Of the pairs, as `ThreeViews` orders them; beyond the k that are used they are noise.
    spectrum : (k,)
        Eigenvalues of the symmetrized second moment.
    """

    weights: Floats
    means: tuple[Floats, Floats, Floats] = field(repr=False)
    functionals: tuple[Floats, Floats, Floats] = field(repr=False)
    offsets: tuple[Floats, Floats, Floats] = field(repr=False)
    raw_total: float
    pivot: int
    singular_values: tuple[Floats, Floats, Floats] = field(repr=False)
    spectrum: Floats = field(repr=False)
    decomposition: Decomposition = field(repr=False)

    @property
    def residual(self) -> float:
        """||T - sum|| / ||T|| of the symmetrized tensor."""
        return self.decomposition.residual


def recover_views(
    views: ThreeViews,
    n_components: int,
    rng: np.random.Generator,
    *,
    method: str = "auto",
    pivot: int | None = None,
) -> ViewComponents:
    """Weights and conditional means of a mixture from the cross moments of three views (Theorem 3.6).

    Parameters
    ----------
    views : ThreeViews
        On at least k directions each (k - 1 in the affine form); more are reduced by low-rank SVDs of the pairs.
    n_components : int
        k.
    method : str
        Of `odeco.decompose`.
    pivot : 0, 1, 2 or None
        The view that plays x_3 of the theorem; None tries all three and keeps the one whose tensor fits best.

    Raises
    ------
    MomentError
        Where the pairs have a rank below k, or the symmetrized second moment is not positive.
    """
    bases = common_bases(views, n_components)
    square = _augment(views, bases)
    found, errors = [], []
    for candidate in range(3) if pivot is None else (pivot,):
        try:
            found.append(_symmetrized(square, n_components, candidate, method, rng, affine=views.means is not None))
        except MomentError as error:
            errors.append(str(error))
    if not found:
        raise MomentError(f"the views could not be symmetrized (Theorem 3.6): {errors[0]}")
    best = min(found, key=lambda solution: solution.decomposition.residual)
    return _read(views, bases, square, best)


def common_bases(views: ThreeViews, n_components: int) -> tuple[Floats, Floats, Floats]:
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


@dataclass(frozen=True, eq=False)
class _Symmetrized:
    """Theorem 3.6 for one pivot, on k directions: functionals (k, k) of each view, without the scale of the weights."""

    roots: Floats  # sqrt(w_i)
    functionals: tuple[Floats, Floats, Floats]
    pivot: int
    spectrum: Floats
    decomposition: Decomposition


def _symmetrized(
    views: ThreeViews, k: int, pivot: int, method: str, rng: np.random.Generator, *, affine: bool
) -> _Symmetrized:
    """``M2 = E[x~_a (x) x~_b]`` and ``M3 = E[x~_a (x) x~_b (x) x_p]`` of the theorem, whitened and decomposed."""
    a, b = (t for t in range(3) if t != pivot)
    maps: dict[int, Floats] = {pivot: np.eye(k)}
    inverse = _inverse(views.pair(a, b))
    maps[a] = views.pair(pivot, b) @ inverse  # x~_a = E[x_p (x) x_b] E[x_a (x) x_b]^-1 x_a
    maps[b] = views.pair(pivot, a) @ inverse.T
    second = maps[a] @ views.pair(a, pivot)  # R_a P_ab R_b' = R_a P_ap
    whitener = whiten((second + second.T) / 2, k)
    into = [maps[t].T @ whitener.matrix for t in range(3)]
    tensor = ExplicitTensor(symmetrize(multilinear(views.triples, *into)))
    decomposition = run_method(tensor, k, method, rng, {})
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
    return _Symmetrized(
        roots, (first, middle, last), pivot, np.asarray(whitener.spectrum, dtype=np.float64), decomposition
    )


def _read(
    views: ThreeViews, bases: tuple[Floats, Floats, Floats], square: ThreeViews, best: _Symmetrized
) -> ViewComponents:
    """Weights in order, and means of each view from the functionals of the other two."""
    weights = best.roots**2
    order = np.argsort(-weights, kind="stable")
    affine = views.means is not None
    functionals, offsets, means = [], [], []
    for t in range(3):
        small = best.functionals[t][order]
        steep = (small[:, 1:] if affine else small) @ bases[t].T
        functionals.append(steep)
        offsets.append(small[:, 0] - steep @ views.means[t] if views.means is not None else np.zeros(len(order)))
    for t in range(3):
        others = [s for s in range(3) if s != t]
        mean = np.mean([functionals[s] @ views.pair(s, t) for s in others], axis=0)
        means.append(mean if views.means is None else mean + views.means[t])
    total = float(weights.sum())
    return ViewComponents(
        weights=weights[order] / total,
        means=(means[0], means[1], means[2]),
        functionals=(functionals[0], functionals[1], functionals[2]),
        offsets=(offsets[0], offsets[1], offsets[2]),
        raw_total=total,
        pivot=best.pivot,
        singular_values=tuple(np.linalg.svd(pair, compute_uv=False) for pair in views.pairs),  # type: ignore[arg-type]
        spectrum=best.spectrum,
        decomposition=best.decomposition,
    )


def _augment(views: ThreeViews, bases: tuple[Floats, Floats, Floats]) -> ThreeViews:
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


def three_groups(sizes: list[int], limit: int) -> list[list[int]]:
    """Three groups of views (or of columns) whose sums of ``min(size, limit)`` are about equal; largest first.

    Views that are independent given h stay so when they are joined: more than three become three.
    """
    groups: list[list[int]] = [[], [], []]
    totals = [0, 0, 0]
    for index in sorted(range(len(sizes)), key=lambda i: (-min(sizes[i], limit), i)):
        g = min(range(3), key=lambda i: (totals[i], i))
        groups[g].append(index)
        totals[g] += min(sizes[index], limit)
    return [sorted(group) for group in groups]
