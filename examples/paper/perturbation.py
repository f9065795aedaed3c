"""Theorem 5.1: errors of Algorithm 1 against the bounds 8 eps / lambda, 5 eps and 55 eps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import odeco
from examples.paper.gallery import BOUND, plain_ticks
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor
from odeco.tensors import operator_norm_lower_bound, rank_one_sum
from odeco.theory import perturbation_bounds

TITLE = "Errors of Algorithm 1 against the bounds of Theorem 5.1"
PLACE = "Theorem 5.1"
SEEDS = {5: 20, 10: 20, 20: 10, 40: 4}
NOISE = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0)  # times lambda_min / sqrt(k)
PARTS = {"vectors": 8, "values": 5, "tensor": 55}


def measure(quick: bool = False) -> dict[str, Any]:
    """The worst errors in units of eps (over lambda, for vectors), by k and noise."""
    seeds = {5: 3, 10: 2} if quick else SEEDS
    return {
        method: {str(k): [_worst(method, k, level, count) for level in NOISE] for k, count in seeds.items()}
        for method in ("power", "auto")
    }


def _worst(method: str, k: int, level: float, n_seeds: int) -> dict[str, float]:
    epsilon = level / np.sqrt(k)
    rows = [_errors(method, k, epsilon, seed) for seed in range(n_seeds)]
    return {part: float(np.max([row[part] for row in rows])) for part in PARTS}


def _errors(method: str, k: int, epsilon: float, seed: int) -> dict[str, float]:
    sample = odeco_tensor(k, eigenvalues=np.linspace(1, 3, k), noise=epsilon, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)  # past the theorem's condition it says so
        found = odeco.decompose(sample.tensor, k, method=method, random_state=seed)
    matching = match_components(found.eigenvectors, sample.eigenvectors)
    left = rank_one_sum(sample.eigenvalues, sample.eigenvectors) - found.reconstruct()
    bounds = perturbation_bounds(sample.eigenvalues, epsilon)
    values = np.abs(found.eigenvalues[matching.permutation] - sample.eigenvalues)
    return {
        "vectors": PARTS["vectors"] * float((matching.errors / bounds.eigenvectors).max()),
        "values": PARTS["values"] * float(values.max() / bounds.eigenvalues),
        "tensor": PARTS["tensor"] * operator_norm_lower_bound(left, random_state=seed).value / bounds.tensor,
    }


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(10, 3.5)
    titles = {
        "vectors": (r"$\|v_i-\hat v_i\|\,\lambda_i/\epsilon$", r"Eigenvectors: $8\epsilon/\lambda_i$"),
        "values": (r"$|\lambda_i-\hat\lambda_i|/\epsilon$", r"Eigenvalues: $5\epsilon$"),
        "tensor": (r"$\|T-\sum_j\hat\lambda_j\hat v_j^{\otimes3}\|/\epsilon$", r"Tensor: $55\epsilon$"),
    }
    for axes, (part, bound) in zip(figure.subplots(1, 3, sharex=True), PARTS.items(), strict=True):
        for i, (k, rows) in enumerate(result["power"].items()):
            axes.loglog(NOISE, [row[part] for row in rows], "o-", color=f"C{i}", label=f"Algorithm 1, k = {k}")
        k, rows = list(result["auto"].items())[-1]
        axes.loglog(NOISE, [row[part] for row in rows], "x:", color="C6", label=f"odeco's default, k = {k}")
        axes.axhline(bound, label="bound of Theorem 5.1", **BOUND)
        axes.set(xlabel=r"$\epsilon$, in $\lambda_{\min}/\sqrt{k}$", ylabel=titles[part][0])
        axes.set_title(titles[part][1])
        axes.set_ylim(top=2 * bound)
        plain_ticks(axes.yaxis)
    figure.axes[2].legend(loc="center", fontsize=7.5)


def caption(result: dict[str, Any]) -> str:
    small = {
        k: {part: max(row[part] for row, level in zip(rows, NOISE, strict=True) if level <= 1) for part in PARTS}
        for k, rows in result["power"].items()
    }
    by_k = "; ".join(
        f"k = {k}: {worst['vectors']:.2f} ε/λ, {worst['values']:.2f} ε, {worst['tensor']:.1f} ε"
        for k, worst in small.items()
    )
    change = list(small.values())[-1]["vectors"] / next(iter(small.values()))["vectors"]
    growth = f"The vector error at the largest k is {change:.2f} times that at the smallest: "
    growth += "no factor of k enters, as the theorem says." if change < 1.5 else "it grows with k."
    return (
        "Algorithm 1 is allowed errors of 8 ε/λᵢ in eigenvectors, 5 ε in eigenvalues and 55 ε in the tensor. Its worst "
        "over all seeds, up to noise of ε = λ_min/√k, which is more than the C₁ λ_min/k of the theorem, are "
        f"{by_k}. {growth}"
    )
