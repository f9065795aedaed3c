"""What every figure shares: the list of them, the style, the stored measurements and the page that shows them.

A figure is a module with a `TITLE`, the `PLACE` of its statement in the paper, and three functions: `measure(quick)`
gives numbers, `draw(result, figure)` a picture of them, and `caption(result)` the sentence that quotes them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import FIGURES, ROOT, plain_ticks, save_figure, slope, write_between
from benchmarks.provenance import environment

FOLDER = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "gallery.md"

# In the order of the page.
NAMES = [
    "skewness",
    "quadratic_convergence",
    "perturbation",
    "restarts",
    "stopping",
    "deflation",
    "random_slice",
    "repeated_eigenvalues",
    "sample_complexity",
    "one_step",
]

__all__ = ["BOUND", "FIGURES", "FOLDER", "NAMES", "PAGE", "plain_ticks", "slope"]

BOUND = {"color": "0.35", "linestyle": (0, (4, 2)), "linewidth": 1.3}  # how every figure draws what is proved


def load(name: str) -> dict[str, Any]:
    """The stored measurements of a figure."""
    stored: dict[str, Any] = json.loads((FOLDER / "results" / f"{name}.json").read_text())
    return stored


def store(name: str, result: dict[str, Any]) -> None:
    """Write the measurements, rounded to six digits; the figure and its caption are made from this file."""
    result = result | {"environment": asdict(environment(["numpy", "scipy"]))}
    path = FOLDER / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(_rounded(result), indent=1) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}")
    return value.item() if isinstance(value, np.generic) else value


def picture(name: str, result: dict[str, Any], target: Any) -> None:
    """Draw a figure into a file."""
    module = import_module(f"examples.paper.{name}")
    save_figure(target, lambda figure: module.draw(result, figure))


def section(name: str, result: dict[str, Any]) -> str:
    """The Markdown of one figure: picture, caption, command."""
    module = import_module(f"examples.paper.{name}")
    return (
        f"**{module.PLACE}.** {module.caption(result)}\n\n"
        f"![{module.TITLE}](figures/{file_name(name)})\n\n"
        f"Made by `python -m examples.paper {name}`."
    )


def file_name(name: str) -> str:
    """The picture of a figure within `docs/figures`."""
    return f"paper-{name.replace('_', '-')}.png"


def publish(name: str) -> None:
    """Draw a stored figure and write its part of the page."""
    result = load(name)
    picture(name, result, FIGURES / file_name(name))
    write_between(PAGE, f"figure:{name}", section(name, result))
