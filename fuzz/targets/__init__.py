"""One module per target, with two functions.

`generate(rng, folder)` writes the files of a case into an empty folder and returns the rest of it, as JSON holds it.
`run(case, folder)` does what a user would do, and checks what comes back. Errors that `fuzz.cases.is_clean` knows are
an answer like any other; `CLEAN` of a target adds to them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def load(name: str) -> Any:
    """The module of a target; one that lives elsewhere goes by its whole name."""
    return import_module(name if "." in name else f"fuzz.targets.{name}")
