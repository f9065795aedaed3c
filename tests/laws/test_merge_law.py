"""The law of all sums, found by subclass: any division of the samples, merged in any order, gives the same.

Fits of every estimator, out of core and by `partial_fit`, show which sums there are and what they are updated with. A
kind of sums that none of them makes is an error: it needs a fit here.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from inspect import isabstract
from pkgutil import walk_packages
from typing import Any

import dask.array
import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.models.hmm.policy import POLICY
from odeco.moments.base import Additive, PackedSums, Together
from odeco.simulate import lda_documents, zipf_topics
from odeco.sources import out_of_core

N_BATCHES = 4  # that are looked at of every kind


def kinds_of_sums() -> list[type[Additive]]:
    """All of the package but a base of others."""
    for module in walk_packages(odeco.__path__, "odeco."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found, waiting = [], [Additive]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("odeco.") and not isabstract(kind) and kind is not Together:
            found.append(kind)
    return sorted(set(found), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")


KINDS = kinds_of_sums()
Seen = dict[type, tuple[Additive, list[Any]]]


class Recorder:
    """The first empty sums of each kind, and the batches that sums of that kind were updated with in the same fit."""

    def __init__(self) -> None:
        self.seen: Seen = {}
        self.n_fits = 0
        self._first: dict[type, int] = {}
        self._inside = threading.local()
        self._lock = threading.Lock()

    def wrap(self, update: Any) -> Any:
        def recorded(sums: Additive, *batch: Any) -> Any:
            active = self._inside.__dict__.setdefault("ids", set())
            if id(sums) in active:  # called by the update of a subclass
                return update(sums, *batch)
            self._record(sums, batch)
            active.add(id(sums))
            try:
                return update(sums, *batch)
            finally:
                active.discard(id(sums))

        return recorded

    def _record(self, sums: Additive, batch: tuple[Any, ...]) -> None:
        kind = type(sums)
        with self._lock:
            if kind not in self.seen:
                self.seen[kind], self._first[kind] = (deepcopy(sums), []), self.n_fits
            batches = self.seen[kind][1]
            if len(batches) < N_BATCHES and self._first[kind] == self.n_fits:
                batches.append(deepcopy(batch))


@pytest.fixture(scope="module")
def seen() -> Seen:
    """All kinds, by fits that begin to sum after few samples."""
    recorder = Recorder()
    updates = {base for kind in KINDS for base in kind.__mro__ if issubclass(base, Additive) and "update" in vars(base)}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr("odeco.models.hmm.stream.POLICY", replace(POLICY, head_steps=1000))
        for kind in updates - {Additive}:
            patch.setattr(kind, "update", recorder.wrap(vars(kind)["update"]))
        for _ in fits(np.random.default_rng(0)):
            recorder.n_fits += 1
    return recorder.seen


def fits(rng: np.random.Generator) -> Iterator[Any]:
    """Fits that make sums of every kind."""
    yield from fit_documents()
    yield from fit_numbers(rng)
    yield from fit_tables(rng)
    yield from fit_views(rng)
    yield from fit_sequences(rng)
    yield choose_number(rng)
    yield from find_intervals(rng)


def choose_number(rng: np.random.Generator) -> Any:
    """How many components, by halves of rows that lie elsewhere."""
    rows = 6.0 * rng.choice(2, (600, 1)) + rng.standard_normal((600, 3))
    parts = [rows[low : low + 100] for low in range(0, 600, 100)]
    mixture = odeco.GaussianMixture(random_state=0, effort="quick")
    return odeco.choose_components(mixture, out_of_core(lambda: iter(parts)), [1, 2])


def find_intervals(rng: np.random.Generator) -> Iterator[Any]:
    """How sure, from rows that lie elsewhere: scores of rows and of steps, sums by blocks."""
    rows = 6.0 * rng.choice(2, (600, 1)) + rng.standard_normal((600, 3))
    parts = [rows[low : low + 100] for low in range(0, 600, 100)]
    chains = [[np.cumsum(rng.random((50, 1)) < 0.2, axis=0) % 2 for _ in range(10)] for _ in range(4)]
    for model, data in (
        (odeco.GaussianMixture(2, random_state=0, effort="quick"), parts),
        (odeco.GaussianMixture(2, random_state=0, refine=None), parts),
        (odeco.CategoricalHMM(2, random_state=0, effort="quick", max_iter=3), chains),
    ):
        source = out_of_core(lambda data=data: iter(data))
        yield odeco.intervals(model.fit(source), source, n_replicates=10, replication=False, random_state=0)


def everywhere(model: Any, data: Any, n_parts: int = 6) -> Iterator[Any]:
    """Out of core, and in chunks that are not kept."""
    size = -(-data.shape[0] // n_parts)
    parts = [data[low : low + size] for low in range(0, data.shape[0], size)]
    yield model.fit(out_of_core(lambda: iter(parts)))
    for part in parts:
        model.partial_fit(part)
    yield model


def fit_documents() -> Iterator[Any]:
    counts = lda_documents(600, zipf_topics(3, 600, random_state=0), [0.2] * 3, random_state=1).counts
    yield from everywhere(odeco.LatentDirichletAllocation(3, random_state=0, max_iter=3, basis_size=200), counts)
    yield odeco.LatentDirichletAllocation(3, random_state=0, max_iter=2).fit(
        dask.array.from_array(counts.toarray(), chunks=(150, -1))
    )
    yield from everywhere(odeco.SingleTopicModel(3, random_state=0, effort="quick", basis_size=200), counts)


def fit_numbers(rng: np.random.Generator) -> Iterator[Any]:
    rows = 4 * rng.standard_normal((3, 6))[rng.choice(3, 6000)] + rng.standard_normal((6000, 6))
    for shape in ("spherical", "full"):
        yield from everywhere(odeco.GaussianMixture(3, shape, random_state=0, effort="quick"), rows)
    yield odeco.GaussianMixture(3, random_state=0, refine="one-step").fit(rows)
    wide = 4 * rng.standard_normal((2, 400))[rng.choice(2, 300)] + rng.standard_normal((300, 400))
    yield odeco.GaussianMixture(2, random_state=0, effort="quick").fit(wide)
    yield odeco.GaussianMixture(2, random_state=0, effort="quick").fit(
        np.tile(rows, (3, 1))
    )  # many: in single precision
    yield from everywhere(odeco.ICA(3, random_state=0), rng.laplace(size=(900, 3)) @ rng.standard_normal((3, 4)))


def fit_tables(rng: np.random.Generator) -> Iterator[Any]:
    rows = 4 * rng.standard_normal((3, 6))[rng.choice(3, 900)] + rng.standard_normal((900, 6))
    yield from everywhere(
        odeco.ProductMixture(3, family="gaussian", random_state=0, effort="quick", basis_size=200), rows
    )
    answers = (rng.random((400, 2100)) < rng.random((2, 2100))[rng.choice(2, 400)]).astype(float)
    yield odeco.ProductMixture(2, family="bernoulli", random_state=0, effort="quick", max_iter=2).fit(
        out_of_core(answers)
    )


def fit_views(rng: np.random.Generator) -> Iterator[Any]:
    kinds = rng.choice(3, 900)
    views = [4 * rng.standard_normal((3, 5))[kinds] + rng.standard_normal((900, 5)) for _ in range(3)]
    parts = [[view[low : low + 150] for view in views] for low in range(0, 900, 150)]
    model = odeco.MultiViewMixture(3, random_state=0, effort="quick", basis_size=300)
    yield model.fit(out_of_core(lambda: iter(parts)))
    for part in parts:
        model.partial_fit(part)
    yield model
    right = rng.random((900, 6)) < 0.8
    yield from everywhere(odeco.DawidSkene(3, random_state=0), np.where(right, kinds[:, None], rng.choice(3, (900, 6))))


def fit_sequences(rng: np.random.Generator) -> Iterator[Any]:
    states = np.cumsum(rng.random((60, 40)) < 0.2, axis=1) % 3
    symbols = [np.where(rng.random(40) < 0.8, row, rng.choice(5, 40)) for row in states]
    numbers = [np.column_stack([4.0 * row, -3.0 * row]) + rng.standard_normal((40, 2)) for row in states]
    counts = [rng.poisson(1 + 6 * row)[:, None] for row in states]
    two = [(row > 0).astype(int) for row in states]  # fewer symbols than states: windows of them
    yield odeco.CategoricalHMM(3, random_state=0, max_iter=2).fit(out_of_core(lambda: iter([two[:30], two[30:]])))
    yield odeco.GaussianHMM(1).fit(out_of_core(lambda: iter([numbers[:30], numbers[30:]])))
    models = (odeco.CategoricalHMM, odeco.GaussianHMM, odeco.PoissonHMM)
    for kind, sequences in zip(models, (symbols, numbers, counts), strict=True):
        parts = [sequences[low : low + 10] for low in range(0, 60, 10)]
        model = kind(3, random_state=0, max_iter=3, effort="quick")
        source = out_of_core(lambda parts=parts: iter(parts))
        yield model.fit(source).score(source)
        for part in parts:
            model.partial_fit(np.concatenate(part), [len(each) for each in part])
        yield model


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__qualname__)
def test_every_division_and_every_order_of_merging_gives_the_same(kind: type[Additive], seen: Seen) -> None:
    assert kind in seen, f"no fit of this file makes {kind.__qualname__}: add one"
    empty, batches = seen[kind]
    batches = (batches * 2)[: max(len(batches), 2)]
    whole = deepcopy(empty)
    for batch in batches:
        whole.update(*batch)
    pieces = []
    for batch in batches:
        pieces.append(deepcopy(empty))
        pieces[-1].update(*batch)
    merged = pieces.pop()
    for piece in pieces:
        merged.merge(piece)
    assert_same(merged.pack(), whole.pack())
    assert_same(deepcopy(empty).unpack(whole.pack()).pack(), whole.pack())
    assert any(np.abs(_dense(value)).sum() > 0 for value in whole.pack().sums.values())


def assert_same(found: PackedSums, expected: PackedSums) -> None:
    for mine, other in ((found.sums, expected.sums), (found.maxima, expected.maxima)):
        assert set(mine) == set(other)
        for name, value in mine.items():
            # Sums of single precision products keep six digits, and their order changes the last of them. What cancels
            # in sums of up to 10^4 numbers near 1 is left with the rounding of these.
            atol = 1e-6 * np.abs(_dense(other[name])).max(initial=0.0) + 1e-11
            np.testing.assert_allclose(_dense(value), _dense(other[name]), rtol=1e-5, atol=atol, err_msg=name)


def _dense(value: Any) -> np.ndarray:
    return value.toarray() if sparse.issparse(value) else np.asarray(value, dtype=float)
