"""Loops over the words of documents by themselves, with all they need in cache: what binds a sweep of CVB0.

The numbers of topics show what is lost where a row of topics does not fill the registers that hold it, and the time
that does not grow with them what the sums across a register and the divisions of each word cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from odeco import simulate
from odeco.kernels.topics import cvb0_rows

# A word and topic in a step of CVB0: products, own counts and their sums 6, quotient and sum 5, share and its sums 5.
CVB0_FLOPS = 16
TOPICS = (4, 8, 16, 20, 32, 48, 64)
WORDS = 500  # of the vocabulary: rows of 64 topics are 128 kB, and stay in the second-level cache


def document_loops(quick: bool) -> list[dict[str, Any]]:
    """Nanoseconds of one word in one step, and flops, by the number of topics; one thread."""
    topics = simulate.zipf_topics(4, WORDS, random_state=0)
    counts = simulate.lda_documents(50 if quick else 500, topics, np.full(4, 0.2), random_state=0).counts
    return [_steps(counts, k, n_em, n_cvb0) for k in TOPICS for n_em, n_cvb0 in ((20, 0), (0, 20))]


def _steps(counts: Any, k: int, n_em: int, n_cvb0: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n, single = counts.shape[0], np.float32
    topics, alpha = rng.dirichlet(np.ones(WORDS), k).T.astype(single, order="C"), np.full(k, 0.1, single)
    strengths, spreads, sums = np.ones((n, k), single), np.zeros((n, k), single), np.zeros((WORDS, k), single)
    csr = counts.indptr.astype(np.int64), counts.indices.astype(np.int32), counts.data.astype(single)

    def run() -> None:
        own, ones = np.full(k, 1e-4, single), np.ones(n, single)
        cvb0_rows(*csr, topics, own, alpha, 0, n, n_em, n_cvb0, True, ones, strengths, spreads, sums)

    seconds = min(_processor_time(run) for _ in range(15)) / counts.nnz / (n_em + n_cvb0)
    loop, flops = ("EM", 4) if n_em else ("CVB0", CVB0_FLOPS)
    return {"loop": loop, "topics": k, "seconds": seconds, "flops": flops * k}


def _processor_time(work: Callable[[], None]) -> float:
    """Seconds of one thread: a busy machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start
