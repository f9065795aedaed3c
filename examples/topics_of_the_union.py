"""Twenty topics of the State of the Union addresses, and the decades in which presidents spoke of them.

Needs the real text, paragraphs of all addresses since 1790: set ODECO_DATA to the folder that holds ``sotu.npz``.

Run ``python examples/topics_of_the_union.py``; ``--figure union.png`` (needs ``odeco[plots]``) draws the history.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import sparse

import odeco

Array = np.ndarray
N_TOPICS, N_SHOWN = 20, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the history of some topics into this file")
    figure = parser.parse_args().figure
    counts, vocabulary, decade, names = load()
    print(f"{counts.shape[0]:,} paragraphs, {counts.shape[1]:,} words, {names[0]} to {names[-1]}\n")

    start = perf_counter()
    model = odeco.LatentDirichletAllocation(N_TOPICS, random_state=0).fit(counts)
    print(f"fitted in {perf_counter() - start:.1f} s, compilation included where it is the first time\n")
    print(f"{model.diagnostics_}\n")

    words = [vocabulary[top].tolist() for top in distinctive(model)]
    shares = by_decade(model.transform(counts), counts, decade)
    print("share   most in  topic")
    for share, peak, top in zip(shares.mean(axis=0), shares.argmax(axis=0), words, strict=True):
        print(f"{100 * share:4.1f} %   {names[peak]}   {' '.join(top[:9])}")
    if figure:
        draw(figure, shares, words, names)
        print(f"\nFigure written to {figure}.")


def load() -> tuple[sparse.csr_array, Array, Array, list[str]]:
    """Counts, vocabulary, the decade of each paragraph, and the names of the decades."""
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds sotu.npz.")
    with np.load(Path(folder) / "sotu.npz") as data:
        parts = (data["counts_data"], data["counts_indices"], data["counts_indptr"])
        counts = sparse.csr_array(parts, shape=tuple(data["counts_shape"]))
        return counts, data["vocab"], data["y"], data["y_names"].tolist()


def distinctive(model: odeco.LatentDirichletAllocation) -> Array:
    """Words of each topic, those first that are frequent in it and rarer elsewhere: by p log(p / mean)."""
    topics = model.components_
    mean = model.alpha_ @ topics / model.alpha0_
    return np.argsort(-topics * np.log(topics / mean), axis=1)


def by_decade(proportions: Array, counts: sparse.csr_array, decade: Array) -> Array:
    """Share of each topic in all the words of a decade (decades, topics)."""
    lengths = counts.sum(axis=1)
    belongs = sparse.csr_array((lengths, (decade, np.arange(len(decade)))))
    totals = belongs @ proportions
    return totals / totals.sum(axis=1, keepdims=True)


def draw(path: str, shares: Array, words: list[list[str]], names: list[str]) -> None:
    """From the first presidents to the last: of each few topics in order of time, the one that is most of its time."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    decades = np.arange(len(names))
    middle = decades @ shares / shares.sum(axis=0)
    concentration = shares.max(axis=0) / shares.mean(axis=0)
    groups = np.array_split(np.argsort(middle), N_SHOWN)
    shown = [group[concentration[group].argmax()] for group in groups]
    drawing = Figure(figsize=(9, 7.2), layout="constrained")
    drawing.suptitle("Share of topics in what presidents told the Congress, each scaled to its own peak", fontsize=12)
    rows = drawing.subplots(len(shown), 1, sharex=True)
    colours = colormaps["viridis"](np.linspace(0.05, 0.85, len(shown)))
    for axes, topic, colour in zip(rows, shown, colours, strict=True):
        axes.fill_between(decades, 100 * shares[:, topic], color=colour, alpha=0.85, linewidth=0)
        peak = int(shares[:, topic].argmax())
        axes.annotate(
            f"{100 * shares[peak, topic]:.0f} %",
            (peak, 100 * shares[peak, topic]),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color="0.3",
        )
        axes.set_ylabel(
            f"{', '.join(words[topic][:3])},\n{', '.join(words[topic][3:6])}",
            rotation=0,
            ha="right",
            va="center",
            fontsize=9,
        )
        axes.set(yticks=[], ylim=(0, 100 * shares[peak, topic]))
        axes.spines[["top", "right", "left"]].set_visible(False)
    rows[-1].set(xticks=decades[1::3], xticklabels=names[1::3], xlim=(0, len(names) - 1))
    drawing.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
