"""Let a hidden chain read a text letter by letter: with two states it finds the vowels by itself.

The text are the first ten chapters of Moby-Dick (Herman Melville, 1851, in the public domain; `data/README.md` says
where they come from).

Run ``python examples/vowels_and_consonants.py``; ``--figure letters.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from odeco import CategoricalHMM

TEXT = Path(__file__).parent / "data" / "moby_dick.txt"
LETTERS = "_abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the letters of each state into this file")
    figure = parser.parse_args().figure
    symbols = letters(TEXT.read_text(encoding="utf-8"))
    model = CategoricalHMM(2, n_features=27, random_state=0).fit(symbols)
    posterior = model.predict_proba(symbols)
    print(
        f"{len(symbols):,} letters, {model.n_iter_} passes, {model.score(symbols) / len(symbols):.4f} nats per letter"
    )
    shares = np.array(
        [posterior[symbols == s].mean(axis=0) if (symbols == s).any() else [np.nan] * 2 for s in range(27)]
    )
    for state in range(2):
        mine = [LETTERS[s] for s in np.argsort(-shares[:, state]) if shares[s, state] > 0.5]
        print(f"state {state}: {' '.join(mine)}")
    if figure:
        draw(figure, shares)
        print(f"Figure written to {figure}.")


def letters(text: str) -> np.ndarray:
    """a to z as 1 to 26, everything between words one 0."""
    codes = np.frombuffer(text.lower().encode("ascii", "replace"), dtype=np.uint8).astype(int) - 96
    codes[(codes < 1) | (codes > 26)] = 0
    return codes[np.concatenate([[True], (codes[1:] > 0) | (codes[:-1] > 0)])]


def draw(path: str, shares: np.ndarray) -> None:
    """For each letter, how often it comes from state 1."""
    from matplotlib.figure import Figure

    order = [s for s in np.argsort(shares[:, 1]) if np.isfinite(shares[s, 1])]
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(order)), shares[order, 1], color=["C1" if LETTERS[s] in "aeiou" else "C0" for s in order])
    axes.set_xticks(range(len(order)), [LETTERS[s] for s in order])
    axes.set(
        ylabel="share from state 1", title="Letters by hidden state; vowels in orange, _ is the space", ylim=(0, 1)
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
