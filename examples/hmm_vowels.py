"""Nine speakers, one vowel sequence each: who said it? One Gaussian hidden Markov model for each speaker.

Needs the Japanese vowels (Kudo et al. 1999): set ODECO_DATA to the folder that holds ``japanese_vowels.npz``.

Run ``python examples/hmm_vowels.py``; ``--figure vowels.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from odeco import GaussianHMM

Array = np.ndarray
STATES = (1, 2, 3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw who is taken for whom into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds japanese_vowels.npz.")
    with np.load(Path(folder) / "japanese_vowels.npz") as data:
        utterances = np.split(data["X"].astype(float), np.cumsum(data["lengths"])[:-1])
        speakers, test = data["y_seq"], data["split"] == 1
    names = np.unique(speakers)

    print("states  right of the test utterances")
    tables = []
    for k in STATES:
        models = [train(utterances, (speakers == name) & ~test, k) for name in names]
        scores = np.array([[model.score(utterances[i]) for model in models] for i in np.flatnonzero(test)])
        guesses = names[scores.argmax(axis=1)]
        print(f"{k:6d}  {np.mean(guesses == speakers[test]):.3f}")
        tables.append([[np.sum((speakers[test] == a) & (guesses == b)) for b in names] for a in names])
    if figure:
        draw(figure, np.array(tables[-1]))
        print(f"Figure written to {figure}.")


def train(utterances: list[Array], chosen: Array, n_states: int) -> GaussianHMM:
    """A model of the chosen utterances."""
    return GaussianHMM(n_states, random_state=0, max_iter=30).fit([utterances[i] for i in np.flatnonzero(chosen)])


def draw(path: str, table: Array) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(4.4, 4), layout="constrained")
    axes = drawing.subplots()
    axes.imshow(table / table.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(table):
        if count:
            axes.text(j, i, count, ha="center", va="center", color="white" if i == j else "black")
    axes.set(xlabel="taken for", ylabel="speaker", xticks=range(len(table)), yticks=range(len(table)))
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
