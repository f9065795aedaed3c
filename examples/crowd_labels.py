"""True labels from a crowd: who can be trusted, and how much better than majority vote that makes the answer.

Uses the real bluebird crowd where ODECO_DATA names the folder that holds ``crowd_bluebird.npz``, else a simulated one.

Run ``python examples/crowd_labels.py``; ``--figure crowd.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from odeco import DawidSkene, simulate

Array = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the workers into this file")
    figure = parser.parse_args().figure
    rows, truth = load()
    model = DawidSkene(2, random_state=0).fit(rows)
    expected = np.array([truth[item] for item in model.items_.tolist()])
    votes = majority(model, rows)
    print(f"{len(expected)} items, {len(model.annotators_)} workers, {len(rows):,} labels\n\n{model.diagnostics_}\n")
    print(f"label error of majority vote  {100 * np.mean(votes != expected):5.1f} %")
    print(f"label error of DawidSkene     {100 * np.mean(model.predict(rows) != expected):5.1f} %")
    if figure:
        draw(figure, model, rows, truth)
        print(f"Figure written to {figure}.")


def load() -> tuple[Array, dict[int, int]]:
    """Rows (item, worker, label) and the truth of each item."""
    folder = os.environ.get("ODECO_DATA")
    if folder:
        with np.load(Path(folder) / "crowd_bluebird.npz") as data:
            return data["crowd"], dict(map(tuple, data["truth"].tolist()))
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.35, 0.9, (40, 2))
    confusion = np.stack([np.stack([rates[:, 0], 1 - rates[:, 0]], 1), np.stack([1 - rates[:, 1], rates[:, 1]], 1)], 1)
    drawn = simulate.crowd_labels(200, confusion, [0.5, 0.5], random_state=1)
    items, workers = np.nonzero(drawn.labels >= 0)
    return np.column_stack([items, workers, drawn.labels[items, workers]]), dict(enumerate(drawn.truth.tolist()))


def majority(model: DawidSkene, rows: Array) -> Array:
    """The label that each item got most often."""
    places = np.searchsorted(model.items_, rows[:, 0]), np.searchsorted(model.classes_, rows[:, 2])
    counts = np.zeros((len(model.items_), len(model.classes_)))
    np.add.at(counts, places, 1)
    return model.classes_[counts.argmax(axis=1)]


def draw(path: str, model: DawidSkene, rows: Array, truth: dict[int, int]) -> None:
    """Each worker at his rates for the two classes: as the fit sees them, and as the truth shows them."""
    from matplotlib.figure import Figure

    real = np.array([truth[item] for item in rows[:, 0].tolist()])
    shown = np.full((len(model.annotators_), 2), np.nan)
    for w, worker in enumerate(model.annotators_):
        for c, name in enumerate(model.classes_):
            mine = (rows[:, 1] == worker) & (real == name)
            shown[w, c] = np.mean(rows[mine, 2] == name) if mine.any() else np.nan
    fitted = np.stack([model.confusion_[:, c, c] for c in range(2)], axis=1)
    figure = Figure(figsize=(5.2, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [1, 0], color="gray", linestyle=":", linewidth=1, label="guessing")
    for start, end in zip(shown, fitted, strict=True):
        axes.plot(*zip(start, end, strict=True), color="lightgray", linewidth=0.8, zorder=1)
    axes.scatter(*shown.T, s=22, facecolors="none", edgecolors="black", label="against the truth")
    axes.scatter(*fitted.T, s=16, label="DawidSkene, without it")
    first, second = model.classes_
    axes.set(xlabel=f"share of right labels, class {first}", ylabel=f"share of right labels, class {second}")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="Workers of the crowd")
    axes.legend(frameon=False, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
