"""Model files with right checksums and contents that no `save` has written: what a compiled loop would believe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fuzz import models
from fuzz.mutations import Rng, choose
from fuzz.targets.models import run

__all__ = ["generate", "run"]


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    source = choose(rng, models.FILES)
    models.forge(rng, source, folder / "model.odeco")
    return {"estimator": source.name.split(".")[0]}
