"""`odeco.decompose` beside tensorly's symmetric power iteration and the paper's Algorithm 1."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import odeco
from benchmarks import harness
from odeco.decomposition import METHODS
from odeco.metrics import match_components
from odeco.simulate import OdecoSample, odeco_tensor
from odeco.tensors import PackedTensor
from odeco.theory import perturbation_bounds

NAME = "decomposition"
SPECTRA = {"equal": lambda k: np.ones(k), "spread 1..10": lambda k: np.linspace(1, 10, k)}
NOISE = 0.1  # times lambda_min / sqrt(k)
LARGE = 400
CURVE_DIMENSION = 30
CURVE_NOISE = (0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)  # times lambda_min / sqrt(k)


def draw(k: int, spectrum: str, seed: int) -> OdecoSample:
    return odeco_tensor(k, eigenvalues=SPECTRA[spectrum](k), noise=NOISE / np.sqrt(k), random_state=seed)


def run(*, quick: bool = False) -> dict[str, Any]:
    """All measurements; `quick` takes fewer seeds and leaves the large and long ones out."""
    sizes = (10, 50) if quick else (10, 50, 100)
    result: dict[str, Any] = {
        "quick": quick,
        "environment": harness.environment(["odeco", "numpy", "scipy", "numba", "tensorly"]),
        "accuracy": [_accuracy(k, s, 5 if quick else 50) for k in sizes for s in SPECTRA],
        "speed": [_speed(k, count) for count in (1, 2) for k in sizes],
        "curves": _curves(3 if quick else 10),
    }
    if not quick:
        result["large"] = [_large(count) for count in (1, 2)]
    return result


def _accuracy(k: int, spectrum: str, n_seeds: int) -> dict[str, Any]:
    """Errors of "auto" as shares of Theorem 5.1's bounds, worst component of each seed."""
    vector_shares, value_shares, certified = [], [], 0
    for seed in range(n_seeds):
        sample = draw(k, spectrum, seed)
        bounds = perturbation_bounds(sample.eigenvalues, sample.noise_norm)
        found = odeco.decompose(sample.tensor, k, random_state=seed)
        matching = match_components(found.eigenvectors, sample.eigenvectors)
        value_errors = np.abs(found.eigenvalues[matching.permutation] - sample.eigenvalues)
        vector_shares.append(float((matching.errors / bounds.eigenvectors).max()))
        value_shares.append(float(value_errors.max() / bounds.eigenvalues))
        certified += bool(found.certificate.accepted.all())
    good = sum(v <= 0.1 and w <= 0.2 for v, w in zip(vector_shares, value_shares, strict=True))
    return {
        "k": k,
        "spectrum": spectrum,
        "seeds": n_seeds,
        "within a tenth and a fifth": good,
        "certified": certified,
        "worst vector share": max(vector_shares),
        "worst value share": max(value_shares),
    }


def _speed(k: int, n_threads: int) -> dict[str, Any]:
    """Times on one tensor of equal eigenvalues; what is extrapolated from fewer components is marked."""
    from tensorly.decomposition import symmetric_parafac_power_iteration

    tensor = draw(k, "equal", 0).tensor
    with harness.threads(n_threads):
        ours = harness.seconds(lambda: odeco.decompose(tensor, k, random_state=0), 15)
        peer = harness.once(lambda: symmetric_parafac_power_iteration(tensor, k))
        components = k if k <= 10 else 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)  # a few components of many
            power = harness.once(
                lambda: odeco.decompose(tensor, components, method="power", n_restarts=k, n_iter=30, random_state=0)
            )
        share = components * _power_flops(k) / power / harness.gemm_speed(np.float64)
    return {
        "k": k,
        "threads": n_threads,
        "auto seconds": ours,
        "tensorly seconds": peer,
        "power seconds": power * k / components,
        "power components timed": components,
        "power share of GEMM": share,
    }


def _power_flops(k: int) -> float:
    """One component of Algorithm 1, L = k and N = 30: N maps of k vectors, then N of one."""
    entries = k * k * (k + 1) / 2
    return 30 * 2 * entries * (k + 1)


@contextmanager
def _counting() -> Iterator[dict[str, float]]:
    """Flops of the packed contractions inside, by precision."""
    flops: dict[str, float] = {"float32": 0.0, "float64": 0.0}
    power_map, gram = PackedTensor.power_map, PackedTensor.gram

    def counted_map(self: PackedTensor, vectors: Any) -> Any:
        flops[str(self.rows.dtype)] += 2.0 * self.rows.size * vectors.shape[1]
        return power_map(self, vectors)

    def counted_gram(self: PackedTensor) -> Any:
        flops[str(self.rows.dtype)] += float(self.rows.size) * self.rows.shape[1]
        return gram(self)

    PackedTensor.power_map, PackedTensor.gram = counted_map, counted_gram  # type: ignore[method-assign]
    try:
        yield flops
    finally:
        PackedTensor.power_map, PackedTensor.gram = power_map, gram  # type: ignore[method-assign]


def _large(n_threads: int) -> dict[str, Any]:
    """k = 400: the share of GEMM speed, and the peak memory of a process that holds the tensor and decomposes it."""
    tensor = draw(LARGE, "equal", 0).tensor
    with harness.threads(n_threads):
        with _counting() as flops:
            odeco.decompose(tensor, LARGE, random_state=0)
        spent = harness.seconds(lambda: odeco.decompose(tensor, LARGE, random_state=0), 3)
        limit = sum(flops[name] / harness.gemm_speed(name) for name in flops)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensor.npy"
        np.save(path, tensor)
        command = [sys.executable, "-m", "benchmarks.memory", str(path), str(n_threads)]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=harness.ROOT).stdout)
    return {
        "k": LARGE,
        "threads": n_threads,
        "seconds": spent,
        "share of GEMM": limit / spent,
        "peak memory over tensor": peak / tensor.nbytes,
    }


def _curves(n_seeds: int) -> list[dict[str, Any]]:
    """Success and error of every method against noise."""
    return [
        _curve_point(method, spectrum, level, n_seeds)
        for spectrum in SPECTRA
        for level in CURVE_NOISE
        for method in METHODS
    ]


def _curve_point(method: str, spectrum: str, level: float, n_seeds: int) -> dict[str, Any]:
    k = CURVE_DIMENSION
    epsilon = level / np.sqrt(k)
    largest, scaled = [], []
    for seed in range(n_seeds):
        sample = odeco_tensor(k, eigenvalues=SPECTRA[spectrum](k), noise=epsilon, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)  # past where a method breaks it says so
            found = odeco.decompose(sample.tensor, k, method=method, random_state=seed)
        matching = match_components(found.eigenvectors, sample.eigenvectors)
        largest.append(matching.largest)
        scaled.append(float((matching.errors * sample.eigenvalues).max() / epsilon))
    return {
        "method": method,
        "spectrum": spectrum,
        "noise": level,
        "success": float(np.mean(np.array(largest) < 0.5)),
        "median error": float(np.median(scaled)),
    }


def report(result: dict[str, Any]) -> None:
    """Tables of README and docs, and the figure, from a result file."""
    harness.write_between(harness.ROOT / "README.md", f"benchmark:{NAME}", readme_table(result))
    harness.write_between(harness.ROOT / "docs" / "decomposition.md", f"benchmark:{NAME}", docs_tables(result))
    _draw_curves(result)


def readme_table(result: dict[str, Any]) -> str:
    rows = []
    for row in result["speed"]:
        if row["threads"] != 1:
            continue
        seeds = [a for a in result["accuracy"] if a["k"] == row["k"]]
        good = sum(a["within a tenth and a fifth"] for a in seeds)
        rows.append(
            [
                str(row["k"]),
                f"{1e3 * row['auto seconds']:.2g} ms",
                f"{row['tensorly seconds'] / row['auto seconds']:,.0f}x",
                f"{row['power seconds'] / row['auto seconds']:,.0f}x{_star(row)}",
                f"{good} of {sum(a['seeds'] for a in seeds)}",
            ]
        )
    header = [
        "k",
        "`auto`",
        "faster than tensorly",
        "faster than Algorithm 1",
        "seeds within Theorem 5.1's bounds / 10 and / 5",
    ]
    return harness.markdown_table(header, rows) + (
        "\n\nOne thread, noise of operator norm 0.1 λ/√k, equal and spread eigenvalues. tensorly "
        f"{result['environment']['packages']['tensorly']} at its defaults, in full; Algorithm 1 is our own, batched, "
        "L = k, N = 30 (* extrapolated from 3 components). More in [docs/decomposition.md](docs/decomposition.md)."
    )


def _star(row: dict[str, Any]) -> str:
    return "" if row["power components timed"] == row["k"] else " *"


def docs_tables(result: dict[str, Any]) -> str:
    speed = harness.markdown_table(
        ["k", "threads", "`auto`", "tensorly", "ratio", "Algorithm 1", "ratio", "Algorithm 1's share of GEMM speed"],
        [
            [
                str(r["k"]),
                str(r["threads"]),
                f"{1e3 * r['auto seconds']:.3g} ms",
                f"{r['tensorly seconds']:.3g} s",
                f"{r['tensorly seconds'] / r['auto seconds']:,.0f}",
                f"{r['power seconds']:.3g} s{_star(r)}",
                f"{r['power seconds'] / r['auto seconds']:,.0f}",
                f"{100 * r['power share of GEMM']:.0f} %",
            ]
            for r in result["speed"]
        ],
    )
    accuracy = harness.markdown_table(
        [
            "k",
            "eigenvalues",
            "seeds",
            "within 1/10 and 1/5 of the bounds",
            "certified",
            "worst vector",
            "worst eigenvalue",
        ],
        [
            [
                str(r["k"]),
                r["spectrum"],
                str(r["seeds"]),
                str(r["within a tenth and a fifth"]),
                str(r["certified"]),
                f"{r['worst vector share']:.3f} of 8ε/λ",
                f"{r['worst value share']:.3f} of 5ε",
            ]
            for r in result["accuracy"]
        ],
    )
    large = harness.markdown_table(
        ["k", "threads", "`auto`", "share of GEMM speed", "peak memory / tensor, input included"],
        [
            [
                str(r["k"]),
                str(r["threads"]),
                f"{r['seconds']:.3g} s",
                f"{100 * r['share of GEMM']:.0f} %",
                f"{r['peak memory over tensor']:.2f}",
            ]
            for r in result.get("large", [])
        ],
    )
    env = result["environment"]
    versions = ", ".join(f"{name} {number}" for name, number in env["packages"].items())
    notes = (
        'tensorly at its defaults, in full. Algorithm 1: `method="power"`, L = k, N = 30; * extrapolated from 3 of k '
        f"equal components. {env['processor']}, Python {env['python']}, {versions}."
    )
    return f"Speed:\n\n{speed}\n\n{notes}\n\nAccuracy of `auto`:\n\n{accuracy}\n\nLarge:\n\n{large}"


def _draw_curves(result: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained", sharex=True)
    for (left, right), spectrum in zip(grid, SPECTRA, strict=True):
        for method, marker in zip(METHODS, "osD^vx", strict=True):
            rows = [row for row in result["curves"] if row["method"] == method and row["spectrum"] == spectrum]
            noise = [row["noise"] for row in rows]
            left.plot(noise, [row["success"] for row in rows], marker=marker, label=method, alpha=0.8)
            right.plot(noise, [row["median error"] for row in rows], marker=marker, label=method, alpha=0.8)
        right.axhline(8, color="gray", linestyle=":", label="Theorem 5.1: 8 ε/λ")
        left.set(xscale="log", ylabel="share of seeds, every error < 1/2", title=f"Success, eigenvalues {spectrum}")
        right.set(
            xscale="log", yscale="log", ylabel="median largest error, in ε/λ", title=f"Error, eigenvalues {spectrum}"
        )
    for axes in grid[1]:
        axes.set_xlabel(f"operator norm ε of the noise, in λ_min/√k (k = {CURVE_DIMENSION})")
    grid[0, 1].legend(fontsize="small")
    harness.FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(harness.FIGURES / "decomposition-noise.png", dpi=110)
    plt.close(figure)
