"""`odeco.decompose` beside tensorly's symmetric power iteration, pyttb's CP-ALS and the paper's Algorithm 1.

`python -m benchmarks decomposition --only speed` measures one section and keeps the others.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import odeco
from benchmarks import harness, provenance
from benchmarks.provenance import Result, Section
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


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All sections, or some `only`; `quick` takes fewer seeds and leaves the large and long ones out."""
    packages = ["numpy", "scipy", "tensorly", "pyttb"]
    measurements = {name: partial(measure, quick) for name, measure in SECTIONS.items()}
    return provenance.measure(measurements, only, packages, lambda name: provenance.code("tensor"), quick=quick)


def _sizes(quick: bool) -> tuple[int, ...]:
    return (10, 50) if quick else (10, 50, 100)


def _accuracies(quick: bool) -> list[dict[str, Any]]:
    return [_accuracy(k, spectrum, 5 if quick else 50) for k in _sizes(quick) for spectrum in SPECTRA]


def _accuracy(k: int, spectrum: str, n_seeds: int) -> dict[str, Any]:
    """Errors of "auto" as shares of Theorem 5.1's bounds, worst component of each seed."""
    vector_shares, value_shares, certified = [], [], []
    for seed in range(n_seeds):
        sample = draw(k, spectrum, seed)
        bounds = perturbation_bounds(sample.eigenvalues, sample.noise_norm)
        found = odeco.decompose(sample.tensor, k, random_state=seed)
        matching = match_components(found.eigenvectors, sample.eigenvectors)
        value_errors = np.abs(found.eigenvalues[matching.permutation] - sample.eigenvalues)
        vector_shares.append(float((matching.errors / bounds.eigenvectors).max()))
        value_shares.append(float(value_errors.max() / bounds.eigenvalues))
        certified.append(bool(found.certificate.accepted.all()))
    return {
        "k": k,
        "spectrum": spectrum,
        "vector shares": vector_shares,
        "value shares": value_shares,
        "certified": certified,
    }


def _within_bounds(row: dict[str, Any]) -> dict[str, Any]:
    vectors, values = row["vector shares"], row["value shares"]
    return {
        "k": row["k"],
        "spectrum": row["spectrum"],
        "seeds": len(vectors),
        "within a tenth and a fifth": sum(v <= 0.1 and w <= 0.2 for v, w in zip(vectors, values, strict=True)),
        "certified": sum(row["certified"]),
        "worst vector share": max(vectors),
        "worst value share": max(values),
    }


def pyttb_vectors(tensor: Any, k: int, init: str, seed: int) -> Any:
    """Unit vectors of its alternating least squares, which knows of neither symmetry nor orthogonality."""
    import pyttb

    np.random.seed(seed)  # noqa: NPY002 (it draws its starts from there)
    factors = pyttb.cp_als(pyttb.tensor(tensor), k, init=init, printitn=0)[0].factor_matrices[0]
    return factors / np.linalg.norm(factors, axis=0)


def _speeds(quick: bool) -> list[dict[str, Any]]:
    return [_speed(k, count) for count in (1, 2) for k in _sizes(quick)]


def _speed(k: int, n_threads: int) -> dict[str, Any]:
    """Times on one tensor of equal eigenvalues; what is extrapolated from fewer components is marked."""
    import pyttb  # noqa: F401 (loaded before any clock runs)
    from tensorly.decomposition import symmetric_parafac_power_iteration

    sample = draw(k, "equal", 0)
    tensor, found = sample.tensor, []
    with harness.threads(n_threads):
        ours = harness.times(lambda: odeco.decompose(tensor, k, random_state=0), 15)
        peer = harness.once(lambda: symmetric_parafac_power_iteration(tensor, k))
        general = harness.once(lambda: found.append(pyttb_vectors(tensor, k, "nvecs", 0)))
        components = k if k <= 10 else 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)  # a few components of many
            power = harness.once(
                lambda: odeco.decompose(tensor, components, method="power", n_restarts=k, n_iter=30, random_state=0)
            )
        gemm = harness.gemm_speeds(np.float64)
    return {
        "k": k,
        "threads": n_threads,
        "auto seconds": ours,
        "tensorly seconds": peer,
        "pyttb seconds": general,
        "pyttb found": int(np.sum(match_components(found[0], sample.eigenvectors, up_to_sign=True).errors < 0.5)),
        "power seconds of those timed": power,
        "power components timed": components,
        "gemm": gemm,
    }


def _extrapolated(row: dict[str, Any]) -> dict[str, Any]:
    k, power, components = row["k"], row["power seconds of those timed"], row["power components timed"]
    share = components * _power_flops(k) / power / np.median(row["gemm"])
    ours = {"auto seconds": float(np.median(row["auto seconds"]))}
    return row | ours | {"power seconds": power * k / components, "power share of GEMM": share}


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


def _larges(quick: bool) -> list[dict[str, Any]]:
    return [] if quick else [_large(count) for count in (1, 2)]


def _large(n_threads: int) -> dict[str, Any]:
    """k = 400: the share of GEMM speed, and the peak memory of a process that holds the tensor and decomposes it."""
    tensor = draw(LARGE, "equal", 0).tensor
    with harness.threads(n_threads):
        with _counting() as flops:
            odeco.decompose(tensor, LARGE, random_state=0)
        spent = harness.times(lambda: odeco.decompose(tensor, LARGE, random_state=0), 3)
        gemm = {name: harness.gemm_speeds(name) for name in flops}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensor.npy"
        np.save(path, tensor)
        command = [sys.executable, "-m", "benchmarks.memory", str(path), str(n_threads)]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=harness.ROOT).stdout)
    return {
        "k": LARGE,
        "threads": n_threads,
        "seconds": spent,
        "flops": flops,
        "gemm": gemm,
        "peak bytes": peak,
        "tensor bytes": tensor.nbytes,
    }


def _shares(row: dict[str, Any]) -> dict[str, Any]:
    spent = float(np.median(row["seconds"]))
    limit = sum(row["flops"][name] / np.median(speeds) for name, speeds in row["gemm"].items())
    memory = row["peak bytes"] / row["tensor bytes"]
    return row | {"seconds": spent, "share of GEMM": limit / spent, "peak memory over tensor": memory}


def _curves(quick: bool) -> list[dict[str, Any]]:
    """Success and error of every method against noise."""
    return [
        _curve_point(method, spectrum, level, 3 if quick else 10)
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
        "largest errors": largest,
        "scaled errors": scaled,
    }


def _success(row: dict[str, Any]) -> dict[str, Any]:
    found = float(np.mean(np.array(row["largest errors"]) < 0.5))
    return row | {"success": found, "median error": float(np.median(row["scaled errors"]))}


SECTIONS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "accuracy": _accuracies,
    "speed": _speeds,
    "curves": _curves,
    "large": _larges,
}
SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "accuracy": lambda rows: [*map(_within_bounds, rows)],
    "speed": lambda rows: [*map(_extrapolated, rows)],
    "curves": lambda rows: [*map(_success, rows)],
    "large": lambda rows: [*map(_shares, rows)],
}


def report(result: Result) -> None:
    """Tables of the docs, and the figure, from a result file."""
    harness.write_between(harness.ROOT / "docs" / "decomposition.md", f"benchmark:{NAME}", docs_tables(result))
    _draw_curves(result)


def _star(row: dict[str, Any]) -> str:
    return "" if row["power components timed"] == row["k"] else " *"


def docs_tables(result: Result) -> str:
    parts = []
    if "speed" in result:
        parts.append(f"Speed:\n\n{_speed_table(result['speed'])}\n\n{_speed_notes(result)}")
    if "accuracy" in result:
        parts.append(f"Accuracy of `auto`:\n\n{_accuracy_table(result['accuracy'])}\n\n{result.told('accuracy')}")
    if result.get("large"):
        parts.append(f"Large:\n\n{_large_table(result['large'])}\n\n{result.told('large')}")
    if "curves" in result:
        parts.append(f"The figure of errors against noise: {result.told('curves')}")
    return "\n\n".join([*parts, result.machines()])


def _speed_table(rows: list[dict[str, Any]]) -> str:
    both = "pyttb seconds" in rows[0]
    peers = ["tensorly", "ratio", *(["pyttb", "ratio", "components it found"] if both else [])]
    return harness.markdown_table(
        ["k", "threads", "`auto`", *peers, "Algorithm 1", "ratio", "Algorithm 1's share of GEMM speed"],
        [
            [
                str(r["k"]),
                str(r["threads"]),
                f"{1e3 * r['auto seconds']:.3g} ms",
                *_beside(r, "tensorly seconds"),
                *([*_beside(r, "pyttb seconds"), f"{r['pyttb found']} of {r['k']}"] if both else []),
                f"{r['power seconds']:.3g} s{_star(r)}",
                f"{r['power seconds'] / r['auto seconds']:,.0f}",
                f"{100 * r['power share of GEMM']:.0f} %",
            ]
            for r in rows
        ],
    )


def _beside(row: dict[str, Any], name: str) -> list[str]:
    return [f"{row[name]:.3g} s", f"{row[name] / row['auto seconds']:,.0f}"]


def _speed_notes(result: Result) -> str:
    pyttb = (
        '`cp_als` of pyttb from `init="nvecs"`, the better of its two starts; found: error of the vector below 1/2. '
        if "pyttb seconds" in result["speed"][0]
        else ""
    )
    return (
        f'tensorly at its defaults, in full. {pyttb}Algorithm 1: `method="power"`, L = k, N = 30; * extrapolated from '
        f"3 of k equal components.\n\n{result.told('speed')}"
    )


def _accuracy_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
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
            for r in rows
        ],
    )


def _large_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["k", "threads", "`auto`", "share of GEMM speed", "peak memory / tensor, input included"],
        [
            [
                str(r["k"]),
                str(r["threads"]),
                f"{r['seconds']:.3g} s",
                f"{100 * r['share of GEMM']:.0f} %",
                f"{r['peak memory over tensor']:.2f}",
            ]
            for r in rows
        ],
    )


def _draw_curves(result: Result) -> None:
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
