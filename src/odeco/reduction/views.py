"""Theorem 3.6 read backwards: weights, conditional means, and functions that pick one component.

The views come as moments on a few directions each (r_t of them), so nothing here depends on the number of samples or
of columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco._random import RandomState, as_generator
from odeco.decomposition import AUTO, Decomposer, Decomposition
from odeco.exceptions import MomentError, MomentWarning
from odeco.moments.views import ThreeViews
from odeco.reduction.checks import check_views
from odeco.reduction.least_squares import CrossFit, fit_cross_moments
from odeco.reduction.symmetrized import Symmetrized, Three, common_bases, on_bases, small_means, symmetrized

Floats = NDArray[np.float64]

_FEW = 30  # components up to which the fit starts from every pivot: more cost k^4 each


@dataclass(frozen=True, eq=False)
class ViewComponents:
    """What Theorem 3.6 gives back.

    Attributes
    ----------
    weights : (k,)
        Largest first, summing to 1.
    means : three arrays (k, r_t)
        Conditional means of the views on their directions (not centred).
    functionals : three by three arrays (k, r_s), and offsets : three arrays (k,)
        ``g_ti = sum_s functionals[t][s][i]' y_s + offsets[t][i]``, a function of the two other views (its part of view
        t itself is 0), has ``E[g_ti | h = j] = (i == j) / w_i``. So ``E[x g_ti] = E[x | h = i]`` for whatever is
        independent of them given h: all columns of view t, their squares, labels.
    raw_total : float
        Sum of the weights before they were scaled to 1 (always about 1 in the affine form).
    pivot : int
        The view onto which the other two were mapped.
    singular_values : three arrays
        Of the pairs, as `ThreeViews` orders them; beyond the k that are used they are noise.
    spectrum : (k,)
        Eigenvalues of the symmetrized second moment.
    residual : float
        ||T - sum|| / ||T|| of the symmetrized tensor; of the cross moments where they were fitted.
    decomposition : Decomposition
        Of the symmetrized tensor.
    n_sweeps : int
        Of the least-squares fit; 0 without.
    """

    weights: Floats
    means: Three = field(repr=False)
    functionals: tuple[Three, Three, Three] = field(repr=False)
    offsets: Three = field(repr=False)
    raw_total: float
    pivot: int
    singular_values: Three = field(repr=False)
    spectrum: Floats = field(repr=False)
    residual: float
    decomposition: Decomposition = field(repr=False)
    n_sweeps: int = 0


def decompose_views(
    views: ThreeViews,
    n_components: int,
    *,
    method: str = "auto",
    random_state: RandomState = None,
    pivot: int | None = None,
    polish: bool = False,
    **options: Any,
) -> ViewComponents:
    """Weights and conditional means of a mixture from the cross moments of three views (Theorem 3.6).

    The views are independent given the component and may differ in all else. Two of them are mapped onto the third, the
    pivot, which makes the moments symmetric; then the reduction of section 4.3 applies.

    Parameters
    ----------
    views : ThreeViews
        Moments on r_t directions of view t, at least k of them; k - 1 in the affine form, where ``views.means`` are
        given and pairs and triples are about them.
    n_components : int
        k.
    method, random_state, **options
        As :func:`odeco.decompose` takes them.
    pivot : 0, 1, 2 or None
        The view that plays x_3 of the theorem; None tries all three and keeps the one whose tensor fits best.
    polish : bool
        Fit the cross moments by least squares from there (affine form only). Far less noise where components are hard
        to tell apart, and an answer where the symmetrized second moment is not positive.

    Returns
    -------
    ViewComponents
        ``weights`` (k,), largest first, and ``means``, three arrays (k, r_t).

    Raises
    ------
    MomentError
        Where the pairs have a rank below k, or (without `polish`) the symmetrized second moment is not positive.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> rng, weights = np.random.default_rng(0), np.array([0.6, 0.4])
    >>> x, y, z = means = [rng.standard_normal((2, d)) for d in (2, 3, 4)]
    >>> pairs = [np.einsum("i,ia,ib->ab", weights, *two) for two in ((x, y), (x, z), (y, z))]
    >>> triples = np.einsum("i,ia,ib,ic->abc", weights, x, y, z)
    >>> views = odeco.moments.ThreeViews(tuple(pairs), triples)
    >>> found = odeco.reduction.decompose_views(views, 2, random_state=0)
    >>> all(np.allclose(mean, truth) for mean, truth in zip(found.means, means))
    True
    """
    check_views(views, n_components)
    if pivot not in (None, 0, 1, 2):
        raise ValueError(f"pivot must be None, 0, 1 or 2, got {pivot!r}.")
    decomposer, rng = Decomposer.of(method, options), as_generator(random_state)
    found = recover_views(views, n_components, rng, method=decomposer, pivot=pivot, polish=polish)
    if not found.decomposition.status.ok:
        warnings.warn(str(found.decomposition.status), MomentWarning, stacklevel=2)
    return found


def recover_views(
    views: ThreeViews,
    n_components: int,
    rng: np.random.Generator,
    *,
    method: Decomposer = AUTO,
    pivot: int | None = None,
    polish: bool = False,
) -> ViewComponents:
    """`decompose_views` on moments that need no check, for models: without the warning, which they word themselves."""
    affine = views.means is not None
    bases = common_bases(views, n_components)
    square = on_bases(views, bases)
    polish = polish and affine and n_components > 1
    found: list[Symmetrized] = []
    errors = []
    for candidate in range(3) if pivot is None else (pivot,):
        try:
            found.append(symmetrized(square, candidate, method, rng, affine=affine, raised=polish))
        except MomentError as error:
            errors.append(str(error))
    if not found:
        raise MomentError(f"the views could not be symmetrized (Theorem 3.6): {errors[0]}")
    found.sort(key=lambda solution: solution.decomposition.residual)
    if not polish:
        return _read(views, bases, found[0], found[0].weights, small_means(square, found[0].duals), found[0].duals)
    return _polished(views, bases, square, found if n_components <= _FEW else found[:1])


def _polished(views: ThreeViews, bases: Three, square: ThreeViews, starts: list[Symmetrized]) -> ViewComponents:
    """The best least-squares fit from several starts."""
    fits: list[tuple[CrossFit, Symmetrized]] = []
    for start in starts:
        means = small_means(square, start.duals)
        # The constant of a mean is 1; noise of the duals leaves it near that.
        first, second, third = (np.hstack([np.ones((len(mean), 1)), mean[:, 1:]]) for mean in means)
        fit = fit_cross_moments(square.triples, start.weights / start.weights.sum(), (first, second, third))
        if fit is not None:
            fits.append((fit, start))
    if not fits:
        raise MomentError(
            "the cross moments of the views do not look like those of a mixture: a component got no positive weight. "
            "Lower n_components, or use more samples."
        )
    best, start = min(fits, key=lambda pair: pair[0].residual)
    return _read(views, bases, start, best.weights, best.means, None, best)


def _read(
    views: ThreeViews,
    bases: Three,
    start: Symmetrized,
    weights: Floats,
    means: Three,
    duals: Three | None,
    fit: CrossFit | None = None,
) -> ViewComponents:
    """The components in order and on the views' own directions."""
    order = np.argsort(-weights, kind="stable")
    weights = weights[order]
    means = (means[0][order], means[1][order], means[2][order])
    affine = views.means is not None
    lifted, functionals, offsets = [], [], []
    for t in range(3):
        small = means[t][:, 1:] if affine else means[t]
        center = views.means[t] if views.means is not None else 0.0
        lifted.append(small @ bases[t].T + center)
        parts, constant = _functional(t, weights, means, duals, order, affine=affine)
        steep = [part @ bases[s].T for s, part in enumerate(parts)]
        if views.means is not None:
            constant = constant - sum(part @ mean for part, mean in zip(steep, views.means, strict=True))
        functionals.append((steep[0], steep[1], steep[2]))
        offsets.append(constant)
    total = float(weights.sum())
    first, second, third = (np.asarray(np.linalg.svd(pair, compute_uv=False)) for pair in views.pairs)
    return ViewComponents(
        weights=weights / total,
        means=(lifted[0], lifted[1], lifted[2]),
        functionals=(functionals[0], functionals[1], functionals[2]),
        offsets=(offsets[0], offsets[1], offsets[2]),
        raw_total=total,
        pivot=start.pivot,
        singular_values=(first, second, third),
        spectrum=start.spectrum,
        residual=start.decomposition.residual if fit is None else fit.residual,
        decomposition=start.decomposition,
        n_sweeps=0 if fit is None else fit.n_iter,
    )


def _functional(
    view: int, weights: Floats, means: Three, duals: Three | None, order: NDArray[np.intp], *, affine: bool
) -> tuple[list[Floats], Floats]:
    """Slopes for every view (0 for `view`) and constants of the functions of the other two that pick one component.

    The theorem's own duals, averaged; or, from fitted means, the shortest function of both views together: their
    directions have about unit noise, so the shortest is about the least noisy.
    """
    others = [s for s in range(3) if s != view]
    k = weights.size
    parts = [np.zeros_like(mean) for mean in means]
    if duals is not None:
        for s in others:
            parts[s] = duals[s][order] / 2
    else:
        rows = np.hstack([np.ones((k, 1)), *(means[s][:, 1:] for s in others)])
        found = (np.linalg.pinv(rows) / weights).T
        first, second = np.split(found[:, 1:], 2, axis=1)
        parts[others[0]], parts[others[1]] = (np.hstack([found[:, :1] / 2, part]) for part in (first, second))
    if not affine:
        return parts, np.zeros(k)
    constant = sum((part[:, 0] for part in parts[1:]), start=parts[0][:, 0])
    return [part[:, 1:] for part in parts], constant
