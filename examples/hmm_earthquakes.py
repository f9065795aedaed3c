"""Quiet and restless decades: a Poisson hidden Markov model of the earth's major earthquakes.

Needs the yearly counts from 1900 to 2006 (USGS; Zucchini and MacDonald): set ODECO_DATA to the folder that holds
``earthquakes.npz``.

Run ``python examples/hmm_earthquakes.py``; ``--figure earthquakes.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from odeco import PoissonHMM

Array = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the counts and the states into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds earthquakes.npz.")
    with np.load(Path(folder) / "earthquakes.npz") as data:
        counts = data["X"].reshape(-1, 1)

    print("states  log-likelihood     AIC     BIC")
    models = [PoissonHMM(k, random_state=0, max_iter=300, tol=1e-8).fit(counts) for k in (1, 2, 3, 4)]
    for model in models:
        score, aic, bic = model.score(counts), model.aic(counts), model.bic(counts)
        print(f"{model.n_components:6d}  {score:14.3f}  {aic:6.1f}  {bic:6.1f}")
    best = min(models, key=lambda model: model.bic(counts))
    print(f"\n{best.n_components} states by BIC, earthquakes a year: {best.lambdas_.ravel().round(1).tolist()}")
    print(f"They stay with probability {best.transmat_.diagonal().round(2).tolist()}.")
    print(f"Expected next year, from all years before: {best.predict_next(counts)[-1, 0]:.1f}.")
    if figure:
        draw(figure, counts.ravel(), best)
        print(f"Figure written to {figure}.")


def draw(path: str, counts: Array, model: PoissonHMM) -> None:
    from matplotlib.figure import Figure

    years = np.arange(1900, 1900 + counts.size)
    drawing = Figure(figsize=(8, 3.6), layout="constrained")
    axes = drawing.subplots()
    axes.plot(years, counts, color="0.6", linewidth=0.8, marker=".", label="major earthquakes")
    axes.step(years, model.lambdas_[model.predict(counts[:, None]), 0], where="mid", label="rate of the decoded state")
    axes.plot(years[1:], model.predict_next(counts[:, None])[:-1, 0], linestyle=":", label="expected a year before")
    axes.set(xlabel="year", ylabel="count")
    axes.legend(frameon=False, ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
