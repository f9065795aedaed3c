"""Lemma 5.1: the power method doubles its correct digits at every step, within a bound known from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.paper.gallery import BOUND
from odeco.decomposition.power import power_updates, random_unit
from odeco.simulate import odeco_tensor
from odeco.tensors import ExplicitTensor
from odeco.theory import quadratic_convergence_bound

TITLE = "Quadratic convergence of the power method"
PLACE = "Lemma 5.1"
K, STEPS, DRAWN = 20, 24, 14
ROUNDING = 1e-29  # squared errors below are those of double precision
SHOWN = (0.1, 0.5, 0.9)  # quantiles of |lambda_2 c_2 / lambda_1 c_1| whose starts are drawn


def measure(quick: bool = False) -> dict[str, Any]:
    """Squared errors and bounds (starts, steps), sorted by how hard the start is."""
    sample = odeco_tensor(K, eigenvalues=np.linspace(1, 3, K), random_state=0)
    tensor, values = ExplicitTensor(sample.tensor), sample.eigenvalues
    theta = random_unit(np.random.default_rng(1), K, 50 if quick else 500)
    overlaps = sample.eigenvectors.T @ theta
    strength = np.sort(np.abs(values[:, None] * overlaps), axis=0)
    ratios = strength[-2] / strength[-1]
    targets = sample.eigenvectors[:, np.argmax(np.abs(values[:, None] * overlaps), axis=0)]
    errors, bounds = [], []
    for t in range(1, STEPS + 1):
        theta = power_updates(tensor, theta, 1)
        errors.append(((theta - targets) ** 2).sum(axis=0))
        bounds.append([quadratic_convergence_bound(values, c, t) for c in overlaps.T])
    order = np.argsort(ratios)
    error, bound = np.array(errors).T[order], np.array(bounds).T[order]
    meaningful = error > ROUNDING
    return {
        "ratios": [float(np.quantile(ratios, q)) for q in SHOWN],
        "errors": [error[int(q * len(order))] for q in SHOWN],
        "bounds": [bound[int(q * len(order))] for q in SHOWN],
        "starts": len(order),
        "largest share of the bound": float((error[meaningful] / bound[meaningful]).max()),
        "steps to 1e-12": [int(np.argmax(row < 1e-24)) + 1 for row in error if row[-1] < 1e-24],
        "matrix": _matrix_errors(values),
    }


def _matrix_errors(values: Any) -> Any:
    """The same for power steps of the matrix with these eigenvalues, from equal coordinates."""
    coordinates = np.ones(len(values))
    errors = []
    for _ in range(STEPS):
        coordinates = coordinates * values / values.max()
        errors.append(float(2 - 2 * coordinates.max() / np.linalg.norm(coordinates)))
    return errors


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(9, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    steps = np.arange(1, DRAWN + 1)
    for i, (ratio, error, bound) in enumerate(zip(result["ratios"], result["errors"], result["bounds"], strict=True)):
        left.semilogy(steps, error[:DRAWN], "o-", color=f"C{i}", label=f"start with ratio {ratio:.2f}")
        left.semilogy(steps, bound[:DRAWN], color=f"C{i}", linestyle=BOUND["linestyle"], linewidth=BOUND["linewidth"])
    left.semilogy(steps, result["matrix"][:DRAWN], ".:", color="0.5", label="matrix of the same eigenvalues")
    left.plot([], [], label="bound of Lemma 5.1", **BOUND)
    left.axhspan(1e-34, ROUNDING, color="0.93")
    left.annotate("double precision", (0.8, 1e-30), ha="left", va="top", color="0.4", fontsize=8)
    left.set(
        xlim=(0.5, 21),
        xticks=range(2, DRAWN + 1, 2),
        ylim=(1e-33, 1e4),
        xlabel="power steps t",
        ylabel=r"$\|v_1-\theta_t\|^2$",
    )
    left.set_title("Each step squares the error")
    left.legend(loc="center right", bbox_to_anchor=(1, 0.6))
    counts = result["steps to 1e-12"]
    right.hist(counts, bins=np.arange(min(counts) - 0.5, max(counts) + 1.5), color="C0", edgecolor="white")
    right.set(xlabel=r"steps until $\|v_1-\theta_t\|<10^{-12}$", ylabel="random starts")
    right.set_title(f"{result['starts']} starts, k = {K}")


def caption(result: dict[str, Any]) -> str:
    counts = result["steps to 1e-12"]
    return (
        f"From {result['starts']} random starts on a tensor of {K} components with eigenvalues from 1 to 3, the "
        f"squared error is at most {100 * result['largest share of the bound']:.0f} % of the lemma's bound, at any "
        f"step. What decides is the ratio of the two largest |λᵢ vᵢ'θ₀|: {len(counts)} starts came to "
        f"twelve digits, in {np.median(counts):.0f} steps as a rule and {max(counts)} at most. A matrix of the same "
        "eigenvalues converges linearly."
    )
