"""`odeco.text.Vectorizer` beside scikit-learn's CountVectorizer: passages of the State of the Union addresses.

`python -m benchmarks text --only words` measures some sections and keeps the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import harness, provenance
from benchmarks.provenance import Result, Section
from odeco.datasets import state_of_the_union
from odeco.text import Vectorizer

NAME = "text"
N_DOCUMENTS = 100_000
REPEATS = 3
# Section: options, documents of all, whether to time `transform` rather than `fit_transform`, and the threads.
SECTIONS: dict[str, tuple[str, dict[str, Any], float, bool, Callable[[], AbstractContextManager[None]]]] = {
    "words": ("words", {}, 1.0, False, nullcontext),
    "one thread": ("words, one thread", {}, 1.0, False, harness.one_thread),
    "limits": (
        "words, `min_df=5, max_df=0.5, stop_words='english'`",
        {"min_df": 5, "max_df": 0.5, "stop_words": "english"},
        1.0,
        False,
        nullcontext,
    ),
    "transform": ("words of a known vocabulary (`transform`)", {}, 1.0, True, nullcontext),
    "pairs": ("words and pairs of words, `ngram_range=(1, 2)`", {"ngram_range": (1, 2)}, 0.2, False, nullcontext),
    "accents": ("words, every text with letters beyond ASCII", {}, 1.0, False, nullcontext),
}


def documents(n: int, *, accents: bool = False) -> list[str]:
    """Passages, repeated and shuffled; with `accents` each in a spelling of its own that ASCII cannot write."""
    passages = state_of_the_union().documents
    order = np.random.default_rng(0).permutation(np.resize(np.arange(len(passages)), n))
    if accents:
        table = str.maketrans({"e": "é", "u": "ü", "o": "ō"})
        passages = [passage.translate(table) for passage in passages]
    # A copy of each: no text is the same object twice.
    return [passages[i].encode().decode() for i in order]


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`; everything that both give is compared."""
    measurements = {name: partial(_measure, name, quick) for name in SECTIONS}
    packages = ["scikit-learn", "numpy"]
    return provenance.measure(measurements, only, packages, lambda name: provenance.code("words"), quick=quick)


def _measure(name: str, quick: bool) -> dict[str, Any]:
    _, options, share, known, threads = SECTIONS[name]
    texts = documents(int(share * (2000 if quick else N_DOCUMENTS)), accents=name == "accents")
    ours, theirs = Vectorizer(**options), CountVectorizer(**options)
    ours.fit(texts[:100])  # loads what is needed
    if known:
        ours.fit(texts)
        theirs.fit(texts)
    calls = [(model.transform if known else model.fit_transform) for model in (theirs, ours)]
    times: list[list[list[float]]] = []  # run, who, by the clock and of the processors
    with threads():
        for _ in range(1 if quick else REPEATS):
            timed = [_timed(call, texts) for call in calls]
            times.append([seconds for *seconds, _ in timed])
    counts = [matrix for *_, matrix in timed]
    equal = ours.vocabulary_ == theirs.vocabulary_ and (counts[0] != counts[1]).nnz == 0
    (peer, peer_work), (own, own_work) = np.moveaxis(times, 0, 2).tolist()
    return {
        "documents": len(texts),
        "megabytes": sum(len(text.encode()) for text in texts) / 1e6,
        "words": len(ours.vocabulary_),
        "CountVectorizer": peer,
        "Vectorizer": own,
        "CountVectorizer work": peer_work,
        "Vectorizer work": own_work,
        "equal": bool(equal),
    }


def _medians(section: dict[str, Any]) -> dict[str, Any]:
    timed = ("CountVectorizer", "Vectorizer", "CountVectorizer work", "Vectorizer work")
    return provenance.each(*timed)([section])[0]


SUMMARIES = dict.fromkeys(SECTIONS, _medians)


def _timed(call: Callable[[list[str]], Any], texts: list[str]) -> tuple[float, float, Any]:
    """Seconds by the clock, seconds of all processors, and the counts."""
    start, work = time.perf_counter(), time.process_time()
    matrix = call(texts)
    return time.perf_counter() - start, time.process_time() - work, matrix


def report(result: Result) -> None:
    """Write the tables of the guide."""
    harness.write_between(harness.ROOT / "docs" / "text.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    rows = [
        [
            SECTIONS[name][0],
            f"{r['documents']:,}",
            f"{r['megabytes']:.0f} MB",
            f"{r['words']:,}",
            f"{r['CountVectorizer']:.1f} s",
            f"{r['Vectorizer']:.2f} s",
            f"{r['CountVectorizer'] / r['Vectorizer']:.1f}",
            f"{r['CountVectorizer work'] / r['Vectorizer work']:.1f}",
            "yes" if r["equal"] else "NO",
        ]
        for name, r in ((name, result[name]) for name in SECTIONS if name in result)
    ]
    header = ["what", "documents", "text", "columns", "CountVectorizer", "Vectorizer"]
    header += ["times as fast", "times less work", "equal"]
    return (
        f"{harness.markdown_table(header, rows)}\n\n{result.told()}\n\nMedian of {REPEATS} runs on two cores: time by "
        "the clock, work in seconds of all processors (on which the load of other programs has less influence).\n\n"
        f"{result.machines()}"
    )
