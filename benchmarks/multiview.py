"""`MultiViewMixture` beside scikit-learn's diagonal mixture on joined views, and `DawidSkene` beside votes and EM.

`python -m benchmarks multiview --only views` measures one section and keeps the others.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import harness, provenance
from benchmarks.provenance import Result, Section
from odeco import DawidSkene, MultiViewMixture, simulate
from odeco.metrics import match_components
from odeco.models.dawid_skene.moments import MajorityVotes, align_classes
from odeco.refinement.dawid_skene import crowd_log_joint, refine_crowd
from odeco.sources.crowd import read_labels
from odeco.sources.votes import VoteBatch

NAME = "multiview"
# Constants were chosen on seeds 0 to 19: figures come from others.
FIRST_SEED = 100
# n, k, columns of each of three views, size of the means in noise deviations
VIEWS = [(10_000, 10, 20, 0.5), (10_000, 10, 12, 0.8)]
# items, workers, classes, share of labels given, spammers, adversaries, skill of the others
CROWDS = [
    (1_000, 15, 2, 1.0, 0.0, 0.0, 0.65),
    (1_000, 40, 2, 0.25, 0.5, 0.1, 0.8),
    (2_000, 40, 4, 0.25, 0.5, 0.0, 0.7),
    (2_000, 30, 3, 1.0, 0.6, 0.05, 0.8),
]
GROWTH_N = (10_000, 20_000, 40_000, 80_000)
GROWTH_D = (2_000, 6_000, 18_000)


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All sections, or some `only`; `quick` takes fewer seeds and sizes."""
    measurements = {name: partial(measure, quick) for name, measure in SECTIONS.items()}
    crowd, views = provenance.code("crowd", "views"), provenance.code("views")
    packages = ["numpy", "scipy", "scikit-learn"]
    measured = {name: crowd if name in ("real", "crowds") else views for name in SECTIONS}
    return provenance.measure(measurements, only, packages, measured.__getitem__, quick=quick)


def vote_and_em(labels: Any, k: int) -> tuple[Any, Any]:
    """Classes by majority vote, and by plain EM that starts from the votes (with a hundredth of a pseudo-count)."""
    crowd = read_labels(labels)
    batches, shape = [VoteBatch(crowd.votes)], (len(crowd.workers), k, len(crowd.classes))
    counts = np.asarray(crowd.votes @ np.tile(np.eye(len(crowd.classes)), (len(crowd.workers), 1)))
    by_worker = np.asarray(crowd.votes.sum(axis=0)).reshape(len(crowd.workers), -1)
    start = MajorityVotes(shape, by_worker, 0.01).update_all(batches).maximized(0.01)[0]
    found = refine_crowd(batches, [start], smoothing=0.01)[0].parameters
    order = align_classes(found.confusion, by_worker.sum(axis=1))
    classes = crowd.classes[order.labels][np.argmax(crowd_log_joint(crowd.votes, found)[:, order.order], axis=1)]
    return crowd.classes[np.argmax(counts, axis=1)], classes


def _real(quick: bool) -> list[dict[str, Any]]:
    """Label error on real crowds where they are at hand: ours at its worst seed."""
    n_seeds = 3 if quick else 20
    folder = os.environ.get("ODECO_DATA")
    rows = []
    for name in ("crowd_bluebird", "crowd_rte") if folder else ():
        with np.load(Path(str(folder)) / f"{name}.npz") as data:
            crowd, truth = data["crowd"], dict(map(tuple, data["truth"].tolist()))
        expected = np.array([truth[item] for item in np.unique(crowd[:, 0]).tolist()])
        votes, em = vote_and_em(crowd, 2)
        wrong = [
            float(np.mean(DawidSkene(2, random_state=seed).fit_predict(crowd) != expected))
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds)
        ]
        rows.append(
            {
                "name": name,
                "labels": len(crowd),
                "items": len(expected),
                "seeds": n_seeds,
                "majority": float(np.mean(votes != expected)),
                "em": float(np.mean(em != expected)),
                "wrong": wrong,
                "seconds": harness.times(lambda crowd=crowd: DawidSkene(2, random_state=0).fit(crowd), 3),
            }
        )
    return rows


def draw_confusion(
    rng: np.random.Generator, n_workers: int, k: int, spammers: float, adversaries: float, skill: float
) -> Any:
    """Confusions: some workers label with frequencies of their own, some prefer a wrong label, the rest are able."""
    kinds = rng.random(n_workers)
    confusion = np.empty((n_workers, k, k))
    for w in range(n_workers):
        if kinds[w] < spammers:
            confusion[w] = rng.dirichlet(np.full(k, 0.5))
        elif kinds[w] < spammers + adversaries:
            confusion[w] = np.roll((1 - skill) / (k - 1) + (skill - (1 - skill) / (k - 1)) * np.eye(k), 1, axis=1)
        else:
            own = np.clip(skill + 0.1 * rng.standard_normal(k), 1 / k, 0.98)
            confusion[w] = (1 - own[:, None]) * (1 - np.eye(k)) / (k - 1) + np.diag(own)
    return confusion


def _crowds(quick: bool) -> list[dict[str, Any]]:
    return [_crowd(2 if quick else 10, *case) for case in CROWDS]


def _crowd(
    n_seeds: int, n: int, n_workers: int, k: int, share: float, spam: float, adverse: float, skill: float
) -> Any:
    wrong: dict[str, list[float]] = {"majority": [], "em": [], "odeco": [], "known": []}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = np.random.default_rng(seed)
        confusion = draw_confusion(rng, n_workers, k, spam, adverse, skill)
        drawn = simulate.crowd_labels(n, confusion, rng.dirichlet(np.full(k, 5.0)), share=share, random_state=rng)
        votes, em = vote_and_em(drawn.labels, k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = DawidSkene(k, random_state=seed, layout="wide").fit_predict(drawn.labels)
        logs = np.log(np.maximum(confusion, 1e-12))
        given = [
            np.where((row >= 0)[:, None], logs[np.arange(n_workers), :, row], 0.0).sum(axis=0) for row in drawn.labels
        ]
        known = np.argmax(np.array(given) + np.log(drawn.weights), axis=1)
        for name, classes in (("majority", votes), ("em", em), ("odeco", ours), ("known", known)):
            wrong[name].append(float(np.mean(classes != drawn.truth)))
    row = {"n": n, "workers": n_workers, "k": k, "share": share, "spammers": spam, "adversaries": adverse}
    return row | {"seeds": n_seeds} | wrong


def _views(quick: bool) -> list[dict[str, Any]]:
    MultiViewMixture(2, random_state=0).fit(draw_words(500, 100, 2, 0))  # loads what is needed
    return [_views_case(2 if quick else 5, *case) for case in VIEWS[: 1 if quick else None]]


def _views_case(n_seeds: int, n: int, k: int, d: int, size: float) -> dict[str, Any]:
    """Share of seeds that find all components (means within a quarter of the noise per column), error and seconds."""
    from sklearn.mixture import GaussianMixture

    def peer(rows: Any, n_init: int, seed: int) -> list[Any]:
        model = GaussianMixture(k, covariance_type="diag", n_init=n_init, random_state=seed, max_iter=300)
        return [model.fit(rows).means_]

    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("odeco", "moments", "sklearn 1", "sklearn 5")}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = np.random.default_rng(seed)
        means = [size * rng.standard_normal((k, d)) for _ in range(3)]
        drawn = simulate.gaussian_views(n, means, rng.dirichlet(np.full(k, 5.0)), random_state=rng)
        joined = np.hstack(drawn.views)
        fits = {
            "odeco": lambda v=drawn.views, s=seed: MultiViewMixture(k, random_state=s).fit(v).means_,
            "moments": lambda v=drawn.views, s=seed: (
                MultiViewMixture(k, refine="least-squares", random_state=s).fit(v).means_
            ),
            "sklearn 1": lambda rows=joined, s=seed: peer(rows, 1, s),
            "sklearn 5": lambda rows=joined, s=seed: peer(rows, 5, s),
        }
        for name, fit in fits.items():
            results: list[Any] = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds = harness.once(lambda fit=fit, results=results: results.append(fit()))
            error = match_components(np.hstack(results[0]).T, np.hstack(means).T).largest / np.sqrt(3 * d)
            found[name].append((error, seconds))
    return {"n": n, "k": k, "d": d, "size": size, "seeds": n_seeds, "errors and seconds": found}


def _found(row: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, float] = {}
    for name, values in row["errors and seconds"].items():
        errors, seconds = np.array(values).T
        figures |= {f"{name} found": float(np.mean(errors < 0.25)), f"{name} error": float(np.median(errors))}
        figures[f"{name} seconds"] = float(np.median(seconds))
    return row | figures


def draw_words(n: int, d: int, k: int, seed: int, length: int = 20) -> list[Any]:
    """Three sparse views of `length` words each, every component with words of its own mixed into common ones."""
    rng = np.random.default_rng(seed)
    h = rng.integers(k, size=n)
    views = []
    for _ in range(3):
        own = rng.integers(d, size=(k, d // 20))
        words = rng.integers(d, size=(n, length))
        special = rng.random((n, length)) < 0.5
        picked = own[h[:, None], rng.integers(d // 20, size=(n, length))]
        words = np.where(special, picked, words)
        rows = np.repeat(np.arange(n), length)
        views.append(sparse.coo_array((np.ones(words.size), (rows, words.ravel())), shape=(n, d)).tocsr())
    return views


def _growth_n(quick: bool) -> list[dict[str, Any]]:
    return [_growth(n, 2_000) for n in GROWTH_N[: 2 if quick else None]]


def _growth_d(quick: bool) -> list[dict[str, Any]]:
    return [_growth(20_000, d) for d in GROWTH_D[: 2 if quick else None]]


def _growth(n: int, d: int) -> dict[str, Any]:
    """Seconds of three fits on three sparse views; the best is shown: other work on the machine only adds."""
    views = draw_words(n, d, 10, 0)
    models: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = [
            harness.once(lambda: models.append(MultiViewMixture(10, random_state=0, max_iter=5, tol=0).fit(views)))
            for _ in range(3)
        ]
    return {"n": n, "d": d, "seconds": times}


SECTIONS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "real": _real,
    "crowds": _crowds,
    "views": _views,
    "growth n": _growth_n,
    "growth d": _growth_d,
}
SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "real": lambda rows: [row | {"worst": max(row["wrong"])} for row in provenance.each("seconds")(rows)],
    "crowds": provenance.each("majority", "em", "odeco", "known", how=np.mean),
    "views": lambda rows: [*map(_found, rows)],
    "growth n": provenance.each("seconds", how=min),
    "growth d": provenance.each("seconds", how=min),
}


def report(result: Result) -> None:
    """Tables of the docs and the figure, from a result file."""
    harness.write_between(harness.ROOT / "docs" / "multiview.md", f"benchmark:{NAME}", docs_tables(result))
    _draw(result)


def docs_tables(result: Result) -> str:
    parts = []
    if real := result.get("real"):
        parts.append(f"Label error on real crowds, `DawidSkene(2)` at {real[0]['seeds']} seeds:\n\n{_real_table(real)}")
        parts.append(result.told("real"))
    if crowds := result.get("crowds"):
        parts.append(f"Label error on simulated crowds, mean of {crowds[0]['seeds']} seeds:\n\n{_crowds_table(crowds)}")
        parts.append(result.told("crowds"))
    if views := result.get("views"):
        parts.append(
            f"Gaussian views, {views[0]['seeds']} seeds: share of seeds that found all components (largest error of a "
            "mean below 0.25 noise deviations per column), median of that error, seconds:\n\n" + _views_table(views)
        )
        parts.append(result.told("views"))
    if growth := [row for name in ("growth n", "growth d") for row in result.get(name, [])]:
        parts.append(
            "Growth, three sparse views of 20 words, k = 10, five EM steps, best of three runs:\n\n"
            + _growth_table(growth)
        )
        parts.append(result.told("growth n", "growth d"))
    return "\n\n".join([*parts, f"Seeds from {FIRST_SEED} on.", result.machines()])


def _real_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["crowd", "items", "labels", "majority vote", "EM from votes", "odeco, worst of its seeds", "seconds"],
        [
            [
                r["name"],
                f"{r['items']}",
                f"{r['labels']:,}",
                *(f"{100 * r[key]:.2f} %" for key in ("majority", "em", "worst")),
                f"{r['seconds']:.2f}",
            ]
            for r in rows
        ],
    )


def _crowds_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["items", "workers", "classes", "labels given", "spammers", "adversaries", "majority", "EM from votes", "odeco",
         "confusions known"],
        [
            [
                f"{r['n']:,}",
                str(r["workers"]),
                str(r["k"]),
                *(f"{100 * r[key]:.0f} %" for key in ("share", "spammers", "adversaries")),
                *(f"{100 * r[key]:.2f} %" for key in ("majority", "em", "odeco", "known")),
            ]
            for r in rows
        ],
    )  # fmt: skip


def _views_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["n", "k", "columns", "means", "odeco", "least squares alone", "scikit-learn", "scikit-learn, n_init=5"],
        [
            [
                f"{r['n']:,}",
                str(r["k"]),
                f"3 x {r['d']}",
                f"{r['size']:g}",
                *(
                    f"{100 * r[f'{name} found']:.0f} %, {r[f'{name} error']:.3f}, {r[f'{name} seconds']:.2f} s"
                    for name in ("odeco", "moments", "sklearn 1", "sklearn 5")
                ),
            ]
            for r in rows
        ],
    )


def _growth_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["n", "columns", "seconds"],
        [[f"{r['n']:,}", f"3 x {r['d']:,}", f"{r['seconds']:.2f}"] for r in rows],
    )


def _draw(result: Result) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, key, axis, label in (
        (left, "growth n", "n", "samples"),
        (right, "growth d", "d", "columns of each view"),
    ):
        sizes, seconds = ([r[name] for r in result[key]] for name in (axis, "seconds"))
        axes.loglog(sizes, seconds, marker="o", label="MultiViewMixture")
        line = [seconds[-1] * size / sizes[-1] for size in sizes]
        axes.loglog(sizes, line, color="gray", linestyle=":", label="proportional")
        axes.set(xlabel=label, ylabel="seconds")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    harness.FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(harness.FIGURES / "multiview-growth.png", dpi=110)
