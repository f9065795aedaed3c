"""Restarts of Algorithm 1 against k: what the theorem asks for, and how often one random start is good enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.paper.gallery import BOUND, slope
from odeco.decomposition.power import power_updates, random_unit
from odeco.simulate import odeco_tensor
from odeco.tensors import ExplicitTensor
from odeco.theory import restarts_needed

TITLE = "Restarts needed against k"
PLACE = "Theorem 5.1, the condition on L"
SIZES = (4, 8, 16, 32, 64)
NOISE = (0.4, 0.8, 1.0, 1.2)  # times lambda: beyond where the noise is as large as the signal
ETA = 0.1
C3 = 1.0  # the theorem does not name it; the curve hardly depends on it
STARTS, STEPS = 1000, 40
NEAR = 0.5  # 8 eps / lambda would be met by anything at such noise


def measure(quick: bool = False) -> dict[str, Any]:
    """Share of random starts that end near a component, by noise and k; L of the theorem."""
    sizes = SIZES[:2] if quick else SIZES
    starts = 200 if quick else STARTS
    return {
        "k": sizes,
        "starts": starts,
        "share": {str(level): [_good_share(k, level, starts) for k in sizes] for level in NOISE},
        "theorem": [restarts_needed(k, ETA, c3=C3) for k in sizes],
    }


def _good_share(k: int, level: float, starts: int) -> float:
    """Two tensors of equal eigenvalues, for which no component is easier to hit than another."""
    good = []
    for seed in range(2):
        sample = odeco_tensor(k, noise=level, random_state=seed)
        theta = random_unit(np.random.default_rng(100 + seed), k, starts // 2)
        theta = power_updates(ExplicitTensor(sample.tensor), theta, STEPS)
        cosines = (sample.eigenvectors.T @ theta).max(axis=0)
        good.append(np.sqrt(np.maximum(2 - 2 * cosines, 0)) <= NEAR)
    return float(np.mean(good))


def needed(share: float, k: int) -> float:
    """Starts until one is good with probability 1 - eta / k, so that all k calls succeed with 1 - eta."""
    if share in (0.0, 1.0):
        return 1.0 if share else float("nan")
    return max(1.0, float(np.log(ETA / k) / np.log1p(-share)))


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(9, 3.7)
    left, right = figure.subplots(1, 2)
    k = np.array(result["k"])
    for i, (level, shares) in enumerate(result["share"].items()):
        name = rf"$\epsilon={float(level):g}\,\lambda$"
        left.semilogx(k, shares, "o-", color=f"C{i}", label=name)
        right.loglog(k, [needed(s, n) for s, n in zip(shares, k, strict=True)], "o-", color=f"C{i}", label=name)
    right.loglog(k, result["theorem"], label=f"Theorem 5.1, η = {ETA}, C₃ = {C3:g}", **BOUND)
    right.loglog(k, k, color="0.7", linewidth=1, label="L = k (odeco's default from k = 10)")
    left.set(xlabel="k", ylabel="share of random starts", ylim=(0, 1.03))
    left.set_title(r"Starts that end within $\|v_i-\theta\|\leq 1/2$")
    right.set(xlabel="k", ylabel="L")
    right.set_title(f"Restarts for success with probability {1 - ETA:g}")
    right.legend(fontsize=7.5)
    left.legend(loc="lower left")
    for axes in (left, right):
        axes.set_xticks(k, [str(n) for n in k])
        axes.minorticks_off()


def caption(result: dict[str, Any]) -> str:
    k = result["k"][-1]
    counts = ", ".join(
        f"{needed(shares[-1], k):.0f} at ε = {float(level):g} λ"
        if shares[-1]
        else f"none found at ε = {float(level):g} λ"
        for level, shares in result["share"].items()
    )
    typical = "The noise here is Gaussian; the theorem covers any, and does not claim to be sharp. "
    return (
        f"How many random starts let all k calls of Algorithm 1 succeed with probability {1 - ETA:g}: at k = {k} the "
        f"measured share of good starts asks for {counts}; the theorem's condition asks for "
        f"{result['theorem'][-1]:.2g} and grows as k^{slope(result['k'], result['theorem']):.1f} here "
        "(its exponent tends to 1 for very large k). "
        f"{typical}The default method of `decompose` uses no restarts at all."
    )
