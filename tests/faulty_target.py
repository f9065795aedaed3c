"""A target of the fuzz campaign that does what targets should not: for the tests of the campaign itself."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def generate(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    return {"fault": str(rng.choice(["none", "clean", "unclean"]))}


def run(case: dict[str, Any], folder: Path) -> None:
    fault = case["fault"]
    if fault == "clean":
        raise ValueError("X is what it should not be: bring another.")
    if fault == "unclean":
        raise KeyError("inside")
    if fault == "crash":
        os.abort()
    if fault == "exit":
        os._exit(3)
    if fault == "hang":
        time.sleep(600)
    if fault == "memory":
        np.zeros(1 << 34, dtype=np.uint8)
