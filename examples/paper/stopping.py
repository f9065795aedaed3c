"""Appendix C: the stopping rule accepts what is close to a strong component, and saves restarts."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.paper.gallery import BOUND
from odeco.decomposition.power import extract, power_updates, random_unit
from odeco.simulate import OdecoSample, odeco_tensor
from odeco.tensors import Deflated, ExplicitTensor, SymmetricTensor

TITLE = "The stopping rule of appendix C"
PLACE = "Appendix C, Algorithm 2"
K, NOISE = 20, 0.05  # alpha = 1/20 of the first lemma: noise alpha lambda_min / sqrt(k)
SIZES = (5, 10, 20, 40)
N_ITER = 10


def measure(quick: bool = False) -> dict[str, Any]:
    """Ratio of the condition and distance of many vectors; starts used per component by k."""
    sample = _draw(K, 0)
    tensor = ExplicitTensor(sample.tensor)
    rng = np.random.default_rng(1)
    theta = np.column_stack(
        [power_updates(tensor, random_unit(rng, K, 40 if quick else 300), steps) for steps in (1, 2, 3, 4, 6, 10)]
    )
    sizes = SIZES[:2] if quick else SIZES
    return {
        "ratio": [condition_ratio(tensor, column, K) for column in theta.T],
        "cosine": np.abs(sample.eigenvectors.T @ theta).max(axis=0),
        "k": sizes,
        "starts": [np.mean([_starts_used(k, seed) for seed in range(2 if quick else 10)]) for k in sizes],
    }


def _draw(k: int, seed: int) -> OdecoSample:
    return odeco_tensor(k, eigenvalues=np.linspace(1, 6, k), noise=NOISE / np.sqrt(k), random_state=seed)


def condition_ratio(tensor: SymmetricTensor, theta: Any, r: int) -> float:
    """|T(theta, theta, theta)| over what the condition compares it with: accepted from 1 on."""
    value = abs(float(tensor.values(theta[:, None])[0]))
    return value / max((tensor.norm or 0.0) / (2 * np.sqrt(r)), float(np.linalg.norm(tensor.matrix(theta))) / 1.05)


def _starts_used(k: int, seed: int) -> float:
    """Starts per component, one after the other, until all k are deflated."""
    deflated, rng, used = Deflated(ExplicitTensor(_draw(k, seed).tensor)), np.random.default_rng(seed), 0
    for j in range(k):
        ratio = 0.0
        while ratio < 1 and used < 100 * k:
            theta = power_updates(deflated, random_unit(rng, k, 1), N_ITER)
            ratio, used = condition_ratio(deflated, theta[:, 0], k - j), used + 1
        extract(deflated, power_updates(deflated, theta, N_ITER))
    return used / k


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(9, 3.6)
    left, right = figure.subplots(1, 2)
    ratio, cosine = np.array(result["ratio"]), np.array(result["cosine"])
    for mask, color, name in ((ratio >= 1, "C0", "accepted"), (ratio < 1, "C1", "refused")):
        left.plot(cosine[mask], ratio[mask], ".", color=color, markersize=3, label=f"{name}: {mask.sum()}")
    left.axhline(1, color="0.6", linewidth=1)
    left.axvline(0.9, label=r"lemma: accepted $\Rightarrow\ v_i^\top\theta\geq 1-2\alpha=0.9$", **BOUND)
    left.set(xlabel=r"largest $|v_i^\top\theta|$", ylabel="left side of the condition / right side")
    left.set_title(f"Vectors after 1 to 10 power steps, k = {K}")
    left.set_ylim(top=1.32)
    left.legend(loc="upper left", fontsize=7.5)
    right.loglog(result["k"], result["starts"], "o-", label="Algorithm 2, measured")
    right.loglog(result["k"], np.maximum(10, result["k"]), "s:", color="C4", label="Algorithm 1, L = max(10, k)")
    right.set(xlabel="k", ylabel="random starts per component", ylim=(0.8, 100))
    right.set_xticks(result["k"], [str(k) for k in result["k"]])
    right.minorticks_off()
    right.set_title("Restarts that the rule saves")
    right.legend(loc="upper left")


def caption(result: dict[str, Any]) -> str:
    ratio, cosine = np.array(result["ratio"]), np.array(result["cosine"])
    accepted = ratio >= 1
    return (
        f"Of {len(ratio):,} vectors on their way, the condition accepts {accepted.sum():,}; the least "
        f"|vᵢ'θ| among them is {cosine[accepted].min():.3f}, and the lemma promises 0.9. Of the vectors with |vᵢ'θ| ≥ "
        f"0.99 it refuses {100 * np.mean(~accepted[cosine >= 0.99]):.1f} % (a component weaker than half the root mean "
        f"square waits for its turn). At k = {result['k'][-1]}, Algorithm 2 uses {result['starts'][-1]:.1f} "
        "starts per component where "
        f"Algorithm 1 spends {max(10, result['k'][-1])}."
    )
