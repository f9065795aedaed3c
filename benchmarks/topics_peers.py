"""Latent Dirichlet allocation by odeco and by its peers, all called the same way and with the same threads."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import harness
from odeco.models.lda.estimator import LatentDirichletAllocation

THREADS = min(2, harness.cores())  # for everyone
ETA = 0.01  # Dirichlet parameter of words in topics, for the peers


@dataclass(frozen=True)
class Fit:
    """Topics (k, d), the seconds they took, those it took to hand the documents over, and the sweeps of odeco."""

    topics: Any
    seconds: float
    preparation: float = 0.0
    sweeps: int = 0


def fit_odeco(counts: Any, k: int, seed: int = 0, *, one_pass: bool = False, **options: Any) -> Fit:
    model = LatentDirichletAllocation(k, random_state=seed, **options)
    spent = harness.once(lambda: model.partial_fit(counts) if one_pass else model.fit(counts))
    return Fit(model.components_, spent, sweeps=model.n_iter_)


def fit_tomotopy(
    counts: Any, k: int, alpha: float, iterations: int, seed: int = 0, *, optimize: bool = True, workers: int = THREADS
) -> Fit:
    """Collapsed Gibbs sampling; by default it optimises alpha on the way."""
    import tomotopy as tp

    begin = time.perf_counter()
    model = tp.LDAModel(k=k, alpha=alpha, eta=ETA, seed=seed)
    if not optimize:
        model.optim_interval = 0
    names = np.array([str(word) for word in range(counts.shape[1])], dtype=object)
    words = names[np.repeat(counts.indices, counts.data.astype(int))]
    ends = np.cumsum(np.asarray(counts.sum(axis=1)).ravel().astype(int))
    for start, stop in pairwise([0, *ends]):
        if stop > start:
            model.add_doc(words[start:stop].tolist())
    preparation = time.perf_counter() - begin
    spent = harness.once(lambda: model.train(iterations, workers=workers))
    found = np.array([model.get_topic_word_dist(topic) for topic in range(k)])
    # Words that no document has are given what the others have without any count.
    topics = np.repeat(found.min(axis=1, keepdims=True), counts.shape[1], axis=1)
    topics[:, [int(name) for name in model.used_vocabs]] = found
    return Fit(topics / topics.sum(axis=1, keepdims=True), spent, preparation)


def fit_sklearn(counts: Any, k: int, alpha: float, eta: float | None, epochs: int, seed: int = 0) -> Fit:
    """Online variational Bayes."""
    from sklearn.decomposition import LatentDirichletAllocation as Peer

    model = Peer(
        k, doc_topic_prior=alpha, topic_word_prior=eta, learning_method="online", max_iter=epochs, n_jobs=THREADS,
        random_state=seed,
    )  # fmt: skip
    spent = harness.once(lambda: model.fit(counts))
    return Fit(model.components_ / model.components_.sum(axis=1, keepdims=True), spent)


def fit_gensim(counts: Any, k: int, alpha: float, eta: float | None, passes: int, seed: int = 0) -> Fit:
    """Online variational Bayes, in processes."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaMulticore
    from gensim.utils import FakeDict

    begin = time.perf_counter()
    corpus = list(Sparse2Corpus(sparse.csc_matrix(counts.T)))
    preparation = time.perf_counter() - begin
    models: list[Any] = []
    options = {"num_topics": k, "alpha": np.full(k, alpha, dtype=np.float32), "eta": eta, "passes": passes}
    names = FakeDict(counts.shape[1])
    spent = harness.once(
        lambda: models.append(LdaMulticore(corpus, id2word=names, workers=THREADS, random_state=seed, **options))
    )
    return Fit(models[0].get_topics(), spent, preparation)
