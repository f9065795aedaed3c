"""What each part of the search for a start is worth: the fits of the tuning data once more, without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import harness
from odeco.fitting import candidates as module
from odeco.fitting.candidates import Candidate, Effort

# Names of candidates by where they come from: more components than asked for, chance, and else the theorem.
_LARGER = re.compile(r"merged|\b2k\b|at \d+ components|, \d+ clusters|, \d+ of them|twice")
_CHANCE = re.compile(r"k-means|random|guess|documents|segments|clusters", re.IGNORECASE)

Plan = tuple[list[Candidate[Any]], Effort]


def origin(candidate: Candidate[Any]) -> str:
    """Where a candidate comes from."""
    if _LARGER.search(candidate.name):
        return "larger"
    return "chance" if candidate.chance or _CHANCE.search(candidate.name) else "theorem"


def _without(kind: str, plan: Plan) -> Plan:
    """A search without the candidates of one origin, if any other are left."""
    kept = [candidate for candidate in plan[0] if origin(candidate) != kind]
    return kept or plan[0], plan[1]


WAYS: dict[str, Callable[[Plan], Plan]] = {
    "all": lambda plan: plan,
    "without moves": lambda plan: (plan[0], replace(plan[1], most_moves=0)),
    "one finalist": lambda plan: (plan[0], replace(plan[1], n_finalists=1)),
    "without larger mixtures, merged": partial(_without, "larger"),
    "without the theorem's start": partial(_without, "theorem"),
    "without starts by chance": partial(_without, "chance"),
}


@contextmanager
def searching(way: str) -> Iterator[None]:
    """Searches are changed so; not the short looks that tell whether one is needed."""
    own = module._search

    def changed(landscape: Any, found: Any, k: int, effort: Effort, *rest: Any) -> Any:
        plan: Plan = (list(found), effort)
        if effort.patience > 0:
            plan = WAYS[way](plan)
        return own(landscape, plan[0], k, plan[1], *rest)

    with mock.patch.object(module, "_search", changed):
        yield


def tables(rows: list[dict[str, Any]]) -> str:
    """For each way: how many cells it ends behind in, by how much, and its time."""
    lines = []
    all_of_it = np.array([row["all"]["value"] for row in rows], dtype=float)
    seconds = sum(row["all"]["seconds"] for row in rows)
    for way in WAYS:
        behind = all_of_it - np.array([row[way]["value"] for row in rows], dtype=float)
        spent = sum(row[way]["seconds"] for row in rows)
        lines.append(
            [
                way,
                f"{int((behind > LOSS).sum())} / {int((behind < -LOSS).sum())}",
                f"{np.maximum(behind, 0).mean():.4f}",
                f"{behind.max():.3f}",
                f"{spent / seconds:.2f}",
            ]
        )
    header = ["search", "cells behind / ahead", "mean loss", "worst loss", "time"]
    return harness.markdown_table(header, lines)


LOSS = 1e-3  # nats per sample or step: less is the same optimum
