"""Latent Dirichlet allocation refined from a good start: CVB0 by default, variational Bayes and MAP-EM by name.

CVB0 (collapsed variational Bayes of order zero) judges a word by counts that leave its own counts out; here the echo of
these counts in the document's other words is left out too (`odeco.kernels.topics.cvb0_rows`), and at the end held-out
words say whether to go on without that. On real text this gave better topics than plain CVB0, variational Bayes and
MAP-EM; where the vocabulary is small and topics share most of it, variational Bayes is the best of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco._random import RandomState, as_generator
from odeco.refinement.documents import Documents, Workspace, pad_prior
from odeco.refinement.held_out import WatchedWords, watched_rows
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.refinement.objectives import map_terms, map_topics, variational_terms, variational_topics
from odeco.refinement.priors import estimate_alpha, sample_documents
from odeco.refinement.streams import FirstWindow, HeldBack, StreamedSweeps, StridedBatches, Windows, mixed_start
from odeco.sources import Batch, as_batch
from odeco.sources.partitions import PartitionedCounts

Floats = NDArray[np.float64]

METHODS = ("cvb0", "vb", "map")
_WARM_UP = 5  # steps for the proportions under the topics of the start


@dataclass(frozen=True, eq=False)
class LDARefinement:
    """Topics and priors after refinement.

    Attributes
    ----------
    topics : (k, d)
        Word probabilities, rows on the simplex.
    alpha : (k,)
        Dirichlet parameters of the proportions: those given, or estimated for the refined topics.
    eta : float
        Pseudo-count of each word in each topic: the one given, or the best for held-out words.
    method : str
    trace : Trace
        For "vb" and "map" the objective per word before each sweep, else the mean log probability of a held-out word.
    """

    topics: Floats = field(repr=False)
    alpha: Floats = field(repr=False)
    eta: float
    method: str
    trace: Trace = field(repr=False)

    @property
    def n_iter(self) -> int:
        """Sweeps over the documents."""
        return self.trace.n_iter


@dataclass(frozen=True, eq=False)
class TopicState:
    """What the loop carries: expected counts of words in topics (d, width), and how they are smoothed and found."""

    word_counts: NDArray[np.floating]
    eta: float
    echo: bool = True


def refine_lda(
    counts: sparse.csr_array | Batch | Iterable[Batch],
    topics: ArrayLike,
    alpha: ArrayLike | None = None,
    *,
    method: str = "cvb0",
    eta: float = 0.05,
    max_iter: int = 15,
    tol: float = 4e-3,
    optimize_prior: bool = True,
    memory_budget: int = 512 * 2**20,
    random_state: RandomState = None,
) -> LDARefinement:
    """Refine topics by sweeps over the documents.

    Parameters
    ----------
    counts : CSR array (n, d), Batch, or batches that can be iterated over again and again
        Canonical float counts, with weights of the documents where a Batch has them. A matrix is cut into batches
        itself, and the proportions of its documents are remembered from pass to pass where they fit `memory_budget`;
        of batches that are given nothing is kept. "vb" and "map" keep the proportions of all documents of a matrix, so
        that their objectives can be seen.
    topics : (k, d)
        Where to start.
    alpha : (k,), optional
        Prior of the proportions during the sweeps; 1/k each by default, which is the better choice on real text.
    method : {"cvb0", "vb", "map"}
        "vb" is plain variational Bayes, "map" EM for the posterior mode.
    eta : float
        Pseudo-count of each word in each topic.
    max_iter, tol : int, float
        Passes over the documents at most, and gain, in nats per word, below which they end. CVB0 then goes on without
        leaving out the echo for as long as held-out words gain by it, which takes a pass to find out: a third of
        `max_iter` is set aside for this.
    optimize_prior : bool
        Estimate `alpha` for the refined topics, and choose `eta` by held-out words where these are watched.
    memory_budget : int
        Bytes.
    random_state : int, Generator, RandomState or None
        For the held-out words and the estimate of alpha.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}.")
    if not 0 < eta < np.inf:
        raise ValueError(f"eta must be a positive number, got {eta!r}.")
    start = np.asarray(topics, dtype=np.float64)
    k = len(start)
    prior = np.full(k, 1.0 / k) if alpha is None else np.asarray(alpha, dtype=np.float64)
    if prior.shape != (k,) or not np.all((prior > 0) & np.isfinite(prior)):
        raise ValueError(f"alpha must be {k} positive numbers, one per topic, got {alpha!r}.")
    rng, rule = as_generator(random_state), StoppingRule(max_iter, tol)
    given = as_batch(counts) if sparse.issparse(counts) else counts
    if isinstance(given, Batch) and method != "cvb0":
        return _climbed(given, start, prior, method, eta, rule, optimize_prior, rng)
    return _streamed(given, start, prior, method, eta, rule, optimize_prior, memory_budget, rng)


def _climbed(
    batch: Batch, start: Floats, prior: Floats, method: str, eta: float, rule: StoppingRule, optimize: bool,
    rng: np.random.Generator,
) -> LDARefinement:  # fmt: skip
    """Variational Bayes or MAP-EM over documents in memory, in double precision, watched by its objective."""
    variational = method == "vb"
    terms, as_topics = (variational_terms, variational_topics) if variational else (map_terms, map_topics)
    documents = Documents(batch.counts, prior.size, np.float64, Workspace(), batch.weights)
    words = np.ascontiguousarray(mixed_start(start, batch.row_weights() @ batch.counts).T)
    word_counts, _ = documents.em(words, prior, _WARM_UP, variational=variational)

    def step(state: TopicState, iteration: int) -> tuple[TopicState, float]:
        current = np.asarray(state.word_counts, dtype=np.float64)
        rest = terms(documents.strengths, prior, batch.lengths, documents.weights, current, eta)
        found, likelihood = documents.em(as_topics(current, eta), prior, 1, variational=variational)
        return replace(state, word_counts=found), (likelihood + rest) / max(documents.n_tokens, 1.0)

    refined = run_refinement(step, TopicState(word_counts, eta), rule)
    sample = sample_documents(batch, rng) if optimize else None
    return finished(refined.state, prior, method, refined.trace, sample, rng)


def _streamed(
    given: Batch | Iterable[Batch], start: Floats, prior: Floats, method: str, eta: float, rule: StoppingRule,
    optimize: bool, memory_budget: int, rng: np.random.Generator,
) -> LDARefinement:  # fmt: skip
    """Any method batch by batch, watched by held-out words."""
    alpha, workspace = pad_prior(prior, np.float32), Workspace()
    # What there is to hold some out of.
    known = _known(given)
    held_out = watched_rows(len(known), rng)
    monitor = WatchedWords(known.take(held_out).counts, alpha, rng, workspace) if held_out.any() else None
    batches, remember = _batches(given, held_out, alpha.size, memory_budget)
    # Sources elsewhere keep each of their passes themselves.
    keeper = None if isinstance(given, PartitionedCounts) else getattr(given, "checkpoint", None)
    sweeps = StreamedSweeps(batches, start, alpha, method, workspace, remember=remember, checkpoint=keeper)

    def step(state: TopicState, iteration: int) -> tuple[TopicState, float | None]:
        state = replace(state, word_counts=sweeps.sweep(state.word_counts, state.eta, echo=state.echo))
        if monitor is None:
            return state, None
        look = monitor.look(state.word_counts, state.eta, choose_eta=optimize)
        return replace(state, eta=look.eta), look.value

    two_stages = method == "cvb0" and monitor is not None
    most = max(2 * rule.max_iter // 3, 1) if two_stages else rule.max_iter
    blank = TopicState(np.zeros((start.shape[1], alpha.size), np.float32), eta)
    # The second pass may lose what the first has gained: the start no longer holds the topics apart.
    first = run_refinement(step, blank, replace(rule, max_iter=most, patience=2))
    state, trace = first.state, first.trace
    if two_stages and rule.max_iter > trace.n_iter:
        finer = replace(rule, max_iter=rule.max_iter - trace.n_iter, tol=rule.tol / 20)
        second = run_refinement(step, replace(state, echo=False), finer, value=trace.best)
        state, trace = second.state, trace.then(second.trace)
    if monitor is not None:  # once all is decided, the words that were held out count too
        found = sweeps.add(state.word_counts, state.eta, known.take(held_out), echo=state.echo)
        state = replace(state, word_counts=found)
    return finished(state, prior, method, trace, sample_documents(known, rng) if optimize else None, rng)


def _known(given: Batch | Iterable[Batch]) -> Batch | FirstWindow:
    """The documents to hold some out of, and to estimate priors from."""
    if isinstance(given, Batch):
        return given
    if isinstance(given, PartitionedCounts):
        return FirstWindow(given)
    known = next(iter(given), None)
    if known is None:
        raise ValueError("counts has no batches: give at least one.")
    return known


def _batches(
    given: Batch | Iterable[Batch], held_out: NDArray[np.bool_], width: int, memory_budget: int
) -> tuple[Iterable[Batch | PartitionedCounts], bool]:
    """What the sweeps go over, and whether they remember it."""
    if isinstance(given, Batch):
        rest = given.take(~held_out) if held_out.any() else given
        remember = 8 * (len(given) * width + given.counts.nnz) <= memory_budget
        return StridedBatches(rest, width, memory_budget), remember
    if isinstance(given, PartitionedCounts):
        return Windows(given, held_out), False
    return HeldBack(given, held_out), False


def finished(
    state: TopicState, alpha: Floats, method: str, trace: Trace, sample: sparse.csr_array | None,
    rng: np.random.Generator,
) -> LDARefinement:  # fmt: skip
    """The result: topics on the simplex, and alpha estimated from the sample where there is one."""
    rows = state.word_counts[:, : alpha.size].T.astype(np.float64) + state.eta
    topics = np.asarray(rows / rows.sum(axis=1, keepdims=True))
    prior = np.array(alpha) if sample is None else estimate_alpha(sample, topics, alpha, rng)
    return LDARefinement(topics, prior, state.eta, method, trace)
