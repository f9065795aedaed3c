"""Fit twenty data sets of 12 clusters by moments, and by EM from k-means: which of them find all clusters?

Run ``python examples/gaussian_clusters.py``; ``--figure clusters.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

from odeco import GaussianMixture, simulate
from odeco.metrics import match_components

Array = np.ndarray
N, D, K, SEPARATION, SEEDS = 20_000, 30, 12, 6.0, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw a data set and the likelihoods into this file")
    figure = parser.parse_args().figure
    gaps, shown = [], None
    print("seed   odeco  scikit-learn   (held-out log-likelihood per sample less the truth's; clusters missed)")
    for seed in range(SEEDS):
        x, truth = draw(seed)
        train, test = x[: N // 2], x[N // 2 :]
        models = [
            GaussianMixture(K, random_state=seed).fit(train),
            Peer(K, covariance_type="spherical", random_state=seed).fit(train),
        ]
        best = likelihood(test, truth)
        gaps.append([model.score(test) - best for model in models])
        missed = [missing(model.means_, truth[1]) for model in models]
        print(f"{seed:4d}  {gaps[-1][0]:6.3f} ({missed[0]})    {gaps[-1][1]:6.3f} ({missed[1]})")
        if missed[1] and shown is None:
            shown = (train, truth[1], [model.means_ for model in models])
    if figure and shown:
        draw_figure(figure, np.array(gaps), *shown)
        print(f"Figure written to {figure}.")


def draw(seed: int) -> tuple[Array, tuple[Array, Array, Array]]:
    """Rows and (weights, means, deviations)."""
    rng = np.random.default_rng(seed)
    weights, deviations = rng.dirichlet(np.full(K, 5.0)), rng.uniform(0.7, 1.3, K)
    means = SEPARATION / np.sqrt(2 * D) * rng.standard_normal((K, D))
    sample = simulate.gaussian_mixture(N, means, weights, deviations=deviations, random_state=rng)
    return sample.rows, (weights, means, deviations)


def likelihood(x: Array, truth: tuple[Array, Array, Array]) -> float:
    """Mean log-likelihood under the truth."""
    weights, means, deviations = truth
    squares = (x**2).sum(axis=1)[:, None] - 2 * x @ means.T + (means**2).sum(axis=1)
    joint = np.log(weights) - squares / (2 * deviations**2) - D / 2 * np.log(2 * np.pi * deviations**2)
    return float(np.logaddexp.reduce(joint, axis=1).mean())


def missing(estimate: Array, means: Array) -> int:
    """Clusters without an estimate within half the separation."""
    return int(np.sum(match_components(estimate.T, means.T).errors > SEPARATION / 2))


def draw_figure(path: str, gaps: Array, x: Array, means: Array, estimates: list[Array]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    plane = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][:2].T
    for place, name, estimate in zip(axes, ("odeco", "scikit-learn"), estimates, strict=False):
        place.plot(*(x[::5] @ plane).T, ".", color="0.8", markersize=1)
        place.plot(*(means @ plane).T, "o", markersize=9, fillstyle="none", color="black", label="true means")
        place.plot(*(estimate @ plane).T, "x", color="tab:red", label="estimates")
        place.set(title=f"{name}, one of the data sets", xticks=[], yticks=[])
    axes[0].legend(frameon=False, fontsize="small")
    axes[2].plot(gaps[:, 0], "o", label="odeco")
    axes[2].plot(gaps[:, 1], "x", color="tab:red", label="scikit-learn")
    axes[2].set(xlabel="data set", title="log-likelihood less the truth's")
    axes[2].legend(frameon=False, fontsize="small")
    axes[2].spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
