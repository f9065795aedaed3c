"""Model files with damaged bytes: refused by `load`, or the model that was saved."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fuzz import models
from fuzz.mutations import Rng, choose, mutate_bytes


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    source = choose(rng, models.FILES)
    shutil.copy(source, folder / "model.odeco")
    (folder / "model.odeco").write_bytes(mutate_bytes(rng, source.read_bytes()))
    return {"estimator": source.name.split(".")[0]}


def run(case: dict[str, Any], folder: Path) -> None:
    models.ask(models.load(folder / "model.odeco"), case["estimator"], folder)
