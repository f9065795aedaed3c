"""Checkpoints, damaged or forged: the fit that finds them refuses them, or ends as a fit should."""

from __future__ import annotations

import shutil
import warnings
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import odeco
from fuzz import models
from fuzz.mutations import Rng, choose, mutate_bytes
from odeco.sources.checkpoints import KIND, VERSION
from odeco.sources.kinds import checkpointed

_ESTIMATORS = ("SingleTopicModel", "LatentDirichletAllocation", "GaussianMixture", "ProductMixture", "ICA")
_ESTIMATORS += ("MultiViewMixture", "CategoricalHMM", "GaussianHMM", "PoissonHMM", "DawidSkene")


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    name = choose(rng, _ESTIMATORS)
    shutil.copytree(_sound(name), folder / "run")
    files = sorted((folder / "run").iterdir())
    if not files:
        return {"estimator": name}
    path = choose(rng, files)
    if rng.integers(2):
        models.forge(rng, path, path, KIND, VERSION)
    else:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
    if rng.integers(4) == 0:
        path.rename(path.with_name("current.odeco-moments"))
    return {"estimator": name}


def run(case: dict[str, Any], folder: Path) -> None:
    model = _fit(case["estimator"], folder / "run")
    odeco.save(model, folder / "fitted.odeco")  # refuses what is not finite, or not on the simplex


def _fit(name: str, folder: Path) -> Any:
    case = models.CASES[name]
    model = case.make().set_params(random_state=0)
    return model.fit(checkpointed(case.chunks()[0], folder, seconds=0))


@cache
def _sound(name: str) -> Path:
    """The checkpoints of a whole fit, made once for each process."""
    folder = Path(mkdtemp(prefix="fuzz-checkpoints-")) / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _fit(name, folder)
    return folder
