"""Section 1: one Newton or EM step from the moment estimate, against each alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

import odeco
from odeco import simulate
from odeco.metrics import match_components

TITLE = "Moments as a start for one step on the likelihood"
PLACE = "Section 1, after Le Cam"
D, WEIGHTS, DEVIATION = 20, np.array([0.4, 0.3, 0.2, 0.1]), 1.0
SIZES = (4_000, 8_000, 16_000, 32_000, 64_000)
SEEDS = 20
WAYS = {
    "moments": "moments alone",
    "moments + Newton": "moments + one Newton (scoring) step",
    "moments + EM": "moments + one EM step",
    "k-means + EM": "one EM step alone (from k-means)",
    "EM": "EM alone to the end (from k-means)",
}


def measure(quick: bool = False) -> dict[str, Any]:
    """Root mean square error of the means over that of maximum likelihood, EM from the true parameters."""
    sizes, seeds = (SIZES[:1], 2) if quick else (SIZES, SEEDS)
    squares = {n: [_squared_errors(n, seed) for seed in range(seeds)] for n in sizes}
    ratios = {
        way: [_root_mean(squares[n], way) / _root_mean(squares[n], "maximum likelihood") for n in sizes] for way in WAYS
    }
    found = [row["EM"] < 4 * row["maximum likelihood"] for rows in squares.values() for row in rows]
    return {"n": sizes, "seeds": seeds, "ratio": ratios, "EM found the optimum": float(np.mean(found))}


def _root_mean(rows: list[dict[str, float]], way: str) -> float:
    return float(np.sqrt(np.mean([row[way] for row in rows])))


def _squared_errors(n: int, seed: int) -> dict[str, float]:
    means = 0.45 * np.random.default_rng(0).standard_normal((len(WEIGHTS), D))
    x = simulate.gaussian_mixture(n, means, WEIGHTS, deviations=DEVIATION, random_state=seed).rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one step does not converge, and is not meant to
        moments = odeco.GaussianMixture(4, refine=None, random_state=seed).fit(x)
        found = {
            "moments": moments.means_,
            "moments + Newton": odeco.GaussianMixture(4, refine="one-step", random_state=seed).fit(x).means_,
            "moments + EM": _em(x, (moments.weights_, moments.means_, moments.covariances_), 1),
            "k-means + EM": _em(x, None, 1, seed),
            "EM": _em(x, None, 500, seed),
            "maximum likelihood": _em(x, (WEIGHTS, means, np.full(4, DEVIATION**2)), 500),
        }
    return {way: float((match_components(m.T, means.T).errors ** 2).mean()) for way, m in found.items()}


def _em(x: Any, start: Any, steps: int, seed: int = 0) -> Any:
    """Means after EM steps of scikit-learn, from given parameters or from its own k-means."""
    given = {}
    if start is not None:
        given = {"weights_init": start[0], "means_init": start[1], "precisions_init": 1 / start[2]}
    peer = Peer(4, covariance_type="spherical", max_iter=steps, tol=1e-7, random_state=seed, **given)
    return peer.fit(x).means_


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(6.8, 4)
    axes = figure.subplots()
    for (way, name), marker, color in zip(WAYS.items(), "soD^v", ("C1", "C0", "C2", "C3", "C4"), strict=True):
        axes.loglog(result["n"], result["ratio"][way], marker=marker, color=color, label=name)
    axes.axhline(1, color="0.35", linewidth=1.3, linestyle=(0, (4, 2)), label="maximum likelihood")
    axes.set(xlabel="samples n", ylabel="error of the means / that of maximum likelihood")
    axes.set_xticks(result["n"], [f"{n:,}" for n in result["n"]])
    axes.minorticks_off()
    top = max(max(values) for values in result["ratio"].values())
    ticks = [t for t in (1, 1.5, 2, 3, 5, 10, 20, 50) if t <= 1.2 * top]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_ylim(0.9, 1.2 * top)
    axes.set_title(f"Four overlapping spheres in {D} dimensions, {result['seeds']} samples each")
    axes.legend(fontsize=8)


def caption(result: dict[str, Any]) -> str:
    last = {way: values[-1] for way, values in result["ratio"].items()}
    return (
        f"Errors in units of what maximum likelihood leaves, four overlapping spheres, n = {result['n'][-1]:,}: "
        f"moments alone {last['moments']:.2f}, with one scoring step {last['moments + Newton']:.2f}, with one EM step "
        f"{last['moments + EM']:.2f}; one EM step from k-means {last['k-means + EM']:.2f}; EM from k-means to the end "
        f"{last['EM']:.2f} (it found the best optimum in {100 * result['EM found the optimum']:.0f} % of all "
        "samples). The paper's introduction promises 1 for one Newton step from the moments, as n grows."
    )
