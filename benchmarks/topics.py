"""`LatentDirichletAllocation` beside tomotopy, scikit-learn and gensim; its growth, memory and limits."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from benchmarks import harness, provenance
from benchmarks.provenance import Section
from benchmarks.topics_peers import ETA, THREADS, Fit, fit_gensim, fit_odeco, fit_sklearn, fit_tomotopy
from benchmarks.topics_tables import SUMMARIES, docs_tables, report
from odeco.completion import completion
from odeco.simulate import TopicSample, lda_documents, zipf_topics

__all__ = ["SUMMARIES", "docs_tables", "report", "run"]

ALPHA0 = 0.5
# With their numbers of topics. bible_kjv had no part in any choice of the method's constants.
CORPORA = {"debian": 50, "sotu": 30, "wordnet_glosses": 50, "spamassassin": 50, "bible_kjv": 30}
# The documents that are held out: constants of the method were chosen on those of seed 0.
SPLIT_SEED = 11
OURS = {
    "refine=None, alpha0 known": {"refine": None, "alpha0": ALPHA0},
    "refine=None": {"refine": None},
    "default": {},
}


@dataclass(frozen=True)
class Sizes:
    """What is measured; the result file keeps it beside the figures."""

    n: int = 20_000
    d: int = 5_000
    k: int = 20
    seeds: int = 5
    sklearn_seeds: int = 1
    tomotopy: tuple[int, int] = (50, 200)  # iterations
    sklearn_epochs: tuple[int, int] = (5, 3)  # on synthetic documents, on real ones
    gensim_passes: int = 3
    corpora: tuple[str, ...] = tuple(CORPORA)
    thin: int = 1
    real_seeds: int = 2  # of odeco and tomotopy
    growth: tuple[int, ...] = (1, 2, 4, 8, 16)  # millions of nonzeros, d = 2 d above
    streamed: tuple[int, int] = (150_000, 600_000)  # documents
    scale: tuple[int, int, int] = (700_000, 30_000, 100)  # documents, words, topics
    starts: tuple[int, ...] = (1, 5, 20)
    updates: tuple[int, ...] = (1, 3, 30)  # power steps of a start, and again of the best one
    basis: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000)


QUICK = Sizes(
    n=3_000, d=600, k=5, seeds=2, tomotopy=(10, 20), sklearn_epochs=(1, 1), gensim_passes=1, corpora=("sotu",), thin=4,
    real_seeds=1, growth=(1, 2), streamed=(100_000, 200_000), scale=(20_000, 2_000, 20), starts=(1, 3), updates=(1, 3),
    basis=(500, 1_000, 3_000),
)  # fmt: skip


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`; `quick` makes everything tiny."""
    sizes = QUICK if quick else Sizes()
    os.environ["ODECO_NUM_THREADS"] = str(THREADS)
    packages = ["numpy", "scipy", "scikit-learn", "tomotopy", "gensim"]
    if not os.environ.get("ODECO_DATA"):
        print("ODECO_DATA is not set: real text is left out.", file=sys.stderr)
    measurements = {name: partial(_timed, name, sizes) for name in SECTIONS}
    code, settings = provenance.code("topics"), asdict(sizes)
    with harness.threads(THREADS), quiet():
        return provenance.measure(measurements, only, packages, lambda name: code, settings=settings, quick=quick)


def _timed(name: str, sizes: Sizes) -> Any:
    """A section, and on standard error how long it took."""
    start = time.perf_counter()
    runs = SECTIONS[name](sizes)
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return runs


@contextmanager
def quiet() -> Iterator[None]:
    """Advice on the data and the peers' remarks are not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def draw(n: int, d: int, k: int, seed: int, mean_length: float = 60.0) -> TopicSample:
    """Zipfian topics, alpha of Dirichlet(5, .., 5) times alpha0, lengths Poisson."""
    rng = np.random.default_rng(seed)
    topics, alpha = zipf_topics(k, d, random_state=rng), rng.dirichlet(np.full(k, 5.0)) * ALPHA0
    return lda_documents(n, topics, alpha, mean_length=mean_length, random_state=rng)


def topic_error(topics: Any, truth: Any) -> float:
    """Mean L1 distance (0 to 2) of true topics from their partners, the best assignment."""
    distances = cdist(truth, topics, "cityblock")
    return float(distances[linear_sum_assignment(distances)].mean())


def synthetic(sizes: Sizes) -> list[dict[str, Any]]:
    """Documents of the model itself: error of the topics and seconds."""
    warm_up = draw(sizes.n, sizes.d, sizes.k, sizes.seeds).counts
    for options in OURS.values():
        fit_odeco(warm_up, sizes.k, **options)
    fits: dict[str, list[tuple[float, float]]] = {}
    for seed in range(sizes.seeds):
        sample = draw(sizes.n, sizes.d, sizes.k, seed)
        for name, function in _contenders(sample.counts, sizes, seed).items():
            fit = function()
            fits.setdefault(name, []).append((topic_error(fit.topics, sample.topics), fit.seconds))
    return [
        {"name": name, "seeds": len(rows), "errors": [e for e, _ in rows], "seconds": [s for _, s in rows]}
        for name, rows in fits.items()
    ]


def _contenders(counts: Any, sizes: Sizes, seed: int) -> dict[str, Callable[[], Fit]]:
    """Who fits the documents of a seed; scikit-learn, which is slow, those of the first seeds alone."""
    k, alpha, epochs = sizes.k, ALPHA0 / sizes.k, sizes.sklearn_epochs[0]
    fits: dict[str, Callable[[], Fit]] = {
        f"odeco, {name}": partial(fit_odeco, counts, k, seed, **options) for name, options in OURS.items()
    }
    for iterations in sizes.tomotopy:
        fits[f"tomotopy, {iterations} iterations"] = partial(fit_tomotopy, counts, k, alpha, iterations, seed)
    if seed < sizes.sklearn_seeds:
        fits[f"scikit-learn, {epochs} epochs"] = partial(fit_sklearn, counts, k, alpha, ETA, epochs, seed)
    return fits


def load(name: str) -> Any:
    """Counts of a real corpus, or None where ODECO_DATA does not say where they are."""
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        return None
    with np.load(Path(folder) / f"{name}.npz") as data:
        parts = (data["counts_data"].astype(np.float32), data["counts_indices"], data["counts_indptr"])
        return sparse.csr_array(parts, shape=tuple(data["counts_shape"]))


@dataclass(frozen=True)
class Corpus:
    """Real documents, a tenth of them held out."""

    name: str
    k: int
    train: Any
    test: Any

    def scored(self, fit: Fit) -> dict[str, float]:
        perplexity = completion(self.test, fit.topics).perplexity
        return {"perplexity": perplexity, "seconds": fit.seconds, "preparation": fit.preparation}


def read_corpora(sizes: Sizes) -> Iterator[Corpus]:
    """The corpora that there are, one after the other."""
    for name in sizes.corpora:
        counts = load(name)
        if counts is not None:
            counts = counts[:: sizes.thin]
            n = counts.shape[0]
            held_out, training = np.split(np.random.default_rng(SPLIT_SEED).permutation(n), [n // 10])
            yield Corpus(name, CORPORA[name], counts[np.sort(training)], counts[np.sort(held_out)])


def real(sizes: Sizes) -> list[dict[str, Any]]:
    """Perplexity of a tenth of the documents by completion, one scorer for all, and seconds: odeco and tomotopy."""
    return [_real(corpus, sizes) for corpus in read_corpora(sizes)]


def _real(corpus: Corpus, sizes: Sizes) -> dict[str, Any]:
    k, train, test, scored = corpus.k, corpus.train, corpus.test, corpus.scored
    seeds, iterations = range(sizes.real_seeds), sizes.tomotopy[1]
    fit_odeco(train, k)  # warms up
    return {
        "corpus": corpus.name,
        "k": k,
        "n": train.shape[0],
        "nonzeros": train.nnz,
        "unigram": completion(test, train.sum(axis=0)[None, :]).perplexity,
        "odeco": [scored(fit_odeco(train, k, seed)) for seed in seeds],
        "odeco, refine=None": [scored(fit_odeco(train, k, seed, refine=None)) for seed in seeds],
        "tomotopy": [scored(fit_tomotopy(train, k, 1 / k, iterations, seed)) for seed in seeds],
        "tomotopy, alpha fixed": [scored(fit_tomotopy(train, k, 1 / k, iterations, optimize=False))],
    }


def real_online(sizes: Sizes) -> list[dict[str, Any]]:
    """The same for scikit-learn and gensim, each at two etas; None is their default, 1/k."""
    rows = []
    epochs, passes = sizes.sklearn_epochs[1], sizes.gensim_passes
    for corpus in read_corpora(sizes):
        fits: dict[str, Callable[[float | None], Fit]] = {
            "scikit-learn": lambda eta, c=corpus: fit_sklearn(c.train, c.k, 1 / c.k, eta, epochs),
            "gensim": lambda eta, c=corpus: fit_gensim(c.train, c.k, 1 / c.k, eta, passes),
        }
        row: dict[str, Any] = {"corpus": corpus.name}
        for name, fit in fits.items():
            row[name] = [corpus.scored(fit(eta)) for eta in (None, ETA)]
        rows.append(row)
    return rows


def growth(sizes: Sizes) -> list[dict[str, Any]]:
    """Seconds per nonzero, from small to large; the documents of a small set are the first of the large one."""
    d = 2 * sizes.d
    per_document = draw(2_000, d, sizes.k, 0).counts.nnz / 2_000
    whole = draw(int(1e6 * sizes.growth[-1] / per_document), d, sizes.k, 0).counts
    rows = []
    for millions in sizes.growth:
        counts = whole[: int(1e6 * millions / per_document)]
        row: dict[str, Any] = {"nonzeros": counts.nnz, "documents": counts.shape[0]}
        for name, options in list(OURS.items())[1:]:
            fits = [fit_odeco(counts, sizes.k, **options) for _ in range(3)]
            row[name] = _seconds(fits)
            row[f"{name} sweeps"] = fits[-1].sweeps
        rows.append(row)
    return rows


def streamed(sizes: Sizes) -> list[dict[str, Any]]:
    """Peak memory of a default fit that reads documents from files, in a process of its own."""
    return [_streamed(n, sizes) for n in sizes.streamed]


def _streamed(n: int, sizes: Sizes, part: int = 25_000) -> dict[str, Any]:
    topics, alpha = zipf_topics(sizes.k, 2 * sizes.d, random_state=0), np.full(sizes.k, ALPHA0 / sizes.k)
    nonzeros = 0
    with tempfile.TemporaryDirectory() as folder:
        for index, start in enumerate(range(0, n, part)):
            counts = lda_documents(min(part, n - start), topics, alpha, random_state=index).counts
            sparse.save_npz(Path(folder) / f"{index:04d}.npz", counts, compressed=False)
            nonzeros += counts.nnz
        peak, spent = harness.child("benchmarks.topics", folder, sizes.k)
    return {"documents": n, "nonzeros": nonzeros, "peak bytes": peak, "seconds": spent, "matrix bytes": 8 * nonzeros}


def scale(sizes: Sizes) -> dict[str, Any]:
    """A moments-only fit against the bare products: three of pairs with k + 10 columns, and one projection."""
    from odeco.moments import WordPairs
    from odeco.sources import as_source

    n, d, k = sizes.scale
    counts = draw(n, d, k, 0, mean_length=33.0).counts
    source = as_source(counts)
    block = np.random.default_rng(0).standard_normal((d, k + 10)).astype(np.float32)
    columns = np.ascontiguousarray(block[:, :k])
    pairs = harness.times(lambda: WordPairs(block).update_all(source), 3)
    projection = harness.times(lambda: project(counts, columns), 3)
    fits = [fit_odeco(counts, k, refine=None, alpha0=ALPHA0) for _ in range(4)][1:]
    return {
        "documents": n, "words": d, "k": k, "nonzeros": counts.nnz, "pairs": pairs, "projection": projection,
        "fit": _seconds(fits),
    }  # fmt: skip


def project(counts: Any, columns: Any) -> Any:
    """``C W`` by our own kernel and threads: scipy's product has one."""
    from odeco.completion import csr_parts
    from odeco.kernels.sparse import project_rows
    from odeco.kernels.threads import balanced_parts, map_parts

    parts = csr_parts(counts)
    out = np.empty((counts.shape[0], columns.shape[1]), dtype=np.float32)
    spans = list(pairwise(balanced_parts(parts[0], THREADS).tolist()))
    map_parts(lambda t: project_rows(*parts, columns, *spans[t], out[slice(*spans[t])]), THREADS)
    return out


def starts(sizes: Sizes) -> list[dict[str, Any]]:
    """Algorithm 1 from whitened documents and from random points, equal numbers of both for each component."""
    sample, counts = draw(sizes.n, sizes.d, sizes.k, 0), load("sotu")
    rows = _starts("synthetic", sample.counts, sizes.k, sizes, sample.topics)
    return rows if counts is None else rows + _starts("sotu", counts, CORPORA["sotu"], sizes)


def _starts(corpus: str, counts: Any, k: int, sizes: Sizes, truth: Any = None) -> list[dict[str, Any]]:
    """Residuals, and errors of the topics where the truth is known, of 10 runs on one tensor."""
    from odeco.models.topics.theorem import to_simplex
    from odeco.reduction import recover

    tensor, whitener, ratio = _whitened(counts, k)
    documents = np.asarray(counts @ whitener.matrix).T
    documents = documents[:, np.linalg.norm(documents, axis=0) > 0]

    def measure(points: Callable[[np.random.Generator], Any], n_iter: int) -> dict[str, Any]:
        residuals, errors = [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            found = algorithm_1(tensor, lambda rng=rng: points(rng), n_iter)
            residuals.append(found.norm / tensor.norm)
            if truth is not None:
                topics = recover(whitener, found.removed.weights, found.removed.vectors, ratio=ratio).vectors
                errors.append(topic_error(to_simplex(topics)[0], truth))
        return {"residual": residuals, "error": errors}

    rows = []
    for n_iter, count in product(sizes.updates, sizes.starts):
        kinds = {
            "random": lambda rng, count=count: rng.standard_normal((k, count)),
            "documents": lambda rng, count=count: documents[:, rng.choice(documents.shape[1], count, replace=False)],
        }
        found = {name: measure(points, n_iter) for name, points in kinds.items()}
        rows.append({"corpus": corpus, "updates": n_iter, "starts": count, **found})
    return rows


def _whitened(counts: Any, k: int) -> tuple[Any, Any, float]:
    """The tensor that a fit decomposes, its whitener, and b_i / a_i of Theorem 3.5."""
    from odeco.models.topics.moments import word_passes
    from odeco.models.topics.theorem import search_alpha0
    from odeco.moments import dirichlet_moments
    from odeco.moments.passes import run_passes
    from odeco.sources import as_source
    from odeco.tensors import ExplicitTensor
    from odeco.whitening import whiten

    source = as_source(counts)
    found = run_passes(word_passes(source, k, word_scale=None, rng=np.random.default_rng(0)), source).basis
    alpha0 = search_alpha0(found).alpha0
    exact = dirichlet_moments(found.moments.first, found.moments.pairs, found.moments.triples, alpha0)
    inner = whiten(exact.second, k)
    return ExplicitTensor(inner.whiten_tensor(exact.third)), found.whitener.compose(inner), 2 / (alpha0 + 2)


def algorithm_1(tensor: Any, points: Callable[[], Any], n_iter: int) -> Any:
    """Algorithm 1 with new starts for each component, which `decompose` offers for random ones alone."""
    from odeco.decomposition.power import extract, power_updates
    from odeco.tensors import Deflated

    deflated = Deflated(tensor)
    for _ in range(tensor.dimension):
        theta = points()
        theta = power_updates(deflated, theta / np.linalg.norm(theta, axis=0), n_iter)
        best = int(np.argmax(deflated.values(theta)))
        extract(deflated, power_updates(deflated, theta[:, best : best + 1], n_iter))
    return deflated


def ways(sizes: Sizes) -> list[dict[str, Any]]:
    """What reading the documents in batches, or only once, costs: error of the topics and seconds."""
    known = {"refine": None, "alpha0": ALPHA0}
    fits: dict[str, Callable[[Any, int], Fit]] = {
        "`fit(matrix)`": lambda counts, seed: fit_odeco(counts, sizes.k, seed),
        "`fit(source)`": lambda counts, seed: fit_odeco(in_batches(counts), sizes.k, seed),
        "`fit(matrix)`, `refine=None`": lambda counts, seed: fit_odeco(counts, sizes.k, seed, **known),
        "`fit(source)`, `refine=None`": lambda counts, seed: fit_odeco(in_batches(counts), sizes.k, seed, **known),
    }
    for size in sizes.basis:
        name = f"`partial_fit`, `basis_size={size}`" + (": all" if size == sizes.n else "")
        fits[name] = lambda counts, seed, size=size: fit_odeco(
            counts, sizes.k, seed, one_pass=True, basis_size=size, **known
        )
    samples = [draw(sizes.n, sizes.d, sizes.k, seed) for seed in range(sizes.seeds)]
    rows = []
    for name, function in fits.items():
        found = [function(sample.counts, seed) for seed, sample in enumerate(samples)]
        errors = [topic_error(fit.topics, sample.topics) for fit, sample in zip(found, samples, strict=True)]
        rows.append({"name": name, "error": errors, "seconds": _seconds(found)})
    return rows


def in_batches(counts: Any, n_batches: int = 10) -> Any:
    """A source that gives a tenth of the documents at a time and cannot be read as a whole."""
    from odeco.sources import as_source

    size = -(-counts.shape[0] // n_batches)
    return as_source(lambda: (counts[i : i + size] for i in range(0, counts.shape[0], size)), batch_size=size)


def _seconds(fits: list[Fit]) -> list[float]:
    return [fit.seconds for fit in fits]


SECTIONS: dict[str, Callable[[Sizes], Any]] = {
    section.__name__: section for section in (synthetic, real, real_online, growth, streamed, scale, starts, ways)
}


def _streamed_here(folder: str, k: int) -> list[float]:
    """Memory above what the process held before, and seconds."""
    paths = sorted(Path(folder).glob("*.npz"))
    first = sparse.load_npz(paths[0])
    fit_odeco([first[:1_000]], k)  # everything that is loaded anyway comes before the first look
    before = peak_memory()
    spent = fit_odeco(lambda: map(sparse.load_npz, paths), k).seconds
    return [peak_memory() - before, spent]


def peak_memory() -> float:
    """Bytes. Not getrusage: what that tells a child process begins with the peak of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024.0 * int(status.split("VmHWM:")[1].split()[0])


if __name__ == "__main__":
    print(json.dumps(_streamed_here(sys.argv[1], int(sys.argv[2]))))
