"""Documents and the sums over their words that a sweep collects, in blocks that do not depend on the threads.

The rows are cut into fixed blocks, each with sums of its own that are added in order: any number of threads gives the
same result bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels.threads import balanced_parts, map_parts

Floats = NDArray[np.floating]

_FEW_TOPICS = 12
_MOST_IN_REGISTERS = 64
# Sums of one block take as long to clear and add as this many nonzeros take per word of the vocabulary.
_NONZEROS_PER_WORD = 4
_MOST_BLOCKS = 32
_MOST_BYTES = 128 * 2**20
# A topic that pads the rows to full vectors: its prior is too small to be seen and large enough to divide by.
_PADDING_PRIOR = 1e-30


def padded_width(n_topics: int) -> int:
    """Columns to use for `n_topics`: half cache lines; none of very few topics, two lines of many.

    A fit of 20 topics takes 10 % less with 24 columns than with 32, and 6 % less than with 20. Loops over more than 64
    know how many registers a row takes only for some numbers of them.
    """
    if n_topics < _FEW_TOPICS:
        return n_topics
    step = 8 if n_topics <= _MOST_IN_REGISTERS else 32
    return -(-n_topics // step) * step


def pad_topics(topics: Floats, dtype: type[np.floating]) -> Floats:
    """Topics (k, d) as the kernels want them: word by word, (d, width)."""
    n_topics, n_words = topics.shape
    out = np.zeros((n_words, padded_width(n_topics)), dtype=dtype)
    out[:, :n_topics] = topics.T
    return out


def pad_prior(alpha: Floats, dtype: type[np.floating]) -> Floats:
    """Prior (k,) on the padded width."""
    out = np.full(padded_width(alpha.size), _PADDING_PRIOR, dtype=dtype)
    out[: alpha.size] = alpha
    return out


class Workspace:
    """Room for the sums of the blocks, shared by all batches of a refinement."""

    def __init__(self) -> None:
        self._room = np.empty(0, dtype=np.uint8)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Floats:
        """An array of this shape with arbitrary contents, good until the next call."""
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        if self._room.size < n_bytes:
            self._room = np.empty(n_bytes, dtype=np.uint8)
        return self._room[:n_bytes].view(dtype).reshape(shape)


class Documents:
    """Rows of counts with what the sweeps remember of each: expected counts of its topics and their spread.

    Attributes
    ----------
    weights : (n,)
        How often each document counts.
    n_tokens : float
        Words of all documents, by these weights.
    strengths : (n, width)
        Expected number of words of each topic in each document.
    spreads : (n, width)
        sum_w c_w r_w (1 - r_w) over its words.
    """

    def __init__(
        self, counts: sparse.csr_array, width: int, dtype: type[np.floating], workspace: Workspace,
        weights: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        self.indptr = counts.indptr.astype(np.int64, copy=False)
        self.columns = counts.indices.astype(np.int32, copy=False)
        self.values = counts.data.astype(dtype, copy=False)
        self.n_words = int(counts.shape[1])
        # From equal shares: a variational weight at a tiny prior alone would be 0 in single precision.
        lengths = np.asarray(counts.sum(axis=1, dtype=np.float64)).reshape(-1, 1)
        self.weights = np.ones(len(lengths), dtype) if weights is None else weights.astype(dtype)
        self.n_tokens = float(self.weights @ lengths.ravel())
        self.strengths = np.repeat((lengths / width).astype(dtype), width, axis=1)
        self.spreads = np.zeros_like(self.strengths)
        n_blocks = min(
            max(counts.nnz // (_NONZEROS_PER_WORD * max(self.n_words, 1)), 2),
            max(_MOST_BYTES // max(self.n_words * width * np.dtype(dtype).itemsize, 1), 2),
            _MOST_BLOCKS,
        )
        self._bounds = balanced_parts(self.indptr, int(n_blocks)).tolist()
        self._cuts = np.linspace(0, self.n_words, len(self._bounds)).astype(int).tolist()
        self._workspace = workspace

    def em(
        self, topics: Floats, alpha: Floats, n_iter: int, *, variational: bool = False, add_to: Floats | None = None
    ) -> tuple[Floats, float]:
        """EM (or variational) steps for the proportions; word counts of the last (or those they are added to), and the
        likelihood before it.
        """
        from odeco.kernels.topics import em_rows

        words = np.ascontiguousarray(topics)

        def work(start: int, stop: int, sums: Floats) -> float:
            return em_rows(
                *self._csr, words, alpha, start, stop, n_iter, variational, self.weights, self.strengths, sums
            )

        return self._collect(work, add_to)

    def infer(self, topics: Floats, alpha: Floats, n_iter: int) -> None:
        """EM steps for the proportions alone."""
        from odeco.kernels.topics import infer_steps

        map_parts(
            lambda index: infer_steps(*self._csr, topics, alpha, *self._block(index), n_iter, self.strengths),
            len(self._bounds) - 1,
        )

    def cvb0(
        self, topics: Floats, own_word: Floats, alpha: Floats, n_iter: int, *, echo: bool, n_em: int = 0,
        add_to: Floats | None = None,
    ) -> Floats:  # fmt: skip
        """Steps of EM, then of CVB0 with the echo of a word's own counts left out or not; word counts of the last, or
        those they are added to.
        """
        from odeco.kernels.topics import cvb0_rows

        def work(start: int, stop: int, sums: Floats) -> float:
            cvb0_rows(
                *self._csr, topics, own_word, alpha, start, stop, n_em, n_iter, echo, self.weights, self.strengths,
                self.spreads, sums,
            )  # fmt: skip
            return 0.0

        return self._collect(work, add_to)[0]

    @property
    def _csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
        return self.indptr, self.columns, self.values

    def _block(self, index: int) -> tuple[int, int]:
        return self._bounds[index], self._bounds[index + 1]

    def _collect(self, work: Callable[[int, int, Floats], float], add_to: Floats | None = None) -> tuple[Floats, float]:
        """Run ``work(start, stop, sums)`` on every block; the sums (d, width), or what they are added to, and the total
        of what it returns.
        """
        n_blocks = len(self._bounds) - 1
        sums = self._workspace.take((n_blocks, self.n_words, self.strengths.shape[1]), self.values.dtype)
        merged = np.empty(sums.shape[1:], sums.dtype) if add_to is None else add_to

        def block(index: int) -> float:
            sums[index] = 0
            return work(*self._block(index), sums[index])

        def merge(index: int) -> None:
            words = slice(self._cuts[index], self._cuts[index + 1])
            first = sums[0, words] if add_to is None else np.add(merged[words], sums[0, words], out=merged[words])
            for others in sums[1:, words]:
                first = np.add(first, others, out=merged[words])

        totals = map_parts(block, n_blocks)
        map_parts(merge, n_blocks)
        return merged, float(sum(totals))
