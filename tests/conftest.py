"""Settings and fixtures that every test shares."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn, never shown

# No deadline: a busy machine is not a bug. Derandomized: a failure is the same failure tomorrow. With --hypothesis-seed
# examples are new ones, and the seed alone repeats them.
settings.register_profile("odeco", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("odeco with a seed", deadline=None, database=None, print_blob=True, max_examples=30)
settings.load_profile("odeco")


# Files that take longest. Workers take whole files: one that begins last is waited for by all.
SLOW = (
    "distributed/test_spark.py",
    "contracts/test_command_line.py",
    "contracts/test_command_line_faults.py",
    "unit/sources/test_scale.py",
    "unit/models/test_categorical_hmm.py",
    "browser/test_first_screens.py",
    "unit/files/test_memory.py",
    "distributed/test_faults.py",
    "contracts/test_wheel.py",
)


def pytest_collection_modifyitems(items):
    order = {Path(__file__).parent / name: place for place, name in enumerate(SLOW)}
    items.sort(key=lambda item: order.get(item.path, len(SLOW)))


def pytest_configure(config):
    if config.getoption("--hypothesis-seed", None) is not None:
        settings.load_profile("odeco with a seed")


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for a start that takes each of its turns once: for tests of what goes into a fit and comes out of it."""
    from odeco.fitting.candidates import EFFORTS, Effort
    from odeco.models.hmm.policy import POLICY

    short = Effort(screen_steps=2, climb_steps=3, settle_steps=1, n_finalists=2, patience=1, most_moves=1, n_field=1)
    for efforts in (EFFORTS, POLICY.efforts):
        for name in efforts:
            monkeypatch.setitem(efforts, name, short)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], dict[str, np.ndarray]]:
    """Load a real data set by name, or skip: ``real_data("penguins")["X"]``."""
    folder = os.environ.get("ODECO_DATA")

    def load(name: str) -> dict[str, np.ndarray]:
        if not folder:
            pytest.skip("ODECO_DATA is not set: name the folder of real data sets to run this test")
        with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as data:
            return dict(data)

    return load
