"""Moments files, damaged or forged: read, added to, merged with sound ones and fitted."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from fuzz import models
from fuzz.mutations import Rng, choose, mutate_bytes
from odeco import shared_moments as moments
from odeco.exceptions import ModelFileError


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    name = choose(rng, list(models.CASES))
    sound, bad = _sound(name), folder / "part.odeco-moments"
    if rng.integers(2):
        models.forge(rng, sound, bad)
    else:
        bad.write_bytes(mutate_bytes(rng, sound.read_bytes()))
    return {"estimator": name, "first": bool(rng.integers(2))}


def run(case: dict[str, Any], folder: Path) -> None:
    sound, _ = moments.read_moments(_sound(case["estimator"]))
    part = _read(folder / "part.odeco-moments")
    parts = [part, sound] if case["first"] else [sound, part]
    moments.fit_moments(moments.merge_moments(parts))
    moments.fit_moments(moments.add_moments(part, models.CASES[case["estimator"]].chunks()[2]))


def _read(path: Path) -> Any:
    try:
        return moments.read_moments(path)[0]
    except (ModelFileError, ValueError):
        raise
    except Exception as error:
        raise AssertionError(f"read_moments raised {type(error).__name__}") from error


@cache
def _sound(name: str) -> Path:
    """A file of sums over some rows, made once for each process."""
    path, case = Path(mkdtemp(prefix="fuzz-moments-")) / "sound", models.CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        basis = moments.make_basis(case.make(), case.chunks()[0])
        moments.write_moments(moments.add_moments(basis, case.chunks()[1]), path)
    return path
