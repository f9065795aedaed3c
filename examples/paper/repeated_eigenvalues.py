"""Section 6.2: the singular value decomposition of the flattening needs gaps between eigenvalues, the tensor none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import odeco
from examples.paper.gallery import BOUND
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor

TITLE = "Repeated eigenvalues break the singular value decomposition"
PLACE = "Section 6.2"
K, NOISE = 10, 1e-3
GAPS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
METHODS = {"svd": "SVD of the flattening", "power": "Algorithm 1", "auto": "odeco's default"}


def measure(quick: bool = False) -> dict[str, Any]:
    """Median of the largest error in units of eps / lambda_min, eigenvalues 1, 1 + gap, 1 + 2 gap, ..."""
    seeds = range(2 if quick else 20)
    return {
        method: [float(np.median([_largest(method, gap, seed) for seed in seeds])) for gap in GAPS]
        for method in METHODS
    }


def _largest(method: str, gap: float, seed: int) -> float:
    sample = odeco_tensor(K, eigenvalues=1 + gap * np.arange(K), noise=NOISE, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)  # "svd" says that singular values are equal
        found = odeco.decompose(sample.tensor, K, method=method, random_state=seed)
    return match_components(found.eigenvectors, sample.eigenvectors).largest / NOISE


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(6, 3.7)
    axes = figure.subplots()
    shown = [3e-5, *GAPS[1:]]  # no gap, on a logarithmic axis
    for (method, name), color, marker in zip(METHODS.items(), ("C1", "C3", "C0"), "osx", strict=True):
        axes.loglog(shown, result[method], marker=marker, color=color, label=name)
    axes.loglog(shown[1:], 1 / np.array(GAPS[1:]), color="0.7", linewidth=1, label="ε/gap, as for matrices")
    axes.axhline(8, label="Theorem 5.1: 8 ε/λ", **BOUND)
    axes.set_xticks([3e-5, 1e-4, 1e-3, 1e-2, 1e-1], ["equal", "$10^{-4}$", "$10^{-3}$", "$10^{-2}$", "$10^{-1}$"])
    axes.minorticks_off()
    axes.set(
        xlabel="gap between neighbouring eigenvalues, in λ_min", ylabel=r"largest error, in $\epsilon/\lambda_{\min}$"
    )
    axes.set_title(f"k = {K}, ε = {NOISE:g} λ_min")
    axes.legend()


def caption(result: dict[str, Any]) -> str:
    tensor = max(max(result["power"]), max(result["auto"]))
    return (
        f"k = {K}, noise of operator norm {NOISE:g} λ_min. The singular vectors of the flattened tensor are found to "
        f"{result['svd'][-1]:.1f} ε/λ where neighbouring eigenvalues differ by {GAPS[-1]:g} λ_min, and to "
        f"{result['svd'][0]:,.0f} ε/λ, which is not at all, where they are equal. The power method and odeco's default "
        f"never exceed {tensor:.2f} ε/λ: for a tensor, repeated eigenvalues are nothing special."
    )
