"""One case: made from its seed or read from its folder, run, and judged."""

from __future__ import annotations

import json
import shutil
import traceback
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn

import odeco
from fuzz import targets

CASE = "case.json"
_LONGEST = 2000  # characters of a message for people
_OURS = [Path(odeco.__file__ or "").parent, Path(__file__).parents[1]]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "valid", "refused" by a clean error, or "failed"; then what failed where, and all of it."""

    kind: str
    title: str = ""
    details: str = ""


def make(name: str, seed: int, number: int, folder: Path) -> None:
    """Write the case of this number into a folder, emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    case = targets.load(name).generate(rng, folder)
    (folder / CASE).write_text(json.dumps({"target": name, **case}, indent=1) + "\n")


def run(folder: Path) -> Outcome:
    """Run the case in a folder."""
    case = json.loads((folder / CASE).read_text())
    target = targets.load(case["target"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.seterr(all="ignore")
            target.run(case, folder)
    except Exception as error:
        if is_clean(error) or isinstance(error, getattr(target, "CLEAN", ())):
            return Outcome("refused", _title(error))
        return Outcome("failed", _title(error), traceback.format_exc())
    return Outcome("valid")


def is_clean(error: Exception) -> bool:
    """Whether an error is in our own words, and not too many: of a class of the library, or a ValueError that the
    library or scikit-learn's checks of arguments raise.

    What numpy, json, zipfile or a codec say of their own insides is not.
    """
    if not 0 < len(str(error)) <= _LONGEST:
        return False
    if type(error).__module__.startswith("odeco."):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = any(Path(last.filename).is_relative_to(root) for root in [*_OURS, Path(sklearn.__file__).parent])
    return type(error) is ValueError and ours and (last.line or "").startswith("raise")


def _title(error: BaseException) -> str:
    """Type and place: the same for the same fault, whatever the case."""
    while isinstance(error, AssertionError) and error.__cause__ is not None:
        error = error.__cause__
    places = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(path.relative_to(root), line) for path, line in places for root in _OURS if path.is_relative_to(root)]
    where = f"{ours[-1][0].as_posix()}:{ours[-1][1]}" if ours else "a place outside"
    return f"{type(error).__name__} at {where}"
