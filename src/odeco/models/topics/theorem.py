"""From word moments to topics: the part that the single topic model and LDA share (Theorems 3.1, 3.5 and 4.3).

The flow is one line: a source of counts, its leading directions, moments on k of them, and for every alpha0 a small
whitening, a k x k x k tensor, its decomposition and the topics read off. alpha0 = 0 is the single topic model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, Decomposition, run_decomposer
from odeco.models.topics.policy import POLICY, Iterations
from odeco.moments import DirichletTensor, ProjectedMoments, dirichlet_moments
from odeco.reduction.plain import recover, whitened
from odeco.tensors import SymmetricTensor
from odeco.whitening import Whitener

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BasisMoments:
    """Raw word moments on k directions, with the way back to the words.

    Attributes
    ----------
    whitener : Whitener
        Words to k directions and back; whitens E[x1 (x) x2].
    moments : ProjectedMoments
        On ``whitener.matrix``.
    spectrum : (m,)
        Leading eigenvalues of the scaled E[x1 (x) x2], more than k where more are known.
    n_passes : int
    suggested_components : int or None
    all_triples : SymmetricTensor or None
        The raw third moment of all documents as an implicit tensor, where `moments.triples` is that of some of them.
    """

    whitener: Whitener
    moments: ProjectedMoments
    spectrum: Floats = field(repr=False)
    n_passes: int = 0
    suggested_components: int | None = None
    all_triples: SymmetricTensor | None = None

    def narrowed(self, n_components: int) -> BasisMoments:
        """On the first of the directions. Their tensor of some documents has to do for all: it is a start."""
        k, raw = n_components, self.moments
        moments = ProjectedMoments(raw.first[:k], raw.pairs[:k, :k], raw.triples[:k, :k, :k])
        return replace(self, whitener=self.whitener.leading(k), moments=moments, all_triples=None)


@dataclass(frozen=True, eq=False)
class TopicEstimate:
    """Topics and weights at one alpha0, as the moments give them.

    Attributes
    ----------
    topics : (k, d)
        Rows on the simplex, largest weight first.
    weights : (k,)
        Expected shares of the topics, summing to 1: w of Theorem 3.1, alpha / alpha0 of Theorem 3.5.
    raw_total : float
        Sum of the weights as the eigenvalues give them: 1 only at the true alpha0.
    clipped_mass : (k,)
        Negative mass of each topic before it was put on the simplex.
    advice, details : tuple of str, mapping
        What to say of it, where it is not refined; and what else was found.
    """

    alpha0: float
    topics: Floats = field(repr=False)
    weights: Floats
    raw_total: float
    clipped_mass: Floats
    decomposition: Decomposition
    whitener: Whitener
    advice: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)


def topics_at(basis: BasisMoments, alpha0: float, rng: np.random.Generator, method: Decomposer = AUTO) -> TopicEstimate:
    """Theorem 3.5 read backwards at one alpha0 (Theorem 3.1 at 0); costs no pass over the data.

    M3(W, W, W) has the eigenvalues (2 / (alpha0 + 2)) sqrt(alpha0 (alpha0 + 1) / alpha_i), and its eigenvectors lift to
    multiples of the topics.
    """
    inner, decomposition = _decompose_at(basis, alpha0, rng, method, POLICY.settled)
    if basis.all_triples is not None:
        decomposition = _finish_on_all(basis, alpha0, inner, decomposition, rng)
    whole = basis.whitener.compose(inner)
    found = recover(whole, decomposition.eigenvalues, decomposition.eigenvectors, ratio=2.0 / (alpha0 + 2.0))
    topics, clipped = to_simplex(found.vectors)
    # a_i = alpha_i / (alpha0 (alpha0 + 1)), so the shares are a_i (alpha0 + 1).
    shares = np.asarray(found.weights * (alpha0 + 1.0), dtype=float)
    order = np.argsort(-shares, kind="stable")
    return TopicEstimate(
        alpha0,
        topics[order],
        shares[order] / shares.sum(),
        float(shares.sum()),
        clipped[order],
        decomposition.take(order),
        whole,
    )


def _decompose_at(
    basis: BasisMoments, alpha0: float, rng: np.random.Generator, method: Decomposer, steps: Iterations
) -> tuple[Whitener, Decomposition]:
    """The whitener of M2 on the k directions at this alpha0, and the decomposition of M3 whitened by it."""
    k = basis.whitener.n_components
    exact = dirichlet_moments(basis.moments.first, basis.moments.pairs, basis.moments.triples, alpha0)
    reduced = whitened(exact.second, exact.third, k)
    return reduced.whitener, run_decomposer(method, reduced.tensor, k, rng, **steps.options())


def _finish_on_all(
    basis: BasisMoments, alpha0: float, inner: Whitener, some: Decomposition, rng: np.random.Generator
) -> Decomposition:
    """A few simultaneous power steps over all documents, from the decomposition of some documents' tensor.

    Forming the tensor costs n k^3, a step 4 n k^2 (section 6.1.2). The norm of an implicit tensor is not known, so the
    residual stays that of the tensor that was formed.
    """
    raw = basis.moments
    tensor = DirichletTensor(basis.all_triples, raw.first, raw.pairs, alpha0, inner.matrix)  # type: ignore[arg-type]
    finished = run_decomposer(AUTO, tensor, some.rank, rng, starts=some.eigenvectors, **POLICY.few.options())
    return replace(finished, residual=some.residual, status=some.status)


def to_simplex(vectors: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Rows as probability vectors: of v and -v the one with less negative mass, negatives clipped, sums 1.

    Returns the rows and the negative mass of each, as a share of the positive.
    """
    positive, negative = np.maximum(vectors, 0.0), np.maximum(-vectors, 0.0)
    turned = negative.sum(axis=1) > positive.sum(axis=1)
    positive[turned], negative[turned] = negative[turned], positive[turned].copy()
    totals = positive.sum(axis=1)
    safe = np.where(totals > 0, totals, 1.0)
    rows = np.where(totals[:, None] > 0, positive / safe[:, None], 1.0 / vectors.shape[1])
    return np.asarray(rows, dtype=float), np.asarray(negative.sum(axis=1) / safe, dtype=float)


@dataclass(frozen=True, eq=False)
class Alpha0Search:
    """The residuals seen on the way to an alpha0."""

    alpha0: float
    identified: bool
    curve: Floats = field(repr=False)  # rows (alpha0, relative residual), ascending in alpha0


def search_alpha0(basis: BasisMoments, method: Decomposer = AUTO) -> Alpha0Search:
    """The alpha0 at which the tensor is closest to orthogonally decomposable.

    A coarse grid, then parabolas in log alpha0 around its best point. The residual is smallest at the true value, where
    alone M3 has the form of Theorem 3.5. Where it is flat, alpha0 is not identified by the moments. Vertices of
    parabolas move with the moments, while the best of many points near a flat minimum is a matter of rounding.
    """
    from odeco.kernels.threads import map_parts, single_threaded_blas

    seen: dict[float, float] = {}

    def residual(log_alpha0: float, steps: Iterations) -> float:
        alpha0 = float(np.exp(log_alpha0))
        try:
            # The same start at every alpha0: a smooth curve, whatever the seed.
            _, decomposition = _decompose_at(basis, alpha0, np.random.default_rng(0), method, steps)
        except ValueError:  # M2 is indefinite: alpha0 is far too large
            return np.inf
        seen[alpha0] = decomposition.residual
        return seen[alpha0]

    with single_threaded_blas():  # many small products
        grid = np.log(np.geomspace(*POLICY.alpha0_range, POLICY.n_alpha0))
        values = np.array(map_parts(lambda point: residual(grid[point], POLICY.rough), grid.size))
        if not seen:
            least = float(np.exp(grid[0]))
            topics_at(basis, least, np.random.default_rng(0), method)  # raises the error that says why
        identified = bool(values.min() < POLICY.identified * np.median(values))
        best = float(np.log(POLICY.unidentified_alpha0))
        if identified:
            best = float(grid[np.argmin(values)])
            for width in POLICY.alpha0_widths:
                points = best + width * np.array([-1.0, 0.0, 1.0])
                values = np.array(map_parts(lambda i, at=points: residual(at[i], POLICY.exact), points.size))  # type: ignore[misc]
                lowest = _lowest(points, values**2)
                best = float(np.clip(lowest, grid[0], grid[-1]))
    return Alpha0Search(float(np.exp(best)), identified, np.array(sorted(seen.items())))


def _lowest(points: Floats, values: Floats) -> float:
    """Where the parabola through three evenly spaced points is lowest between them; the best of them if it is not."""
    bend = values[0] - 2 * values[1] + values[2] if np.isfinite(values).all() else 0.0
    if bend <= 0:
        return float(points[np.argmin(values)])
    step = points[1] - points[0]
    return float(points[1] + step * np.clip((values[0] - values[2]) / (2 * bend), -1.0, 1.0))
