"""Segment the DNA of phage lambda by its composition, with two and three hidden states.

Needs the sequence (NC_001416): set ODECO_DATA to the folder that holds ``lambda_phage.npz``.

Run ``python examples/lambda_phage.py``; ``--figure phage.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from odeco import CategoricalHMM, MomentWarning

BASES = "ACGT"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the states along the genome into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds lambda_phage.npz.")
    bases = read_bases(Path(folder) / "lambda_phage.npz")

    models = {}
    for k in (2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MomentWarning)  # bases are nearly independent: printed below
            models[k] = CategoricalHMM(k, n_features=4, tol=1e-8, max_iter=300, random_state=0).fit(bases)
        model = models[k]
        print(
            f"{k} states: log-likelihood {model.score(bases):.1f}, BIC {model.bic(bases):.1f}, {model.n_iter_} passes"
        )
        print("  state  " + "  ".join(f"   {base}" for base in BASES) + "   mean length")
        for state in range(k):
            length = 1 / (1 - model.transmat_[state, state])
            row = "  ".join(f"{p:.2f}" for p in model.emissionprob_[state])
            print(f"  {state:5d}  {row}   {length:11.0f}")
        for text in model.diagnostics_.advice:
            print(f"  advice: {text}")
    if figure:
        draw(figure, bases, models[2].predict_proba(bases))
        print(f"Figure written to {figure}.")


def read_bases(path: Path) -> np.ndarray:
    """The bases as 0 to 3, in the order A C G T."""
    with np.load(path) as data:
        values = data[data.files[0]] if "X" not in data.files else data["X"]
    values = values.ravel()
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return np.searchsorted(np.array(list(BASES)), values).astype(np.int64)


def draw(path: str, bases: np.ndarray, posterior: np.ndarray, window: int = 500) -> None:
    """Share of G and C in windows, and the posterior of the states, along the genome."""
    from matplotlib.figure import Figure

    places = np.arange(len(bases)) / 1000
    kernel = np.ones(window) / window
    share = np.convolve(np.isin(bases, [1, 2]).astype(float), kernel, mode="same")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.plot(places, share, color="C0", linewidth=0.8)
    top.set(ylabel="share of G + C", ylim=(0.2, 0.8), title="Phage lambda, windows of 500 bases")
    bottom.fill_between(places, posterior[:, 1], color="C1", linewidth=0)
    bottom.set(ylabel="Pr[state 1]", xlabel="position, thousands of bases", ylim=(0, 1), xlim=(0, places[-1]))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
