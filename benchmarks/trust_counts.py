"""How many components the default fit suggests, beside BIC and held-out likelihood over all numbers up to ten."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import odeco
from benchmarks.trust_data import measurements, sequences, symbols, table

ASKED = (2, 4, 6)
MOST = 10


@dataclass(frozen=True)
class Counted:
    """A model of one data set: how it is made, its rows, and how some of them are taken."""

    estimator: str
    data: str
    make: Callable[[int], Any]
    rows: Any  # what `fit`, `score` and `bic` are given
    take: Callable[[Any, np.ndarray], Any]
    n: int  # what is taken from: rows, or sequences


def _rows(rows: Any, chosen: np.ndarray) -> Any:
    return (rows[0][chosen],)


def _chains(rows: Any, chosen: np.ndarray) -> Any:
    parts = np.split(rows[0], np.cumsum(rows[1])[:-1])
    return np.concatenate([parts[i] for i in chosen]), rows[1][chosen]


def problems(*, quick: bool = False) -> list[Counted]:
    """Small sets of every kind; chains of many sequences."""
    found = []
    for name in ("geyser", "penguins", "iris", "banknote", "diabetes"):
        x = measurements(name)
        found.append(
            Counted(
                "GaussianMixture full",
                name,
                lambda k: odeco.GaussianMixture(k, "full", random_state=0),
                (x,),
                _rows,
                len(x),
            )
        )
    for name in ("carcinoma", "cheating", "values", "votes84"):
        t = table(name)
        found.append(
            Counted(
                "ProductMixture",
                name,
                lambda k, t=t: odeco.ProductMixture(k, family=list(t.families), random_state=0),  # type: ignore[misc]
                (t.values,),
                _rows,
                len(t.values),
            )
        )
    x, lengths = symbols("mvad")
    found.append(
        Counted(
            "CategoricalHMM",
            "mvad",
            lambda k: odeco.CategoricalHMM(k, random_state=0),
            (x, lengths),
            _chains,
            len(lengths),
        )
    )
    x, lengths = sequences("japanese_vowels")
    found.append(
        Counted(
            "GaussianHMM diag",
            "japanese_vowels",
            lambda k: odeco.GaussianHMM(k, random_state=0),
            (x, lengths),
            _chains,
            len(lengths),
        )
    )
    return found[:1] if quick else found


def count(problem: Counted) -> dict[str, Any]:
    """What is suggested at each number asked for, and the numbers of the best BIC and held-out likelihood."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = [problem.make(k).fit(*problem.rows).diagnostics_.suggested_components for k in ASKED]
        half = np.random.default_rng(0).permutation(problem.n)
        first, second = (np.sort(part) for part in np.array_split(half, 2))
        one, two = problem.take(problem.rows, first), problem.take(problem.rows, second)
        bic, held_out = [], []
        for k in range(1, MOST + 1):
            bic.append(float(problem.make(k).fit(*problem.rows).bic(*problem.rows)))
            scores = [
                problem.make(k).fit(*train).score(*test) * _weight(problem, test)
                for train, test in ((one, two), (two, one))
            ]
            held_out.append(float(sum(scores)))
    return {
        "estimator": problem.estimator,
        "data": problem.data,
        "suggested": asked,
        "bic": 1 + int(np.argmin(bic)),
        "held_out": 1 + int(np.argmax(held_out)),
    }


def _weight(problem: Counted, rows: Any) -> float:
    """Mixtures score by the sample, chains all steps together."""
    return 1.0 if len(problem.rows) > 1 else float(len(rows[0]))


def counts(*, quick: bool = False) -> list[dict[str, Any]]:
    """A row for each problem."""
    return [count(problem) for problem in problems(quick=quick)]
