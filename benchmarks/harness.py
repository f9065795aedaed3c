"""What every benchmark needs: a clock, the machine's limits, tables and figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"


def times(function: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Seconds of several runs after one that warms up caches (a peer may compile)."""
    function()
    return [once(function) for _ in range(repeats)]


def once(function: Callable[[], Any]) -> float:
    """One run, for what takes long."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def cores() -> int:
    """Those that this process may use: fewer than there are where it is tied to some."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """BLAS limited to `count` threads for everything inside."""
    with threadpool_limits(count):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everybody: BLAS, OpenMP of the peers, and our own."""
    before = os.environ.get("ODECO_NUM_THREADS")
    os.environ["ODECO_NUM_THREADS"] = "1"
    try:
        with threads(1):
            yield
    finally:
        del os.environ["ODECO_NUM_THREADS"]
        if before is not None:
            os.environ["ODECO_NUM_THREADS"] = before


def gemm_speeds(dtype: Any, size: int = 1200) -> list[float]:
    """Flops per second of several square matrix products: their median is what other figures are shares of."""
    a, b = np.random.default_rng(0).standard_normal((2, size, size)).astype(dtype)
    return [2.0 * size**3 / spent for spent in times(lambda: a @ b, 9)]


def memory_speeds(size: int = 20_000_000, dtype: Any = np.float64) -> list[float]:
    """Bytes per second of sums of two long arrays into a third, reads and writes counted: the other limit."""
    a, b = np.ones(size, dtype), np.ones(size, dtype)
    out = np.empty_like(a)
    return [3.0 * a.nbytes / spent for spent in times(lambda: np.add(a, b, out=out), 5)]


def child(module: str, *arguments: Any) -> Any:
    """What `python -m module arguments` prints, as JSON; its last line where a peer prints more."""
    return _last_line(["-m", module, *map(str, arguments)])


def child_code(code: str) -> Any:
    """What `python -c code` prints last, as JSON: a process that has loaded nothing of ours."""
    return _last_line(["-c", code])


def _last_line(arguments: list[str]) -> Any:
    command = [sys.executable, *arguments]
    # Compiled modules are kept, as after an installation: otherwise an import tells how long it takes to compile them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment).stdout
    return json.loads(output.strip().splitlines()[-1])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def write_between(path: Path, marker: str, content: str) -> None:
    """Replace what stands between ``<!-- marker -->`` and ``<!-- /marker -->``."""
    text = path.read_text()
    start, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, rest = text.split(start, 1)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{start}\n{content}\n{end}{after}")


def read_between(path: Path, marker: str) -> str:
    """What stands between the markers now."""
    return path.read_text().split(f"<!-- {marker} -->\n", 1)[1].split(f"\n<!-- /{marker} -->", 1)[0]


def save_figure(target: Any, draw: Callable[[Any], None]) -> None:
    """What `draw` draws on a figure, in the one style, into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    FIGURES.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(fname=str(ROOT / "benchmarks" / "odeco.mplstyle")):
        figure = Figure()
        draw(figure)
        # No metadata: the same numbers give the same file.
        figure.savefig(target, metadata={"Software": None})


def plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis that spans little."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_locator(NullLocator())


def slope(x: Any, y: Any) -> float:
    """The exponent of y ~ x^slope, by least squares on logarithms."""
    return float(np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0])
