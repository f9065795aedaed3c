"""Decompose a noisy tensor whose components are known, and report how near the answer comes to the truth.

The bounds are those of Theorem 5.1 of the paper: for noise of operator norm eps, every eigenvector is found
within 8 eps / lambda and every eigenvalue within 5 eps.

Run ``python examples/decompose_a_tensor.py``; ``--figure errors.png`` (needs ``odeco[plots]``) draws it too.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

import odeco
from odeco import metrics, simulate

Array = np.ndarray
DIMENSION, RANK = 60, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the errors and their bounds into this file")
    figure = parser.parse_args().figure

    eigenvalues = np.linspace(10.0, 1.0, RANK)
    noise = 0.1 * eigenvalues.min() / np.sqrt(RANK)
    sample = simulate.odeco_tensor(DIMENSION, eigenvalues=eigenvalues, noise=noise, random_state=0)
    print("Until `odeco demo` fits a model, this decomposes a simulated tensor, as all models do.\n")
    print(f"A symmetric {DIMENSION} x {DIMENSION} x {DIMENSION} tensor of {RANK} orthogonal components,")
    print(f"eigenvalues from 10 down to 1, noise of operator norm eps = {noise:.3g}.\n")

    result = odeco.decompose(sample.tensor, random_state=0)  # the rank is found, not given
    start = perf_counter()
    odeco.decompose(sample.tensor, result.rank, random_state=0)
    print(f"{result}\n  time         {1000 * (perf_counter() - start):.0f} ms, once the rank is known\n")

    matching = metrics.match_components(result.eigenvectors, sample.eigenvectors)
    found = result.eigenvalues[matching.permutation]
    value_errors = np.abs(found - eigenvalues)
    print("      eigenvalue             eigenvalue error         eigenvector error")
    print("      true     found         (bound 5 eps)            (bound 8 eps / lambda)")
    for i, true in enumerate(eigenvalues):
        print(
            f"  {true:8.3f}  {found[i]:8.3f}      {value_errors[i]:8.1e} ({5 * noise:.1e})"
            f"       {matching.errors[i]:8.1e} ({8 * noise / true:.1e})"
        )
    used = max(np.max(value_errors) / (5 * noise), np.max(matching.errors * eigenvalues) / (8 * noise))
    print(f"\nThe worst component uses {100 * used:.0f} % of what Theorem 5.1 allows.")
    if figure:
        draw(figure, eigenvalues, value_errors, matching.errors, noise)
        print(f"Figure written to {figure}.")


def draw(path: str, eigenvalues: Array, value_errors: Array, errors: Array, noise: float) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 3.5), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for axes, seen, bound, name in (
        (left, value_errors, np.full_like(eigenvalues, 5 * noise), "eigenvalue"),
        (right, errors, 8 * noise / eigenvalues, "eigenvector"),
    ):
        axes.semilogy(eigenvalues, bound, color="0.6", label="bound of Theorem 5.1")
        axes.semilogy(eigenvalues, seen, "o", color="C0", label="error")
        axes.set(xlabel="true eigenvalue", ylabel=f"{name} error")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    drawing.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
