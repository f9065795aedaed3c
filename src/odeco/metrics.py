"""How far an estimate is from the truth when components come in any order, and how well the words of topics agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.tensors.algebra import Floats


@dataclass(frozen=True)
class Matching:
    """Estimated components matched one to one with true ones.

    Attributes
    ----------
    permutation : (m,) int
        ``estimate[:, permutation[i]]`` belongs to the i-th matched true component.
    matched : (m,) int
        The true components that have a partner: all of them, unless there are fewer estimates.
    signs : (m,)
        -1 where an estimate has to be turned (always +1 unless asked for).
    errors : (m,)
        Euclidean distances after matching.
    """

    permutation: NDArray[np.intp]
    matched: NDArray[np.intp]
    signs: Floats
    errors: Floats

    @property
    def largest(self) -> float:
        """The largest of the errors."""
        return float(self.errors.max(initial=0.0))


def match_components(estimate: ArrayLike, truth: ArrayLike, *, up_to_sign: bool = False) -> Matching:
    """Match the columns of `estimate` (n, r) with those of `truth` (n, k), with the least sum of squared distances.

    Parameters
    ----------
    up_to_sign : bool
        Count v and -v as the same, as for eigenvectors of order 4 tensors.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    found, true = np.asarray(estimate, dtype=float), np.asarray(truth, dtype=float)
    if found.ndim != 2 or true.ndim != 2 or found.shape[0] != true.shape[0]:
        raise ValueError(
            f"estimate and truth must hold components in columns of the same length, got shapes {found.shape} and "
            f"{true.shape}."
        )
    inner = true.T @ found
    signs = np.where(inner < 0, -1.0, 1.0) if up_to_sign else np.ones_like(inner)
    squares = np.sum(true**2, axis=0)[:, None] + np.sum(found**2, axis=0) - 2 * signs * inner
    rows, columns = linear_sum_assignment(squares)
    chosen = signs[rows, columns]
    # From the differences themselves: the expanded squares lose half the digits.
    errors = np.linalg.norm(true[:, rows] - found[:, columns] * chosen, axis=0)
    return Matching(columns, rows, chosen, errors)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Components of two models matched one to one by the rows that belong to them.

    Attributes
    ----------
    first, second : (m,) int
        Pairs of components, those that share most first.
    shared : (m,)
        What two components have in common, as a share of what they have together: 1 for the same rows, 0 for none.
    alone : two tuples of int
        Components of each model without a partner.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    shared: Floats
    alone: tuple[tuple[int, ...], tuple[int, ...]]


def match_memberships(first: ArrayLike, second: ArrayLike) -> Overlap:
    """Match the components of two models by what they say of the same rows, with the largest sum of shared rows.

    Parameters
    ----------
    first, second : (n, k) and (n, l)
        Shares of the components in each row: `predict_proba` or `transform` of two models on the same data. The models
        may differ in everything, their number of components, kind and columns included.

    Examples
    --------
    >>> from odeco.metrics import match_memberships
    >>> found = match_memberships([[1, 0], [1, 0], [0, 1], [0, 1]], [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    >>> found.first.tolist(), found.second.tolist(), found.shared.tolist(), found.alone
    ([0, 1], [1, 0], [1.0, 0.5], ((), (2,)))
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.ndim != 2 or other.ndim != 2 or len(one) != len(other) or not len(one):
        raise ValueError(
            f"first and second must hold the shares of components in the same rows, got shapes {one.shape} and "
            f"{other.shape}."
        )
    both = np.array([np.minimum(column[:, None], other).sum(axis=0) for column in one.T])
    either = one.sum(axis=0)[:, None] + other.sum(axis=0) - both
    shared = both / np.where(either > 0, either, 1.0)
    rows, columns = linear_sum_assignment(-shared)
    order = np.argsort(-shared[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    alone = [
        tuple(sorted(set(range(n)) - set(used.tolist()))) for n, used in zip(shared.shape, (rows, columns), strict=True)
    ]
    return Overlap(rows, columns, shared[rows, columns], (alone[0], alone[1]))


def amari(components: ArrayLike, mixing: ArrayLike) -> float:
    """The distance of ``components @ mixing`` from a scaled permutation, 0 for one and at most 1 (Amari et al. 1996).

    Parameters
    ----------
    components : (k, d)
        Estimated unmixing matrix.
    mixing : (d, k)
        True mixing matrix.
    """
    rows, columns = np.asarray(components, dtype=float), np.asarray(mixing, dtype=float)
    if rows.ndim != 2 or columns.ndim != 2 or rows.shape != columns.shape[::-1] or rows.size == 0:
        raise ValueError(
            f"components (k, d) and mixing (d, k) must fit each other, got shapes {rows.shape} and {columns.shape}."
        )
    gain = np.abs(rows @ columns)
    k = len(gain)
    if not (np.isfinite(gain).all() and gain.max(axis=0).all() and gain.max(axis=1).all()):
        raise ValueError("components @ mixing has a zero row or column, NaN or infinity: the distance is not defined.")
    if k == 1:
        return 0.0
    excess = (gain / gain.max(axis=1, keepdims=True)).sum() + (gain / gain.max(axis=0)).sum() - 2 * k
    return float(excess / (2 * k * (k - 1)))


def topic_coherence(topics: ArrayLike, counts: Any, *, n_words: int = 10) -> Floats:
    """How well the most probable words of each topic go together in documents: NPMI averaged over pairs, (k,).

    Of two words that stand in shares p and q of the documents, and together in r of them, it is
    ``log(r / (p q)) / -log(r)`` (Bouma 2009): 1 where they always come together, 0 where they meet as by chance, -1
    where they never do. Documents that the topics were not fitted to make it a fair measure; long ones make every pair
    meet, so give passages rather than books. A word that no document has says nothing, and its pairs are left out; a
    topic without any pair has NaN.

    Parameters
    ----------
    topics : (k, d)
        Probabilities of the words in each topic, ``model.components_``, of any library.
    counts : (n, d), sparse or dense, or an iterable of such batches
        How often each word stands in each document; whether it does is all that matters.
    n_words : int
        The most probable words of each topic that are looked at.

    Examples
    --------
    >>> from odeco.metrics import topic_coherence
    >>> counts = [[2, 1, 0, 0], [1, 1, 0, 1], [0, 0, 3, 1], [0, 0, 1, 0]]
    >>> topic_coherence([[0.6, 0.4, 0, 0], [0, 0.5, 0.5, 0]], counts, n_words=2)
    array([ 1., -1.])
    """
    found = np.asarray(topics, dtype=float)
    if found.ndim != 2 or isinstance(n_words, bool) or not isinstance(n_words, (int, np.integer)) or n_words < 2:
        raise ValueError(
            f"topics must be (topics, words) and n_words a whole number of at least 2, got shape {found.shape} and "
            f"n_words={n_words!r}."
        )
    best = np.argsort(-found, axis=1, kind="stable")[:, :n_words]
    used = np.unique(best)
    together, n_documents = np.zeros((used.size, used.size)), 0
    for batch in _batches(counts):
        if batch.shape[1] != found.shape[1]:
            raise ValueError(f"counts has {batch.shape[1]} columns, and topics are over {found.shape[1]} words.")
        present = (batch[:, used] > 0).astype(float)
        together += (present.T @ present).toarray()
        n_documents += batch.shape[0]
    if not n_documents:
        raise ValueError("counts holds no documents: give at least one.")
    values = _pairwise_npmi(together / n_documents)
    return np.array([_mean_of_pairs(values[np.ix_(places, places)]) for places in np.searchsorted(used, best)])


def _batches(counts: Any) -> Iterable[Any]:
    """Batches of counts as sparse rows."""
    from scipy import sparse  # slow to import

    whole = sparse.issparse(counts) or hasattr(counts, "__array__") or isinstance(counts, (list, tuple))
    if isinstance(counts, (list, tuple)) and counts and (sparse.issparse(counts[0]) or np.ndim(counts[0]) == 2):
        whole = False
    return (sparse.csr_array(batch) for batch in ([counts] if whole else counts))


def _pairwise_npmi(together: Floats) -> Floats:
    """NPMI of all pairs of words, from the shares of the documents that hold both; NaN for words that none holds."""
    alone = np.diagonal(together)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(together / np.outer(alone, alone)) / -np.log(together)
    values = np.where(together == 1, 0.0, np.where(together == 0, -1.0, values))  # in all documents: as by chance
    return np.where(np.outer(alone, alone) > 0, values, np.nan)


def _mean_of_pairs(values: Floats) -> float:
    pairs = values[np.triu_indices(len(values), 1)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if known.size else float("nan")
