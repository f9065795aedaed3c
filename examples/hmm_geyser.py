"""How Old Faithful alternates: a Gaussian hidden Markov model of waiting times and eruptions.

Needs the record (Azzalini and Bowman 1990): set ODECO_DATA to the folder that holds ``geyser.npz``.

Run ``python examples/hmm_geyser.py``; ``--figure geyser.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from odeco import GaussianHMM, MomentWarning

Array = np.ndarray
STATES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the eruptions and their states into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds geyser.npz.")
    with np.load(Path(folder) / "geyser.npz") as data:
        eruptions, columns = data["X"].astype(float), data["columns"].tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)  # durations of exactly 2 and 4 minutes: printed below
        model = GaussianHMM(STATES, covariance_type="full", random_state=0).fit(eruptions)
    print(f"{model.diagnostics_}\n\nstate  share  " + "  ".join(f"{name:>9s}" for name in columns) + "   goes to")
    for j, share in enumerate(model.get_stationary_distribution()):
        means = "  ".join(f"{value:9.1f}" for value in model.means_[j])
        print(f"{j:5d}  {share:5.2f}  {means}   {model.transmat_[j].round(2).tolist()}")
    ahead = model.predict_next(eruptions)[:-1]
    error, spread = (ahead - eruptions[1:]).std(axis=0), eruptions[1:].std(axis=0)
    print(f"\nOf the variance of the next eruption the past explains {(1 - (error / spread) ** 2).round(2).tolist()}.")
    if figure:
        draw(figure, eruptions, model, columns)
        print(f"Figure written to {figure}.")


def draw(path: str, eruptions: Array, model: GaussianHMM, columns: list[str]) -> None:
    from matplotlib.figure import Figure

    states = model.predict(eruptions)
    drawing = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2, width_ratios=[1, 1.6])
    circle = np.linspace(0, 2 * np.pi, 100)
    for j in range(model.n_components):
        left.scatter(*eruptions[states == j].T, s=8, color=f"C{j}")
        ellipse = model.means_[j][:, None] + 2 * np.linalg.cholesky(model.covars_[j]) @ [np.cos(circle), np.sin(circle)]
        left.plot(*ellipse, color=f"C{j}")
        right.plot(np.flatnonzero(states == j), eruptions[states == j, 0], ".", color=f"C{j}", label=f"state {j}")
    right.plot(eruptions[:, 0], color="0.8", linewidth=0.5, zorder=0)
    left.set(xlabel=columns[0], ylabel=columns[1])
    right.set(xlabel="eruption", ylabel=columns[0], xlim=(0, 120))
    right.legend(frameon=False, ncols=3, loc="upper right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
