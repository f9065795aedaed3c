"""Deflation: the last component is as good as the first, because errors stay in directions already found."""

from __future__ import annotations

from typing import Any

import numpy as np

import odeco
from examples.paper.gallery import BOUND
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor

TITLE = "Deflation does not accumulate errors"
PLACE = "Section 5.2 and the deflation lemma of appendix B"
K, NOISE = 30, 0.1  # times lambda / sqrt(k)


def measure(quick: bool = False) -> dict[str, Any]:
    """By the order of extraction, means over tensors: errors, and what deflation leaves along two kinds of vectors."""
    runs = [_run(seed) for seed in range(2 if quick else 12)]
    mean = {name: np.mean([run[name] for run in runs], axis=0) for name in ("error", "found", "new", "bound")}
    return mean | {"tensors": len(runs), "worst": float(np.max([run["error"] for run in runs]))}


def _run(seed: int) -> dict[str, Any]:
    epsilon = NOISE / np.sqrt(K)
    sample = odeco_tensor(K, noise=epsilon, random_state=seed)
    result = odeco.decompose(sample.tensor, K, method="power", random_state=seed)
    matching = match_components(result.eigenvectors, sample.eigenvectors)
    order = np.argsort(matching.permutation)  # true components in the order in which they were extracted
    true, errors = sample.eigenvectors[:, order], matching.errors[order]
    values = np.abs(result.eigenvalues - 1)
    # The lemma's eps~ is whatever bounds |lambda^ - lambda| and ||v^ - v|| / 2: here it is measured.
    level = max(float(values.max()), float(errors.max()) / 2)
    rng = np.random.default_rng(seed)
    sizes = np.array([_left_over(true, result, t, rng) for t in range(1, K)]) / epsilon
    bounds = [lemma_bound(level, t) / epsilon for t in range(1, K)]
    return {"error": errors / epsilon, "found": sizes[:, 0], "new": sizes[:, 1], "bound": bounds}


def _left_over(true: Any, result: Any, t: int, rng: np.random.Generator) -> tuple[float, float]:
    """The largest ||sum over i <= t of E_i(I, u, u)|| over unit u among what was found, and among what was not."""

    def size(directions: Any) -> float:
        u = directions @ rng.standard_normal((directions.shape[1], 200))
        u /= np.linalg.norm(u, axis=0)
        u = np.column_stack([u, directions])
        exact = true[:, :t] @ (true[:, :t].T @ u) ** 2
        found = result.eigenvectors[:, :t] @ (result.eigenvalues[:t, None] * (result.eigenvectors[:, :t].T @ u) ** 2)
        return float(np.linalg.norm(exact - found, axis=0).max())

    return size(true[:, :t]), size(true[:, t:])


def lemma_bound(level: float, t: int) -> float:
    """The deflation lemma's bound for u orthogonal to v_1 .. v_t, every eigenvalue 1."""
    squares = 64 * (1 + level) ** 2 * level**2 * t * level**2
    cubes = 2048 * (1 + level) ** 2 * level**2 * (t * level**3) ** 2
    return float(np.sqrt(squares + cubes))


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(9, 3.6)
    left, right = figure.subplots(1, 2)
    j = np.arange(1, K + 1)
    first = result["error"][0]
    left.semilogy(j, result["error"], "o", label="measured")
    left.semilogy(j, first * j, color="0.6", linestyle=":", label="if every deflation added as much")
    left.axhline(8, label="Theorem 5.1: 8", **BOUND)
    left.set(xlabel="component, in the order of extraction", ylabel=r"$\|v_j-\hat v_j\|\,\lambda/\epsilon$")
    left.set_title("The last is as good as the first")
    left.legend(loc="center right")
    t = np.arange(1, K)
    right.semilogy(t, result["found"], "s-", color="C1", label="directions already found")
    right.semilogy(t, result["new"], "o-", color="C0", label="directions still to come")
    right.semilogy(t, result["bound"], label="deflation lemma, directions to come", **BOUND)
    right.set(xlabel="components deflated t", ylabel=r"$\|\sum_{i\leq t}\mathcal{E}_i(I,u,u)\|\,/\,\epsilon$")
    right.set_title("Why: what deflation leaves behind")
    right.legend(loc="center right", fontsize=7.5)


def caption(result: dict[str, Any]) -> str:
    error = result["error"]
    return (
        f"{result['tensors']} tensors of {K} equal components, ε = {NOISE:g} λ/√k. Mean error of the first five "
        f"components that Algorithm 1 extracts: {np.mean(error[:5]):.2f} ε/λ; of the last five: "
        f"{np.mean(error[-5:]):.2f} ε/λ. Errors of deflation are of the order of ε along vectors already found and "
        f"{result['found'][-1] / result['new'][-1]:.0f} times smaller, of second order in ε, along those still to come."
    )
