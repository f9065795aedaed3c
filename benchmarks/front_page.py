"""The one table of the README: every model beside its peers, on data drawn from it and on real data.

It is made of two result files, `overview` and `trust`; either of these benchmarks writes it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.cases import CASES, Case
from benchmarks.overview import summary, times
from benchmarks.provenance import Result
from benchmarks.trust_tables import OUTCOMES, Comparison, compare, middle

MARK = "benchmark:overview"
# Cases of `overview`, and how the estimators of `trust` begin that are the same model.
MODELS = {
    "topics": "LatentDirichletAllocation",
    "one topic each": "SingleTopicModel",
    "spheres": "GaussianMixture",
    "latent classes": "ProductMixture",
    "views": "MultiViewMixture",
    "crowd": "DawidSkene",
    "symbols": "CategoricalHMM",
    "measurements": "GaussianHMM",
    "counts": "PoissonHMM",
    "signals": "ICA",
}
HEADER = [
    "model",
    "drawn data",
    "best peer",
    "its time",
    "its quality",
    "real data: won / tied / lost",
    "time",
]
NOTES = (
    "*Drawn data*: seconds of a fit; the peer that came closest in quality, or was better, its time and its quality "
    "beside odeco's, on the same data with the same threads. *Real data*: one default fit against the best of ten "
    "starts of the peer (three of tomotopy) for several k, one formula for both: likelihood, held-out words of topics, "
    "unmixing errors of signals; time of the one fit as a share of all those starts, median. Every peer and every "
    "comparison: [benchmarks](docs/benchmarks.md), [one fit against ten starts](docs/trust.md)."
)


def write() -> None:
    """Sentence and table of the README, from the stored results."""
    overview, trust = provenance.load("overview"), provenance.load("trust")
    readme = harness.ROOT / "README.md"
    harness.write_between(readme, f"{MARK}-sentence", sentence(overview, trust))
    harness.write_between(readme, MARK, table(overview, trust))


def sentence(overview: Result, trust: Result) -> str:
    """What was measured, in one line."""
    ratios = [_best_peer(name, overview)[1]["ratio"] for name in MODELS]
    real = _real(trust)
    not_worse = np.mean([one.outcome != "lost" for one in real])
    return (
        f"On data drawn from a model the best peer takes {min(ratios):.0f} to {max(ratios):.0f} times as long. On real "
        f"data one fit is at least as good as the best of ten starts of the peer in {not_worse:.0%} of {len(real)} "
        "comparisons."
    )


def table(overview: Result, trust: Result) -> str:
    """A row for each model."""
    rows = [[f"`{model}`", *drawn(name, overview), *_counts(model, trust)] for name, model in MODELS.items()]
    told = {"drawn data": overview.told(*MODELS), "real data": trust.told("fits")}
    ages = "\n".join(f"- {what}: {text}" for what, text in told.items())
    return f"{harness.markdown_table(HEADER, rows)}\n\n{NOTES}\n\n{ages}"


def _best_peer(name: str, overview: Result) -> tuple[str, dict[str, Any]]:
    """The peer that came closest in quality, and what `overview.summary` says of it."""
    sign = -1.0 if CASES[name].lower else 1.0
    peers = summary(CASES[name], overview[name])
    peers.pop("odeco")
    return max(peers.items(), key=lambda item: sign * item[1]["difference"])


def drawn(name: str, overview: Result) -> list[str]:
    """Of data drawn from a model: seconds, the best peer, how many times as long it takes, and its quality."""
    case = CASES[name]
    who, peer = _best_peer(name, overview)
    ours = summary(case, overview[name])["odeco"]["seconds"]
    return [f"{ours:.2g} s", who, f"{times(peer['ratio'])}x", _quality(case, peer["difference"])]


def _quality(case: Case, difference: float) -> str:
    if abs(difference) <= case.tolerance:
        return "the same"
    better = (difference < 0) == case.lower
    return f"{'better' if better else 'worse'} by {abs(difference):.2g} ({case.measure})"


def _real(trust: Result) -> list[Comparison]:
    """The middle fit of every cell that counts."""
    found = map(middle, compare(trust["peers"], trust["fits"]))
    return [one for one in found if one.outcome in OUTCOMES]


def _counts(estimator: str, trust: Result) -> Sequence[str]:
    found = [one for one in _real(trust) if one.cell.estimator.split()[0] == estimator]
    counts = " / ".join(str(sum(one.outcome == outcome for one in found)) for outcome in OUTCOMES)
    return [counts, f"{np.median([one.time_ratio for one in found]):.2g}"]
