"""`odeco.GaussianHMM` beside hmmlearn's: states that differ in their means, in their variances alone, in both.

A section of `python -m benchmarks hmm`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks import harness
from odeco import GaussianHMM
from odeco.simulate import markov_chain

KINDS = ("means", "variances", "both")
SIZES = ((5, 5), (10, 8), (20, 10))  # d, k
N = 100_000
HELD_OUT = 50_000
FIRST_SEED = 200  # seeds below were used while the method was made
SEEDS = 3


def draw(kind: str, n: int, d: int, k: int, seed: int) -> Any:
    """Rows of T 0.4 I + 0.6 Dirichlet(0.5); means N(0, 1) or 0; variances exp(0.7 N(0, 1)) or 1."""
    rng = np.random.default_rng(seed)
    transmat = 0.4 * np.eye(k) + 0.6 * rng.dirichlet(np.full(k, 0.5), k)
    means = np.zeros((k, d)) if kind == "variances" else rng.standard_normal((k, d))
    deviations = np.ones((k, d)) if kind == "means" else np.exp(0.35 * rng.standard_normal((k, d)))
    states = markov_chain(n, transmat, random_state=rng)
    return means[states] + deviations[states] * rng.standard_normal((n, d))


def measure(quick: bool) -> list[dict[str, Any]]:
    """One row for each kind and size."""
    if quick:
        return [measure_case("variances", 5, 3, seeds=1, n=10_000)]
    matrices = [measure_case("both", *SIZES[0], covariance_type=name) for name in ("full", "tied")]
    return [measure_case(kind, d, k) for kind in KINDS for d, k in SIZES] + matrices


def measure_case(
    kind: str, d: int, k: int, *, seeds: int = SEEDS, n: int = N, covariance_type: str = "diag"
) -> dict[str, Any]:
    """Log-likelihoods per step and seconds of both, on fresh seeds."""
    fit(GaussianHMM(2, covariance_type=covariance_type, random_state=0), draw(kind, 9_000, d, 2, 0))  # loads
    runs = [measure_seed(kind, n, d, k, seed, covariance_type) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
    return {"kind": kind, "covariance": covariance_type, "n": n, "d": d, "k": k, "seeds": seeds, "runs": runs}


def measure_seed(kind: str, n: int, d: int, k: int, seed: int, covariance_type: str) -> dict[str, float]:
    from hmmlearn.hmm import GaussianHMM as Peer

    everything = draw(kind, n + HELD_OUT, d, k, seed)
    x, held_out = everything[:n], everything[n:]
    model = GaussianHMM(k, covariance_type=covariance_type, random_state=0)
    row = {"odeco seconds": fit(model, x), "passes": float(model.n_iter_)}
    peer = Peer(k, covariance_type=covariance_type, n_iter=100, tol=0, implementation="scaling", random_state=seed)
    row["hmmlearn seconds"] = fit(peer, x)
    row["training"] = (model.score(x) - peer.score(x)) / n
    row["held out"] = (model.score(held_out) - peer.score(held_out)) / HELD_OUT
    return row


def fit(model: Any, x: Any) -> float:
    """Seconds of a fit; what it warns of is not the point here."""
    import logging

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
        return harness.once(lambda: model.fit(x))


def table(cases: list[dict[str, Any]]) -> str:
    """Medians over the seeds; gains are odeco's log-likelihood per step less hmmlearn's."""
    header = [
        "states differ in", "covariance", "d, k", "odeco", "hmmlearn", "times as fast", "held-out gain: median",
        "worst", "training: worst",
    ]  # fmt: skip
    rows = []
    for case in cases:
        ours, peer, held_out, training = (
            np.array([run[name] for run in case["runs"]])
            for name in ("odeco seconds", "hmmlearn seconds", "held out", "training")
        )
        rows.append(
            [
                case["kind"],
                case.get("covariance", "diag"),
                f"{case['d']}, {case['k']}",
                f"{np.median(ours):.2f} s",
                f"{np.median(peer):.1f} s",
                f"{np.median(peer / ours):.1f}",
                f"{np.median(held_out):+.5f}",
                f"{held_out.min():+.5f}",
                f"{training.min():+.5f}",
            ]
        )
    first = cases[0]
    return (
        f"Gaussian states, n = {first['n']:,}, {first['seeds']} fresh seeds; hmmlearn with 100 iterations and "
        f"`tol=0`, gains in nats per step:\n\n{harness.markdown_table(header, rows)}"
    )
