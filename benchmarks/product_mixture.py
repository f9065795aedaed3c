"""`odeco.ProductMixture` beside StepMix and scikit-learn: latent classes, Bernoulli and Gaussian columns, real tables.

`python -m benchmarks product_mixture --only real --only growth` measures some sections and keeps the others.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.best_known import LATENT_CLASSES, REACHED
from benchmarks.provenance import Result, Section
from odeco import ProductMixture
from odeco.metrics import match_components

NAME = "product_mixture"
N_TRAIN, N_TEST = 20_000, 5_000
# Constants were chosen on seeds 0 to 11: figures come from others.
FIRST_SEED = 100


def draw_bernoulli(n: int, d: int, k: int, seed: int) -> tuple[Any, Any, Any]:
    """Weights Dirichlet(5), probabilities uniform: rows, weights, probabilities (k, d)."""
    rng = np.random.default_rng(seed)
    weights, p = rng.dirichlet(np.full(k, 5.0)), rng.random((k, d))
    classes = rng.choice(k, n, p=weights)
    return (rng.random((n, d)) < p[classes]).astype(int), weights, p


def draw_categorical(n: int, items: int, categories: int, k: int, seed: int) -> tuple[Any, Any, Any]:
    """Weights Dirichlet(5), tables Dirichlet(1): codes, weights, tables (k, items, categories)."""
    rng = np.random.default_rng(seed)
    weights, tables = rng.dirichlet(np.full(k, 5.0)), rng.dirichlet(np.ones(categories), (k, items))
    classes = rng.choice(k, n, p=weights)
    codes = (rng.random((n, items, 1)) > np.cumsum(tables, axis=2)[classes]).sum(axis=2)
    return codes.clip(max=categories - 1), weights, tables


def draw_gaussian(n: int, d: int, k: int, separation: float, seed: int) -> tuple[Any, Any, Any]:
    """Means at a typical distance of `separation` average deviations, deviations uniform from 0.7 to 1.3."""
    rng = np.random.default_rng(seed)
    weights, means = rng.dirichlet(np.full(k, 5.0)), rng.standard_normal((k, d)) * separation / np.sqrt(2 * d)
    deviations = rng.uniform(0.7, 1.3, (k, d))
    classes = rng.choice(k, n, p=weights)
    return means[classes] + deviations[classes] * rng.standard_normal((n, d)), weights, means


def true_score(kind: str, X: Any, weights: Any, parameters: Any) -> float:
    """Mean log-likelihood of discrete rows under the model that drew them."""
    if kind == "bernoulli":
        joint = X @ np.log(parameters).T + (1 - X) @ np.log1p(-parameters).T
    else:
        logs = np.log(parameters)
        joint = sum(logs[:, j, :].T[X[:, j]] for j in range(X.shape[1]))
    joint = joint + np.log(weights)
    highest = joint.max(axis=1, keepdims=True)
    return float(np.mean(highest[:, 0] + np.log(np.exp(joint - highest).sum(axis=1))))


def fit_quietly(model: Any, X: Any) -> tuple[Any, float]:
    """The fitted model and its seconds; what it warns of is not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = harness.once(lambda: model.fit(X))
    return model, seconds


def stepmix(k: int, kind: str, n_init: int, seed: int) -> Any:
    from stepmix import StepMix  # a peer, needed for measuring only

    return StepMix(k, measurement=kind, n_init=n_init, random_state=seed, progress_bar=0, verbose=0)


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`; one thread for everyone."""
    measurements = {name: partial(measure, quick) for name, measure in SECTIONS.items()}
    packages, measured = ["numpy", "scipy", "scikit-learn", "stepmix"], provenance.code("latent classes")
    with harness.one_thread():
        fit_quietly(ProductMixture(2, random_state=0), np.random.default_rng(0).integers(2, size=(3000, 20)))
        return provenance.measure(measurements, only, packages, lambda name: measured, quick=quick)


def _latent(quick: bool) -> list[dict[str, Any]]:
    """Held-out log-likelihood less the true model's, and seconds, beside StepMix with 1 and 5 starts."""
    rows = []
    for kind, n_seeds in (("bernoulli", 3), ("categorical", 2)):
        for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else n_seeds)):
            if kind == "bernoulli":
                d, k = (30, 5) if quick else (100, 20)
                X, weights, parameters = draw_bernoulli(N_TRAIN + N_TEST, d, k, seed)
            else:
                d, k = (10, 3) if quick else (30, 10)
                X, weights, parameters = draw_categorical(N_TRAIN + N_TEST, d, 5, k, seed)
            train, test = X[:N_TRAIN], X[N_TRAIN:]
            truth = true_score(kind, test, weights, parameters)
            peers: list[tuple[str, Callable[[], Any]]] = [
                ("odeco", lambda k=k, seed=seed: ProductMixture(k, random_state=seed)),
                ("StepMix n_init=1", lambda k=k, kind=kind, seed=seed: stepmix(k, kind, 1, seed)),
            ]
            if seed == FIRST_SEED:  # the long one, once
                peers.append(("StepMix n_init=5", lambda k=k, kind=kind, seed=seed: stepmix(k, kind, 5, seed)))
            for name, make in peers:
                model, seconds = fit_quietly(make(), train)
                gap = float(model.score(test)) - truth
                rows.append({"kind": kind, "d": d, "k": k, "seed": seed, "peer": name, "gap": gap, "seconds": seconds})
    return rows


def _gaussian(quick: bool) -> list[dict[str, Any]]:
    """Diagonal Gaussians beside scikit-learn."""
    from sklearn.mixture import GaussianMixture

    d, k, separation, n = (20, 5, 3.0, 20_000) if quick else (100, 20, 3.0, 50_000)
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else 2)):
        X, _, _ = draw_gaussian(n + N_TEST, d, k, separation, seed)
        peers: list[tuple[str, Any]] = [
            ("odeco", ProductMixture(k, family="gaussian", random_state=seed)),
            ("scikit-learn n_init=1", GaussianMixture(k, covariance_type="diag", random_state=seed)),
        ]
        if seed == FIRST_SEED:
            many = GaussianMixture(k, covariance_type="diag", n_init=10, random_state=seed)
            peers.append(("scikit-learn n_init=10", many))
        for name, model in peers:
            fitted, seconds = fit_quietly(model, X[:n])
            score = float(fitted.score(X[n:]))
            rows.append({"d": d, "k": k, "n": n, "seed": seed, "peer": name, "score": score, "seconds": seconds})
    return rows


def _real(quick: bool) -> list[dict[str, Any]]:
    """How many of 20 seeds reach the best known log-likelihood, where the real data are at hand."""
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        return []
    rows = []
    for name, k, best in LATENT_CLASSES[: 2 if quick else None]:
        with np.load(Path(folder) / f"{name}.npz") as data:
            X = data["X"]
        for peer, make, n_seeds in (
            ("odeco", lambda k, seed: ProductMixture(k, random_state=seed), 20),
            ("StepMix n_init=1", lambda k, seed: stepmix(k, "categorical", 1, seed), 5 if quick else 20),
        ):
            values, times = [], []
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                model, seconds = fit_quietly(make(k, seed), X)
                values.append(len(X) * float(model.score(X)))
                times.append(seconds)
            row = {"data": name, "k": k, "best": best, "peer": peer, "seeds": n_seeds}
            rows.append(row | {"log-likelihoods": values, "seconds": times})
    return rows


def _reached(row: dict[str, Any]) -> dict[str, Any]:
    values = row["log-likelihoods"]
    reached = sum(value > row["best"] - REACHED for value in values)
    return row | {"reached": reached, "worst": min(values), "seconds": float(np.median(row["seconds"]))}


def _growth(quick: bool) -> list[dict[str, Any]]:
    """Seconds against rows and columns, each fit once."""
    rows = []
    sizes = [(n, 50) for n in (10_000, 40_000, 160_000)] + [(2_000, d) for d in (1_500, 3_000, 6_000, 12_000)]
    for n, d in sizes[:2] + sizes[3:4] if quick else sizes:
        X, _, p = draw_bernoulli(n, d, 5, FIRST_SEED)
        model, seconds = fit_quietly(ProductMixture(5, random_state=0), X)
        errors = match_components(model.means_.T, p.T).errors
        rows.append({"n": n, "d": d, "seconds": seconds, "error": float(np.sqrt(np.mean(errors**2) / d))})
    return rows


def _missing(quick: bool) -> list[dict[str, Any]]:
    """Root mean square error of the probabilities with values missing completely at random."""
    rows = []
    for n in (5_000, 20_000) if quick else (5_000, 20_000, 80_000):
        for share in (0.0, 0.3, 0.6):
            X, _, p = draw_bernoulli(n, 50, 5, FIRST_SEED)
            values = X.astype(float)
            values[np.random.default_rng(FIRST_SEED).random(X.shape) < share] = np.nan
            row: dict[str, Any] = {"n": n, "missing": share}
            for label, refine in (("moments", None), ("refined", "auto")):
                model, _ = fit_quietly(ProductMixture(5, refine=refine, random_state=0), values)
                errors = match_components(model.means_.T, p.T).errors
                row[label] = float(np.sqrt(np.mean(errors**2) / 50))
            rows.append(row)
    return rows


SECTIONS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "real": _real,
    "growth": _growth,
    "missing": _missing,
    "gaussian": _gaussian,
    "latent": _latent,
}
SUMMARIES: dict[str, Callable[[Any], Any]] = {"real": lambda rows: [*map(_reached, rows)]}


def report(result: Result) -> None:
    """Tables of the guide, and the figure, from a result file."""
    harness.write_between(harness.ROOT / "docs" / f"{NAME}.md", f"benchmark:{NAME}", docs_tables(result))
    _draw(result)


def docs_tables(result: Result) -> str:
    parts = []
    if result.get("latent"):
        parts.append(_latent_table(result))
    if result.get("gaussian"):
        parts.append(_gaussian_table(result))
    if result.get("real"):
        parts.append(_real_table(result))
    if result.get("growth"):
        rows = [[f"{r['n']:,}", f"{r['d']:,}", f"{r['seconds']:.2f} s", f"{r['error']:.4f}"] for r in result["growth"]]
        table = harness.markdown_table(["n", "d", "seconds", "error of the probabilities"], rows)
        parts.append(f"Growth with rows and columns, Bernoulli, k = 5:\n\n{table}\n\n{result.told('growth')}")
    if result.get("missing"):
        rows = [
            [f"{r['n']:,}", f"{r['missing']:.0%}", f"{r['moments']:.4f}", f"{r['refined']:.4f}"]
            for r in result["missing"]
        ]
        table = harness.markdown_table(["n", "missing", "error, moments alone", "error, with EM"], rows)
        parts.append(
            f"Values missing completely at random, Bernoulli, d = 50, k = 5:\n\n{table}\n\n{result.told('missing')}"
        )
    return "\n\n".join([*parts, "Peers at their defaults, one thread for everyone.", result.machines()])


def _peer_rows(rows: list[dict[str, Any]], value: str) -> list[list[str]]:
    """Medians over seeds of each peer, and how many times its seconds odeco's are (same seeds)."""
    ours = {r["seed"]: r["seconds"] for r in rows if r["peer"] == "odeco"}
    table = []
    for peer in dict.fromkeys(r["peer"] for r in rows):
        part = [r for r in rows if r["peer"] == peer]
        ratio = np.median([r["seconds"] / ours[r["seed"]] for r in part])
        seconds = np.median([r["seconds"] for r in part])
        worst, middle = min(r[value] for r in part), np.median([r[value] for r in part])
        table.append([peer, str(len(part)), f"{middle:.4f}", f"{worst:.4f}", f"{seconds:.2f} s", f"{ratio:.1f}"])
    return table


def _latent_table(result: Result) -> str:
    parts = []
    for kind in ("bernoulli", "categorical"):
        rows = [r for r in result["latent"] if r["kind"] == kind]
        header = ["", "seeds", "gap (median)", "gap (worst)", "seconds", "times odeco's"]
        size = f"{rows[0]['d']} {'columns' if kind == 'bernoulli' else 'items of 5 categories'}, k = {rows[0]['k']}"
        table = harness.markdown_table(header, _peer_rows(rows, "gap"))
        parts.append(
            f"{kind.capitalize()}, n = {N_TRAIN:,}, {size}; gap = held-out log-likelihood per row less the true "
            f"model's:\n\n{table}"
        )
    return "\n\n".join([*parts, result.told("latent")])


def _gaussian_table(result: Result) -> str:
    rows = result["gaussian"]
    header = ["", "seeds", "held-out score (median)", "(worst)", "seconds", "times odeco's"]
    size = f"n = {rows[0]['n']:,}, d = {rows[0]['d']}, k = {rows[0]['k']}"
    table = harness.markdown_table(header, _peer_rows(rows, "score"))
    return f"Gaussian columns, {size}:\n\n{table}\n\n{result.told('gaussian')}"


def _real_table(result: Result) -> str:
    header = ["data", "k", "best known", "", "seeds that reach it", "worst", "seconds"]
    rows = [
        [
            r["data"],
            str(r["k"]),
            f"{r['best']}",
            r["peer"],
            f"{r['reached']} of {r['seeds']}",
            f"{r['worst']:.3f}",
            f"{1e3 * r['seconds']:.0f} ms",
        ]
        for r in result["real"]
    ]
    return (
        f"Real tables, log-likelihood to {REACHED}:\n\n{harness.markdown_table(header, rows)}\n\n{result.told('real')}"
    )


def _draw(result: Result) -> None:
    from matplotlib.figure import Figure

    if not result.get("growth") or not result.get("missing"):
        return
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, rows, key in (
        ("rows, d = 50", [r for r in result["growth"] if r["d"] == 50], "n"),
        ("columns, n = 2,000", [r for r in result["growth"] if r["n"] == 2_000], "d"),
    ):
        cells = [r["n"] * r["d"] for r in rows]
        left.loglog(cells, [r["seconds"] for r in rows], marker="o", label=label)
    left.set(xlabel="cells n x d", ylabel="seconds", title="Time of a fit, k = 5")
    left.legend(frameon=False)
    for share in sorted({r["missing"] for r in result["missing"]}):
        rows = [r for r in result["missing"] if r["missing"] == share]
        right.loglog([r["n"] for r in rows], [r["moments"] for r in rows], marker="o", label=f"{share:.0%} missing")
    right.set(xlabel="rows", ylabel="error of the probabilities", title="Moments alone, d = 50, k = 5")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    harness.FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(harness.FIGURES / "product-mixture-growth.png", dpi=110)
