"""Latent classes of slides that seven pathologists judged: how many kinds are there, and who sees what?

Uses the real ratings (poLCA's carcinoma data) where ODECO_DATA names the folder that holds ``carcinoma.npz``, ratings
drawn from three such classes otherwise.

Run ``python examples/latent_classes.py``; ``--figure classes.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from odeco import ProductMixture
from odeco.simulate import latent_classes

Array = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the classes and the criterion into this file")
    figure = parser.parse_args().figure
    ratings = load()
    models = {k: ProductMixture(k, random_state=0).fit(ratings) for k in (1, 2, 3, 4)}
    print("classes  log-likelihood      BIC      G^2  certainty  finalists that agree")
    for k, model in models.items():
        agree = model.diagnostics_.details.get("replicated", 1)
        print(
            f"{k:7d}  {len(ratings) * model.score(ratings):14.3f}  {model.bic(ratings):7.1f}  "
            f"{model.g_squared(ratings):7.1f}  {model.relative_entropy(ratings):9.2f}  {agree:20d}"
        )
    best = min(models, key=lambda k: models[k].bic(ratings))
    print(f"\n{best} classes by BIC; probability that each pathologist sees a carcinoma:")
    for weight, row in zip(models[best].weights_, models[best].means_, strict=True):
        print(f"  {weight:5.0%} of slides: " + "  ".join(f"{p:.2f}" for p in row))
    if figure:
        draw(figure, models, best, ratings)
        print(f"Figure written to {figure}.")


def load() -> Array:
    folder = os.environ.get("ODECO_DATA")
    if folder:
        with np.load(Path(folder) / "carcinoma.npz") as data:
            return np.asarray(data["X"])
    seen = [[0.99, 0.5, 0.05]] * 7
    tables = [np.column_stack([1 - np.array(p), p]) for p in seen]
    return latent_classes(118, [0.45, 0.2, 0.35], tables, random_state=0).codes


def draw(path: str, models: dict[int, ProductMixture], best: int, ratings: Array) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = drawing.subplots(1, 2, width_ratios=[1, 2])
    left.plot(list(models), [model.bic(ratings) for model in models.values()], marker="o")
    left.set(xlabel="classes", ylabel="BIC", xticks=list(models), title="How many classes")
    chosen = models[best]
    places = np.arange(ratings.shape[1])
    for i, (weight, row) in enumerate(zip(chosen.weights_, chosen.means_, strict=True)):
        right.bar(places + 0.26 * (i - (best - 1) / 2), row, 0.24, label=f"{weight:.0%} of slides")
    names = [chr(ord("A") + int(j)) for j in places]
    right.set(xticks=places, xticklabels=names, xlabel="pathologist", ylabel="sees a carcinoma", ylim=(0, 1.25))
    right.legend(frameon=False, ncols=3, loc="upper center")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
