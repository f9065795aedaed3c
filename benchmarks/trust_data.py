"""The open real data of `python -m benchmarks trust`, and the cells: every data set x estimator x k."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# Constants may be chosen on these; all other data are there to judge.
TUNING = (
    "adult", "mvad", "shuttle", "penguins", "votes84", "earthquakes", "crowd_bluebird", "sotu", "alsa_voices",
)  # fmt: skip
GRID = (2, 3, 4, 6, 8, 10)
ROWS_EACH = 10  # samples for each component at least
HELD_OUT_SEED = 11


@dataclass(frozen=True)
class Cell:
    """One comparison; `channels` and `noise` are of ICA alone."""

    estimator: str
    data: str
    k: int
    channels: int = 0
    noise: float = 0.0

    @property
    def group(self) -> str:
        return "tuning" if self.data in TUNING else "judging"

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def arrays(name: str) -> dict[str, Any]:
    """A data set of `ODECO_DATA`."""
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        raise ValueError("ODECO_DATA is not set: give it the folder of the real data sets (*.npz).")
    with np.load(Path(folder) / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


@cache
def measurements(name: str) -> Any:
    """Rows of numbers, standardized by column; columns that never change are left out."""
    if name in ("iris", "wine", "digits"):
        from sklearn import datasets

        x = getattr(datasets, f"load_{name}")().data
    else:
        x = np.asarray(arrays(name)["X"], dtype=np.float64)
    x = x[:, x.std(axis=0) > 0]
    return (x - x.mean(axis=0)) / x.std(axis=0)


@cache
def counts(name: str) -> sparse.csr_array:
    """Documents, thinned to some 100,000 nonzeros so that ten starts of a peer take seconds."""
    data = arrays(name)
    parts = (data["counts_data"].astype(np.float64), data["counts_indices"], data["counts_indptr"])
    documents = sparse.csr_array(parts, shape=tuple(data["counts_shape"]))
    documents = documents[:: max(1, round(documents.nnz / 100_000))]
    return documents[:, np.flatnonzero(np.asarray(documents.sum(axis=0)).ravel() > 0)]


def held_out(name: str) -> tuple[Any, Any]:
    """Documents to train on, and the tenth to complete."""
    documents = counts(name)
    n = documents.shape[0]
    test, train = np.split(np.random.default_rng(HELD_OUT_SEED).permutation(n), [n // 10])
    return documents[np.sort(train)], documents[np.sort(test)]


@cache
def common_words(name: str, words: int) -> Any:
    """Counts of the commonest words of a corpus, dense."""
    documents = counts(name)
    common = np.argsort(-np.asarray(documents.sum(axis=0)).ravel(), kind="stable")[:words]
    return documents[:, np.sort(common)].toarray()


@dataclass(frozen=True, eq=False)
class Table:
    """Columns with their families; categories counted from 0 as they occur, NaN where missing."""

    values: Any
    families: tuple[str, ...]


@cache
def table(name: str) -> Table:
    """Rows of categories, of present and absent, of counts, or mixed."""
    if name == "digits":
        from sklearn.datasets import load_digits

        ink = load_digits().data > 7
        values = ink[:, ink.any(axis=0)].astype(float)
        return Table(values, ("bernoulli",) * values.shape[1])
    if name == "spamassassin":
        return Table((common_words(name, 40) > 0).astype(float), ("bernoulli",) * 40)
    if name == "bible_kjv":
        return Table(common_words(name, 30).astype(float), ("poisson",) * 30)
    x = np.asarray(arrays(name)["X"], dtype=np.float64)
    if name == "earthquakes":
        return Table(x, ("poisson",))
    if name == "speed":  # reaction time, and whether the answer was right
        return Table(np.column_stack([measurements(name)[:, 0], x[:, 1] > x[:, 1].min()]), ("gaussian", "bernoulli"))
    return Table(np.column_stack([_codes(column) for column in x.T]), ("categorical",) * x.shape[1])


def _codes(column: Any) -> Any:
    codes = np.full(len(column), np.nan)
    seen = column >= 0
    codes[seen] = np.unique(column[seen], return_inverse=True)[1]
    return codes


def labels(name: str) -> Any:
    """Labels (items, annotators) from 0, -1 where none was given; questions answered by many are annotators too."""
    data = arrays(name)
    if "crowd" not in data:
        return np.nan_to_num(table(name).values, nan=-1.0).astype(int)
    item, worker, label = (np.unique(column, return_inverse=True)[1] for column in data["crowd"].T)
    votes = np.full((item.max() + 1, worker.max() + 1), -1)
    votes[item, worker] = label
    return votes


VIEWS = {
    "wdbc": ((10, 20), GRID),  # means, standard errors and worst values: three views by themselves
    "penguins": ((1, 2), (2, 3)),
    "shuttle": ((3, 6), (4,)),
    "digits": ((20, 40), (4, 8)),
    "japanese_vowels": ((4, 8), (2, 3, 4)),
    "banknote": ((2, 4), (2, 3)),
    "wine": ((4, 8), (2, 3, 4)),
}


def views(name: str) -> list[Any]:
    """The columns of a table as three views."""
    return np.split(measurements(name), VIEWS[name][0], axis=1)


@cache
def symbols(name: str) -> tuple[Any, Any]:
    """Codes (n, 1) and the lengths of the sequences."""
    if name == "moby_dick":  # letters, from the files of the examples
        from benchmarks.hmm import letters

        codes = letters()[:10_000]
        return codes[:, None], np.array([len(codes)])
    data = arrays(name)
    x, lengths = data["X"].reshape(len(data["X"]), -1), data["lengths"].astype(int)
    if name in ("geyser", "speed"):  # long eruptions and short ones; right answers and wrong ones
        x = x[:, 1:] > x[:, 1].mean()
    return x.astype(int), lengths


@cache
def sequences(name: str) -> tuple[Any, Any]:
    """Counts or measurements (n, d) and the lengths of the sequences."""
    data = arrays(name)
    if name == "bible_kjv":  # the five commonest words by chapter
        chapters = _chapters(data)
        return chapters, np.array([len(chapters)])
    x = data["X"].astype(int) if name == "earthquakes" else measurements(name)
    lengths = data["lengths"].astype(int) if "lengths" in data else np.array([len(x)])
    if name == "speed":  # reaction times
        return x[:, :1], lengths
    if name == "japanese_vowels":  # every eighth utterance: a sequence costs hmmlearn more than its steps do
        parts = np.split(x, np.cumsum(lengths)[:-1])[::8]
        return np.concatenate(parts), lengths[::8]
    return x, lengths


def _chapters(data: dict[str, Any]) -> Any:
    parts = (data["counts_data"].astype(int), data["counts_indices"], data["counts_indptr"])
    verses = sparse.csr_array(parts, shape=tuple(data["counts_shape"]))
    common = np.argsort(-np.asarray(verses.sum(axis=0)).ravel(), kind="stable")[:5]
    chapter = np.unique(1000 * data["y"].astype(int) + data["chapter"], return_inverse=True)[1]
    sums = np.zeros((chapter.max() + 1, 5), dtype=int)
    np.add.at(sums, chapter, verses[:, common].toarray())
    return sums


@cache
def signals(name: str) -> Any:
    """Sources of unit variance: spoken words; for recordings whose sources nobody knows, stretches of time of one
    channel each, which are as good as independent."""
    if name == "alsa_voices":
        s = arrays(name)["S"].astype(np.float64)
    else:
        x = arrays(name)["X"]
        channels = (0, 2, 5, 7) if x.shape[1] == 8 else (0, 1, 2, 3)
        length = len(x) // 4
        s = np.column_stack([x[j * length : (j + 1) * length, c] for j, c in enumerate(channels)])
    return (s - s.mean(axis=0)) / s.std(axis=0)


def mixed(cell: Cell) -> tuple[Any, Any]:
    """The first k sources through a random mixing, with Gaussian noise; the mixing."""
    rng = np.random.default_rng(HELD_OUT_SEED)
    sources = signals(cell.data)[:, : cell.k]
    mixing = rng.standard_normal((cell.channels, cell.k))
    return sources @ mixing.T + cell.noise * rng.standard_normal((len(sources), cell.channels)), mixing


def cells(*, quick: bool = False) -> list[Cell]:
    """All comparisons; `quick`: a few small ones."""
    found = [*_mixtures(), *_tables(), *_chains(), *_texts(), *_signals()]
    if not quick:
        return found
    small = ("geyser", "cheating", "earthquakes", "carcinoma", "foetal_ecg")
    return [cell for cell in found if cell.data in small and cell.k == 2 and cell.channels in (0, 2)]


def _enough(n: int, grid: tuple[int, ...] = GRID) -> list[int]:
    return [k for k in grid if n > ROWS_EACH * k]


def _mixtures() -> Iterator[Cell]:
    for kind in ("spherical", "diag", "full", "tied"):
        for name in ("penguins", "banknote", "diabetes", "wdbc", "geyser", "iris", "wine"):
            n, d = measurements(name).shape
            for k in _enough(n // d if kind == "full" else n):  # full matrices have more to learn
                yield Cell(f"GaussianMixture {kind}", name, k)
        yield from (Cell(f"GaussianMixture {kind}", "japanese_vowels", k) for k in (4, 8))
        yield from (Cell(f"GaussianMixture {kind}", "shuttle", k) for k in ((4, 7) if kind == "full" else (4, 7, 8)))
        if kind != "full":  # 2,000 numbers for each component of 1,800 rows
            yield from (Cell(f"GaussianMixture {kind}", "digits", k) for k in (4, 8, 10))
    for name, (_, grid) in VIEWS.items():
        yield from (Cell("MultiViewMixture", name, k) for k in grid)


def _tables() -> Iterator[Cell]:
    for name in ("carcinoma", "cheating", "values", "votes84", "zoo", "speed"):
        yield from (Cell("ProductMixture", name, k) for k in _enough(len(table(name).values)))
    yield from (Cell("ProductMixture", "adult", k) for k in (4, 6, 8))
    for name in ("spamassassin", "bible_kjv", "digits"):
        yield from (Cell("ProductMixture", name, k) for k in (2, 4, 8))
    yield from (Cell("ProductMixture", "earthquakes", k) for k in (2, 3))
    crowds = ("crowd_bluebird", "crowd_rte", "carcinoma", "votes84", "cheating", "values")
    yield from (Cell("DawidSkene", name, 2) for name in crowds)


def _chains() -> Iterator[Cell]:
    for name, grid in (
        ("mvad", GRID[:4]), ("lambda_phage", GRID[:3]), ("moby_dick", GRID[:4]), ("geyser", GRID[:2]),
        ("speed", GRID[:2]),
    ):  # fmt: skip
        yield from (Cell("CategoricalHMM", name, k) for k in grid)
    for kind in ("diag", "full"):
        for name, grid in (
            ("geyser", GRID), ("speed", GRID[:4]), ("foetal_ecg", GRID[:5]), ("japanese_vowels", (3, 6)),
        ):  # fmt: skip
            yield from (Cell(f"GaussianHMM {kind}", name, k) for k in grid)
    for name, grid in (("earthquakes", GRID[:3]), ("bible_kjv", GRID[:5])):
        yield from (Cell("PoissonHMM", name, k) for k in grid)


def _texts() -> Iterator[Cell]:
    for estimator in ("SingleTopicModel", "LatentDirichletAllocation"):
        for name in ("sotu", "bible_kjv", "spamassassin", "debian", "wordnet_glosses"):
            yield from (Cell(estimator, name, k) for k in ((5, 10) if estimator == "SingleTopicModel" else (5, 10, 20)))


def _signals() -> Iterator[Cell]:
    for name, sizes in (("alsa_voices", (3, 6, 9)), ("cocktail4", (2, 4)), ("foetal_ecg", (2, 4))):
        for k in sizes:
            for channels in (k, 2 * k):
                yield from (Cell("ICA", name, k, channels, noise) for noise in (0.0, 0.1, 0.3))
