"""Separate nine voices from eighteen noisy microphones, and compare with FastICA.

Needs the real recordings: set ODECO_DATA to the folder that holds ``alsa_voices.npz``.

Run ``python examples/ica_voices.py``; ``--figure voices.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA

from odeco import ICA, MomentWarning

Array = np.ndarray
CHANNELS, NOISE = 18, 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw a voice, a microphone and the estimates into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds alsa_voices.npz.")
    with np.load(Path(folder) / "alsa_voices.npz") as data:
        sources, names = data["S"].astype(np.float64), data["channels"].tolist()
    sources = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((CHANNELS, sources.shape[1]))
    noise = NOISE * rng.standard_normal((len(sources), CHANNELS))
    microphones = sources @ mixing.T + noise

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)  # one of the nine is Gaussian noise: said below
        ica = ICA(len(names), random_state=0).fit(microphones)
    peer = FastICA(len(names), whiten="unit-variance", random_state=0, max_iter=1000, tol=1e-3).fit(microphones)
    print(f"{len(names)} voices, {CHANNELS} microphones, noise {NOISE}\n\n{ica.diagnostics_}\n")
    ours, theirs = (decibels(model.components_, mixing, noise) for model in (ica, peer))
    print("signal to interference and noise, dB    odeco  FastICA")
    for name, first, second in zip(names, ours.max(axis=0), theirs.max(axis=0), strict=True):
        print(f"  {name:36s}  {first:5.1f}  {second:7.1f}")
    means = [ratio[linear_sum_assignment(-ratio)].mean() for ratio in (ours, theirs)]
    print(f"  {'mean':36s}  {means[0]:5.1f}  {means[1]:7.1f}")
    if figure:
        shown = int(np.argmax(ours.max(axis=0) - theirs.max(axis=0)))
        outputs = [
            (f"the voice, {names[shown].replace('_', ' ')!r}", sources[:, shown]),
            ("a microphone", microphones[:, int(np.argmax(np.abs(mixing[:, shown])))]),
            ("odeco", best(ica.transform(microphones), sources[:, shown])),
            ("FastICA", best(peer.transform(microphones), sources[:, shown])),
        ]
        draw(figure, outputs)
        print(f"Figure written to {figure}.")


def decibels(components: Array, mixing: Array, noise: Array) -> Array:
    """Signal to interference and noise of every output (rows) for every source of unit variance (columns)."""
    gain = (components @ mixing) ** 2
    rest = gain.sum(axis=1, keepdims=True) - gain + np.var(noise @ components.T, axis=0)[:, None]
    return 10 * np.log10(gain / rest)


def best(outputs: Array, source: Array) -> Array:
    """The output most like the source, with its sign."""
    likeness = outputs.T @ source / np.linalg.norm(outputs, axis=0)
    index = int(np.argmax(np.abs(likeness)))
    return outputs[:, index] * np.sign(likeness[index])


def draw(path: str, signals: list[tuple[str, Array]]) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 5), layout="constrained")
    for axes, (name, signal) in zip(drawing.subplots(len(signals), 1, sharex=True), signals, strict=True):
        axes.plot(np.arange(len(signal)) / 48_000, signal / np.abs(signal).max(), linewidth=0.3)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.set(yticks=[])
        axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("seconds")
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
