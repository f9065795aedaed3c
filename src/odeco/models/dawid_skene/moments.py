"""From votes to confusions: groups of workers as three views (Theorem 3.6), and which class is which label."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.models.dawid_skene.stream import StreamedVotes
from odeco.moments.crowd import CrowdMoments
from odeco.reduction.views import ViewComponents, recover_views
from odeco.refinement.dawid_skene import CrowdParameters, CrowdSums
from odeco.sources.votes import VoteBatch

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrowdSolution:
    """Parameters by moments, and what they came from (None for a start that is not one of moments)."""

    parameters: CrowdParameters
    components: ViewComponents | None = field(default=None, repr=False)
    clipped_mass: float = 0.0


def average_solutions(solutions: tuple[CrowdSolution, ...], counts: Floats) -> CrowdSolution:
    """The mean of the estimates of several groupings, classes matched with those of the first; its spectra."""
    first = solutions[0]
    weights, confusions = [], []
    flat = _weighted(first.parameters.confusion, counts)
    for solution in solutions:
        other = _weighted(solution.parameters.confusion, counts)
        order = linear_sum_assignment(-flat @ other.T)[1]
        weights.append(solution.parameters.weights[order])
        confusions.append(solution.parameters.confusion[:, order])
    mean = CrowdParameters(np.mean(weights, axis=0), np.mean(confusions, axis=0))
    return replace(first, parameters=mean)


def _weighted(confusion: Floats, counts: Floats) -> Floats:
    """Confusions as one centred row per class, workers with many labels louder."""
    centred = confusion - confusion.mean(axis=1, keepdims=True)
    scaled = np.sqrt(counts)[:, None, None] * centred
    return np.asarray(scaled.transpose(1, 0, 2).reshape(confusion.shape[1], -1))


def solve_crowd(
    moments: CrowdMoments,
    n_classes: int,
    rng: np.random.Generator,
    *,
    smoothing: float,
    method: Decomposer,
    polish: bool,
) -> CrowdSolution:
    """Class probabilities and confusions from the moments of one grouping.

    Worker w of group g is independent of the other two groups given the class, so votes weighed by their functionals
    count how he labels each class.
    """
    if len(moments.groups) < 3:
        raise MomentError(f"there are {len(moments.groups)} annotators, and three views need three of them at least.")
    views, maps = moments.read()
    found = recover_views(views, n_classes, rng, method=method, polish=polish)
    functionals = [[f @ m.T for f, m in zip(parts, maps, strict=True)] for parts in found.functionals]
    sums = moments.worker_sums(functionals, found.offsets).transpose(0, 2, 1)
    counts = moments.label_counts.sum(axis=1)[:, None, None]
    positive = np.maximum(sums, 0.0)
    totals = positive.sum(axis=2, keepdims=True)
    shares = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), 1.0 / sums.shape[2])
    confusion = (counts * shares + smoothing) / (counts + smoothing * sums.shape[2])
    clipped = float((positive - sums).sum() / max(positive.sum(), 1e-300))
    return CrowdSolution(CrowdParameters(found.weights, confusion), found, clipped)


class CrowdLook(StreamedVotes):
    """The first sums over the votes: moments of every grouping of the workers, and items that nobody labelled."""

    _sums: ClassVar[tuple[str, ...]] = (*StreamedVotes._sums, "n_empty")
    _by_threads: ClassVar[bool] = True

    def __init__(self, groups: tuple[NDArray[np.intp], ...], n_labels: int) -> None:
        super().__init__(groups, n_labels)
        self.n_empty = 0

    def update(self, batch: VoteBatch) -> Self:
        """Add the items of a batch."""
        self.n_empty += int(np.count_nonzero(np.diff(batch.votes.indptr) == 0))
        return super().update(batch)

    def merge(self, other: Self) -> Self:
        self.n_empty += other.n_empty
        return super().merge(other)


class MajorityVotes(CrowdSums):
    """Items whose classes are their votes, the usual start of EM: shares of the labels that are classes among an item's
    own. `label_counts` (W, L) are those of all votes: with fewer classes than labels, the most frequent are classes.
    """

    def __init__(self, shape: tuple[int, int, int], label_counts: Floats, smoothing: float) -> None:
        super().__init__(1, shape)
        kept = np.sort(np.argsort(-label_counts.sum(axis=0), kind="stable")[: shape[1]])
        self._share = smoothing / shape[1]
        self._total = sparse.csr_array(np.tile(np.eye(shape[2])[:, kept], (shape[0], 1)))

    def update(self, batch: VoteBatch) -> None:
        """Add the items of a batch."""
        shares = np.asarray((batch.votes @ self._total).todense()) + self._share
        shares *= (batch.row_weights() / shares.sum(axis=1))[:, None]
        self.add(batch.votes, shares[:, None])


@dataclass(frozen=True, eq=False)
class Alignment:
    """Classes in the order of the labels that name them.

    Attributes
    ----------
    order : (k,)
        The class that comes i-th.
    labels : (k,)
        Number of the label that names it, ascending.
    diagonal : (k,)
        Share of all votes for items of the class that give its own label.
    doubtful : tuple of (class, label)
        Classes, in the new order, that are given another label more often than their own.
    """

    order: NDArray[np.intp]
    labels: NDArray[np.intp]
    diagonal: Floats
    doubtful: tuple[tuple[int, int], ...]


def align_classes(confusion: Floats, counts: Floats) -> Alignment:
    """Which class is which label, by diagonal dominance: the one-to-one naming under which most votes are right.

    The likelihood is the same for every order of the classes; only the belief that the crowd is right more often than
    wrong tells them apart. Confusions of the workers are averaged with their numbers of labels (W,) as weights.
    """
    average = np.einsum("w,wil->il", counts / max(counts.sum(), 1e-300), confusion)
    classes, labels = linear_sum_assignment(-average)
    by_label = np.argsort(labels, kind="stable")
    order, names = classes[by_label], labels[by_label]
    ordered = average[order]
    own = ordered[np.arange(len(order)), names]
    best = ordered.argmax(axis=1)
    doubtful = tuple((i, int(best[i])) for i in range(len(order)) if best[i] != names[i])
    return Alignment(order, names, own, doubtful)
