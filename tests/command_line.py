"""What the tests of the command line share: running ``odeco`` as a user does, and a small file for every model."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odeco.cli import main

# How each model is fitted to its file, FILE standing for it; and what its parts are called.
FITS: dict[str, tuple[list[str], str]] = {
    "lda": (["FILE", "-k", "2", "--min-df", "2"], "topics"),
    "single-topic": (["FILE", "-k", "2"], "topics"),
    "gaussian-mixture": (["FILE", "-k", "2", "--columns", "a,b,c"], "components"),
    "product-mixture": (["FILE", "-k", "2"], "classes"),
    "multiview": (["FILE", "-k", "2"], "components"),
    "dawid-skene": (["FILE"], "classes"),
    "hmm": (["FILE", "-k", "2", "--unit", "characters", "--effort", "quick"], "states"),
    "gaussian-hmm": (["FILE", "-k", "2", "--sequence", "run", "--columns", "x", "--effort", "quick"], "states"),
    "poisson-hmm": (["FILE", "-k", "2"], "states"),
    "ica": (["FILE"], "sources"),
}

# Rows of the answers of each: documents, samples, items, steps.
N_ROWS = dict(zip(FITS, (120, 120, 200, 300, 300, 80, 3200, 1200, 1200, 3000), strict=True))


def run(*args: object, input: str | None = None, cwd: Path | None = None, **options: Any) -> Any:
    """``odeco args`` in a process of its own; stdout and stderr as text."""
    command = [sys.executable, "-m", "odeco", *(str(arg) for arg in args)]
    env = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        command, input=input, capture_output=True, text=True, timeout=300, cwd=cwd, env=env, check=False, **options
    )


def call(*args: object) -> Done:
    """``odeco args`` in this process: what `run` does, without the start of an interpreter."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            main([str(arg) for arg in args])
        except SystemExit as stop:
            code = int(stop.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return Done(code, out, err)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def written(name: str, folder: Path) -> Path:
    """A small file for a model: two groups that are easy to tell apart."""
    return WRITERS[name](folder)


def heed_ctrl_c() -> None:
    """What a terminal gives to a command; tests that run in the background inherit that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def _documents(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    words = [["fish", "boat", "sea", "net", "wave", "salt"], ["bread", "oven", "flour", "yeast", "dough", "crust"]]
    lines = [" ".join(rng.choice(words[i % 2], 12)) for i in range(120)]
    return _text(folder / "documents.txt", lines)


def _text(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _groups(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    kind = rng.integers(2, size=200)
    values = rng.standard_normal((200, 3)) + 6.0 * kind[:, None] * [1, 0, 1]
    rows = [[f"{a:.4f}", f"{b:.4f}", f"{c:.4f}", "xy"[k]] for (a, b, c), k in zip(values, kind, strict=True)]
    return write_rows(folder / "groups.csv", ["a", "b", "c", "name"], rows)


def _answers(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    kind = rng.integers(2, size=300)
    rows = [["yes" if rng.random() < (0.9 if k else 0.2) else "no" for _ in range(6)] for k in kind]
    rows[3][2] = ""  # no answer
    return write_rows(folder / "answers.csv", [f"q{j}" for j in range(6)], rows)


def _views(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    kind = rng.integers(2, size=300)
    values = rng.standard_normal((300, 6)) + 4.0 * kind[:, None]
    names = [f"{view}.{j}" for view in ("left", "middle", "right") for j in range(2)]
    return write_rows(folder / "views.csv", names, values.round(4).tolist())


def _labels(folder: Path) -> Path:
    rng = np.random.default_rng(4)
    truth = rng.choice(["cat", "dog"], 80)
    skill = [0.95, 0.9, 0.85, 0.7, 0.6]
    rows = [
        [f"item{i}", f"worker{w}", label if rng.random() < right else {"cat": "dog", "dog": "cat"}[label]]
        for i, label in enumerate(truth.tolist())
        for w, right in enumerate(skill)
    ]
    return write_rows(folder / "labels.csv", ["item", "worker", "label"], rows)


def _letters(folder: Path) -> Path:
    rng = np.random.default_rng(5)
    lines = ["".join(rng.choice(list("bcd")) + rng.choice(list("aei")) for _ in range(40)) for _ in range(40)]
    return _text(folder / "letters.txt", lines)


def _runs(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    high = np.repeat(rng.random(60) < 0.5, 20)
    x = rng.standard_normal(1200) + 5.0 * high
    rows = [[f"run{i // 300}", f"{value:.4f}", "noted"] for i, value in enumerate(x)]
    return write_rows(folder / "runs.csv", ["run", "x", "note"], rows)


def _events(folder: Path) -> Path:
    rng = np.random.default_rng(7)
    busy = np.repeat(rng.random(60) < 0.5, 20)
    path = folder / "events.npy"
    np.save(path, rng.poisson(np.where(busy, 12, 2))[:, None])
    return path


def _signals(folder: Path) -> Path:
    rng = np.random.default_rng(8)
    sources = np.column_stack([rng.uniform(-1, 1, 3000), rng.laplace(size=3000)])
    mixed = sources @ np.array([[1.0, 0.4], [0.3, 1.0]])
    return write_rows(folder / "signals.csv", ["left", "right"], mixed.round(5).tolist())


WRITERS: dict[str, Callable[[Path], Path]] = {
    "lda": _documents,
    "single-topic": _documents,
    "gaussian-mixture": _groups,
    "product-mixture": _answers,
    "multiview": _views,
    "dawid-skene": _labels,
    "hmm": _letters,
    "gaussian-hmm": _runs,
    "poisson-hmm": _events,
    "ica": _signals,
}
