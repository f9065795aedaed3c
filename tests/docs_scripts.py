"""Scripts of docs/, which is no package: ``load("walk")`` is docs/walk.py."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"


@cache
def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
