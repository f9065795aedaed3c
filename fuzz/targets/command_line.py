"""The command line with odd options, damaged files and models of another kind: exit codes and one line, never more."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

from fuzz import models
from fuzz.mutations import Rng, choose, mutate_bytes
from tests.command_line import FITS, WRITERS, call

_VALUES = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "x",
    "",
    "nan",
    "1e9",
    "none",
    "auto",
    "0.5",
    "missing.csv",
    "é",
    "a,b",
    "1,2",
    "inf",
]
_OPTIONS = [
    "-k", "--refine", "--max-iter", "--tol", "--seed", "--format", "--columns", "--column", "--encoding", "--min-df",
    "--max-df", "--ngrams", "--max-words", "--stop-words", "--unit", "--sequence", "--covariance", "--family",
    "--likelihood", "--json", "--top", "--help", "--quiet", "--vocabulary", "--smoothing", "--method", "--layout",
    "--nonsense",
]  # fmt: skip


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    name = choose(rng, FITS)
    data = WRITERS[name](folder)
    if rng.integers(3) == 0:
        data.write_bytes(mutate_bytes(rng, data.read_bytes()))
    model = folder / "model.odeco"
    source = choose(rng, models.FILES)
    if rng.integers(2):
        models.forge(rng, source, model)
    else:
        model.write_bytes(source.read_bytes())
    arguments = choose(rng, _COMMANDS)(name, data.name)
    for _ in range(int(rng.integers(0, 3))):
        arguments.insert(int(rng.integers(1, len(arguments) + 1)), choose(rng, _OPTIONS))
        if rng.integers(4):
            arguments.insert(int(rng.integers(1, len(arguments) + 1)), choose(rng, _VALUES))
    return {"arguments": arguments}


def _fit(name: str, data: str) -> list[str]:
    given = [data if argument == "FILE" else argument for argument in FITS[name][0]]
    return ["fit", name, *given, "--max-iter", "3", "--out", "fitted.odeco"]


_COMMANDS = (
    _fit,
    lambda name, data: ["show", "model.odeco"],
    lambda name, data: ["show", "model.odeco", "--json"],
    lambda name, data: ["transform", "model.odeco", data, "--out", "out.csv"],
    lambda name, data: ["report", "model.odeco", "--out", "report.html"],
    lambda name, data: ["report", "model.odeco", data, "--out", "report.html"],
    lambda name, data: ["convert", data, "out.parquet"],
    lambda name, data: ["convert", data, "out.mtx"],
    lambda name, data: ["moments", "basis", name, data, "-k", "2", "--out", "basis.odeco-basis"],
    lambda name, data: ["moments", "compute", "model.odeco", data, "--out", "part.odeco-moments"],
    lambda name, data: ["moments", "merge", "model.odeco", "model.odeco", "--out", "both.odeco-moments"],
    lambda name, data: ["moments", "fit", "model.odeco", "--out", "fitted.odeco"],
    lambda name, data: ["decompose", data, "--out", "out.npz"],
)


def run(case: dict[str, Any], folder: Path) -> None:
    with chdir(folder):
        done = call(*case["arguments"])
        if "--debug and report it" in done.stderr:
            call(*case["arguments"], "--debug")  # raises it
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 1, 2), f"exit code {done.returncode}"
    if done.returncode:
        assert done.stderr.count("odeco: error: ") == 1, done.stderr
        raise ValueError(done.stderr[-1000:])
