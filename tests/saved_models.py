"""One of each estimator, small, for the tests of model files: data in chunks, and everything that a model answers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import odeco


@dataclass(frozen=True)
class SavedCase:
    """An estimator, its data in three chunks, and the methods whose answers must survive."""

    name: str
    make: Callable[[], Any]
    chunks: Callable[[], list[Any]]
    answers: tuple[str, ...]
    streams: bool = True

    def fit(self, chunks: int = 3, model: Any = None) -> Any:
        """Fitted by `fit` on the first chunks; a new model, or the one that is given."""
        return self._quietly((self.make() if model is None else model).fit, join(self.chunks()[:chunks]))

    def partial_fit(self, model: Any, chunks: slice) -> Any:
        """The model after some more chunks."""
        for chunk in self.chunks()[chunks]:
            self._quietly(model.partial_fit, chunk)
        return model

    def ask(self, model: Any) -> dict[str, Any]:
        """What the model answers on the first chunk, and what it draws."""
        data = self.chunks()[0]
        found = {name: self._quietly(getattr(model, name), data) for name in self.answers}
        return {**found, "sample": self._quietly(model.sample, 7)} if hasattr(model, "sample") else found

    def _quietly(self, call: Callable[..., Any], *arguments: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)
            warnings.simplefilter("ignore", UserWarning)
            return call(*arguments)


def join(chunks: list[Any]) -> Any:
    if isinstance(chunks[0], list):
        return [join(list(view)) for view in zip(*chunks, strict=True)]
    if sparse.issparse(chunks[0]):
        return sparse.vstack(chunks, format="csr")
    if hasattr(chunks[0], "iloc"):
        import pandas as pd

        return pd.concat(chunks, ignore_index=True)
    return np.concatenate(chunks)


def differences(first: Any, second: Any, place: str = "") -> Iterator[str]:
    """Where two values differ in type, dtype, shape or any bit; NaN equals NaN."""
    if type(first) is not type(second):
        yield f"{place}: {type(first)} and {type(second)}"
    elif isinstance(first, np.ndarray):
        if first.dtype != second.dtype or first.shape != second.shape:
            yield f"{place}: {first.dtype} {first.shape} and {second.dtype} {second.shape}"
        elif first.dtype == object:
            yield from differences(first.tolist(), second.tolist(), place)
        elif not np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"):
            yield f"{place}: values differ"
    elif sparse.issparse(first):
        yield from differences([first.toarray(), first.shape], [second.toarray(), second.shape], place)
    elif isinstance(first, dict):
        if set(first) != set(second):
            yield f"{place}: keys {list(first)} and {list(second)}"
        else:
            for key in first:
                yield from differences(first[key], second[key], f"{place}[{key!r}]")
    elif isinstance(first, (list, tuple)):
        if len(first) != len(second):
            yield f"{place}: {len(first)} and {len(second)} entries"
        for i, (a, b) in enumerate(zip(first, second, strict=False)):
            yield from differences(a, b, f"{place}[{i}]")
    elif hasattr(first, "iloc"):
        if not first.reset_index(drop=True).equals(second.reset_index(drop=True)):
            yield f"{place}: rows differ"
    elif isinstance(first, Enum) or first is None or isinstance(first, (str, int)):
        if first != second:
            yield f"{place}: {first!r} and {second!r}"
    elif isinstance(first, (float, np.floating)):
        if first != second and not (np.isnan(first) and np.isnan(second)):
            yield f"{place}: {first!r} and {second!r}"
    elif is_dataclass(first):
        for f in fields(first):
            yield from differences(getattr(first, f.name), getattr(second, f.name), f"{place}.{f.name}")
    elif isinstance(first, np.random.RandomState):
        yield from differences(first.get_state(legacy=False), second.get_state(legacy=False), place)
    elif isinstance(first, np.random.Generator):
        yield from differences(first.bit_generator.state, second.bit_generator.state, place)
    else:
        yield from differences(vars(first), vars(second), place)


def _counts() -> list[Any]:
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(25, 0.2), 3)
    rows = [rng.multinomial(40, topics[i % 3]) for i in range(300)]
    return [sparse.csr_matrix(np.array(rows[i::3])) for i in range(3)]


def _rows() -> list[Any]:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(360, 4)) + 5.0 * np.eye(4)[rng.integers(0, 2, 360)]
    return np.split(rows, 3)


def _table() -> list[Any]:
    import pandas as pd

    rng = np.random.default_rng(3)
    cls = rng.integers(0, 2, 300)
    frame = pd.DataFrame(
        {
            "length": rng.normal(size=300) + 4 * cls,
            "colour": pd.Categorical(np.array(["red", "green", "blue"])[(rng.integers(0, 2, 300) + cls)]),
            "word": np.where(rng.random(300) < 0.8, np.array(["yes", "no"])[cls], None),
            "count": rng.poisson(3 + 9 * cls),
            "flag": rng.random(300) < 0.2 + 0.6 * cls,
        }
    )
    return [frame.iloc[i::3] for i in range(3)]


def _binary() -> list[Any]:
    rng = np.random.default_rng(4)
    cls = rng.integers(0, 2, 300)
    rows = (rng.random((300, 9)) < np.where(cls[:, None] > 0, 0.8, 0.2)).astype(float)
    rows[rng.random(rows.shape) < 0.02] = np.nan
    return np.split(rows, 3)


def _views() -> list[Any]:
    rng = np.random.default_rng(5)
    cls = rng.integers(0, 2, 300)
    blocks = [
        rng.normal(size=(300, 3)) + 4.0 * cls[:, None],
        sparse.csr_array(rng.poisson(1 + 5 * cls[:, None], (300, 4))),
    ]
    blocks.append((rng.random((300, 5)) < 0.2 + 0.6 * cls[:, None]).astype(float))
    return [[block[100 * i : 100 * i + 100] for block in blocks] for i in range(3)]


def _labels() -> list[Any]:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, (240, 1))
    labels = np.where(rng.random((240, 6)) < 0.75, truth, rng.integers(0, 3, (240, 6)))
    labels[rng.random(labels.shape) < 0.1] = -1
    return np.split(labels, 3)


def _chain(n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = states[t - 1] if rng.random() < 0.8 else 1 - states[t - 1]
    return states


def _symbols() -> list[Any]:
    rng = np.random.default_rng(8)
    states = _chain(900)
    symbols = np.where(rng.random(900) < 0.8, states, rng.integers(0, 4, 900))
    symbols[::300] = 3  # every chunk knows the whole alphabet
    return np.split(symbols[:, None], 3)


def _features() -> list[Any]:
    rng = np.random.default_rng(9)
    return np.split(rng.normal(size=(900, 2)) + 4.0 * _chain(900)[:, None], 3)


def _rates() -> list[Any]:
    rng = np.random.default_rng(10)
    return np.split(rng.poisson(2 + 8 * _chain(900)[:, None], (900, 2)), 3)


def _signals() -> list[Any]:
    rng = np.random.default_rng(11)
    return np.split(rng.laplace(size=(3600, 3)) @ rng.normal(size=(3, 4)), 3)


_MIXTURE = ("predict", "predict_proba", "score", "score_samples")
_CHAIN = ("predict", "predict_proba", "score", "decode")
CASES = [
    SavedCase("SingleTopicModel", lambda: odeco.SingleTopicModel(3, random_state=0, basis_size=120), _counts, _MIXTURE),
    SavedCase(
        "LatentDirichletAllocation",
        lambda: odeco.LatentDirichletAllocation(3, random_state=0, basis_size=120),
        _counts,
        ("transform", "score", "perplexity"),
    ),
    SavedCase("GaussianMixture", lambda: odeco.GaussianMixture(2, random_state=0), _rows, (*_MIXTURE, "bic")),
    SavedCase(
        "GaussianMixture diag",
        lambda: odeco.GaussianMixture(2, covariance_type="diag", random_state=np.random.RandomState(3)),
        _rows,
        _MIXTURE,
        streams=False,
    ),
    SavedCase("ProductMixture", lambda: odeco.ProductMixture(2, random_state=0), _table, (*_MIXTURE, "aic")),
    SavedCase(
        "ProductMixture binary", lambda: odeco.ProductMixture(2, random_state=0, basis_size=120), _binary, _MIXTURE
    ),
    SavedCase("MultiViewMixture", lambda: odeco.MultiViewMixture(2, random_state=0, basis_size=120), _views, _MIXTURE),
    SavedCase(
        "DawidSkene", lambda: odeco.DawidSkene(3, random_state=0), _labels, ("predict", "predict_proba", "score")
    ),
    SavedCase("CategoricalHMM", lambda: odeco.CategoricalHMM(2, random_state=0), _symbols, _CHAIN),
    SavedCase("GaussianHMM", lambda: odeco.GaussianHMM(2, random_state=np.random.default_rng(1)), _features, _CHAIN),
    SavedCase(
        "GaussianHMM full", lambda: odeco.GaussianHMM(2, covariance_type="full", random_state=0), _features, _CHAIN
    ),
    SavedCase("PoissonHMM", lambda: odeco.PoissonHMM(2, random_state=0), _rates, _CHAIN),
    SavedCase("ICA", lambda: odeco.ICA(3, random_state=0), _signals, ("transform",)),
]
GOLDEN = [case for case in CASES if " " not in case.name]


def case_id(case: SavedCase) -> str:
    return case.name


def write_golden(folder: Path) -> None:
    """One file of each estimator after `fit` and one after `partial_fit`, with the answers that they must give."""
    for case in GOLDEN:
        for kind, model in (("fit", case.fit()), ("partial_fit", case.partial_fit(case.make(), slice(0, 2)))):
            answers = {name: np.asarray(case.ask(model)[name]).tolist() for name in case.answers[:2]}
            odeco.save(model, folder / f"{case.name}.{kind}.odeco", metadata={"answers": answers})


if __name__ == "__main__":  # python -m tests.saved_models tests/data/models/v2: only for a new version of the format
    write_golden(Path(sys.argv[1]))
