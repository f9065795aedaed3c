"""Find the heart beat of a child in eight electrodes on its mother's skin.

Needs the real recording (DaISy, KU Leuven): set ODECO_DATA to the folder that holds ``foetal_ecg.npz``.

Run ``python examples/ica_foetal_ecg.py``; ``--figure ecg.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from odeco import ICA, MomentWarning

Array = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw an electrode and both hearts into this file")
    figure = parser.parse_args().figure
    folder = os.environ.get("ODECO_DATA")
    if not folder:
        sys.exit("Set ODECO_DATA to the folder that holds foetal_ecg.npz.")
    with np.load(Path(folder) / "foetal_ecg.npz") as data:
        electrodes, rate, names = data["X"], float(data["fs"]), data["channels"].tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)  # printed below
        ica = ICA(random_state=0).fit(electrodes)
    print(f"{ica.diagnostics_}\n\nsource  kurtosis  beats a minute  regularity")
    sources = ica.transform(electrodes)
    beats = [beats_per_minute(source, rate) for source in sources.T]
    for index, (kurtosis, (pulse, regularity)) in enumerate(zip(ica.kurtosis_, beats, strict=True)):
        print(f"{index:6d}  {kurtosis:8.1f}  {pulse:14.0f}  {regularity:10.2f}")
    foetal = max((i for i, (pulse, _) in enumerate(beats) if pulse > 110), key=lambda i: beats[i][1])
    maternal = max((i for i, (pulse, _) in enumerate(beats) if pulse < 110), key=lambda i: beats[i][1])
    strongest = names[int(np.argmax(np.abs(ica.mixing_[:, foetal]) / electrodes.std(axis=0)))]
    print(f"\nThe child: source {foetal}, {beats[foetal][0]:.0f} beats a minute, clearest at electrode {strongest}.")
    if figure:
        shown = names.index(strongest)
        draw(
            figure,
            [
                (f"electrode {strongest}", electrodes[:, shown]),
                (f"mother, {beats[maternal][0]:.0f} / min", sources[:, maternal]),
                (f"child, {beats[foetal][0]:.0f} / min", sources[:, foetal]),
            ],
            rate,
        )
        print(f"Figure written to {figure}.")


def beats_per_minute(signal: Array, rate: float) -> tuple[float, float]:
    """The strongest period of the energy between 50 and 200 beats a minute, and its autocorrelation."""
    energy = np.convolve(signal**2, np.ones(5) / 5, "same")
    energy = energy - energy.mean()
    correlation = np.correlate(energy, energy, "full")[len(energy) - 1 :] / (energy @ energy)
    low, high = int(rate * 60 / 200), int(rate * 60 / 50)
    lag = low + int(np.argmax(correlation[low:high]))
    return 60 * rate / lag, float(correlation[lag])


def draw(path: str, signals: list[tuple[str, Array]], rate: float) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 4.5), layout="constrained")
    for axes, (name, signal) in zip(drawing.subplots(len(signals), 1, sharex=True), signals, strict=True):
        axes.plot(np.arange(len(signal)) / rate, signal, linewidth=0.7)
        axes.set(ylabel=name, yticks=[])
        axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("seconds")
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
