"""The choice of a number of components on real data, beside the number that the field's own tool would be given.

A peer is fitted for every number, from several starts. Its BIC has the formula of ours: the same count of parameters,
the same samples. Topics are compared by the perplexity of documents kept apart, one scorer for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import harness
from benchmarks import trust_data as data
from benchmarks.product_mixture import stepmix
from benchmarks.trust_data import Cell
from benchmarks.trust_models import problem
from odeco.fitting.choice.rule import REPLICATED

STARTS = 5
CHAIN_STARTS = 3  # hmmlearn takes minutes for each on the longer chains
TOPICS = (5, 10, 20, 30)
TOPIC_STARTS = 1  # tomotopy likewise

Beside = Callable[[Any], dict[str, Any]]  # from our choice to the peer's numbers


@dataclass(frozen=True)
class Case:
    """A model of one data set, and its peer; `n` samples, of which sequences have several."""

    model: str
    name: str
    estimator: Any
    rows: Any
    numbers: Sequence[int]
    n: int
    beside: Beside | None = None
    given: dict[str, Any] = field(default_factory=dict)


def _compared(case: Case) -> dict[str, Any]:
    found = odeco.choose_components(case.estimator, case.rows, case.numbers, **case.given)
    return {
        "model": case.model,
        "data": case.name,
        "n": case.n,
        "numbers": [case.numbers[0], case.numbers[-1]],
        "criterion": found.criterion,
        "chosen": found.best,
        "plausible": list(found.plausible),
        "bic": _best(found, "bic", -1),
        "replicated": max((row.n_components for row in found if row.replication >= REPLICATED), default=0),
        "held_out": _best(found, "held_out", 1),
        **({} if case.beside is None else case.beside(found)),
    }


def _best(found: Any, name: str, sign: int) -> int | None:
    """The number with the largest, or least, of what is known."""
    known = {row.n_components: sign * getattr(row, name) for row in found if np.isfinite(getattr(row, name))}
    return max(known, key=lambda k: known[k]) if known else None


def _least_bic(found: Any, log_likelihoods: dict[int, float], n: int) -> int:
    """By the formula and the counts of parameters that our own BIC has."""
    bic = {k: found.evidence(k).n_parameters * np.log(n) - 2 * value for k, value in log_likelihoods.items()}
    return min(bic, key=lambda k: bic[k])


def _starts(estimator: str, name: str, n_starts: int, n: int, peer: str, found: Any) -> dict[str, Any]:
    """BIC of the best start of the peer that `python -m benchmarks trust` compares one fit with."""
    best = {}
    for row in found:
        cell = problem(Cell(estimator, name, row.n_components))
        best[row.n_components] = n * max(cell.judge(start()).value for start in cell.starts[:n_starts])
    return {"peer": f"{peer}, {_counted(n_starts)}", "peer_bic": _least_bic(found, best, n)}


def _counted(n_starts: int) -> str:
    return "one start" if n_starts == 1 else f"{n_starts} starts"


def _gaussians() -> list[Case]:
    numbers, kind = range(1, 11), "GaussianMixture full"
    cases = []
    for name in ("geyser", "penguins", "iris", "banknote", "diabetes"):
        x = data.measurements(name)
        model = odeco.GaussianMixture(covariance_type="full", random_state=0)
        cases.append(Case(kind, name, model, x, numbers, len(x), partial(_with_folds, kind, name, x)))
    return cases


def _with_folds(estimator: str, name: str, x: Any, found: Any) -> dict[str, Any]:
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import GridSearchCV, KFold

    numbers = {"n_components": [row.n_components for row in found]}
    folds = GridSearchCV(
        GaussianMixture(n_init=STARTS, random_state=0), numbers, cv=KFold(5, shuffle=True, random_state=0)
    ).fit(x)
    beside = _starts(estimator, name, STARTS, len(x), "scikit-learn", found)
    return {**beside, "peer_held_out": int(folds.best_params_["n_components"])}


def _tables() -> list[Case]:
    cases = []
    for name in ("carcinoma", "cheating", "values", "votes84", "zoo"):
        t = data.table(name)
        model = odeco.ProductMixture(family=list(t.families), random_state=0)
        beside = partial(_stepmix, t.values)
        cases.append(Case("ProductMixture", name, model, t.values, range(1, 9), len(t.values), beside))
    return cases


def _stepmix(values: Any, found: Any) -> dict[str, Any]:
    best = {}
    for row in found:
        model = stepmix(row.n_components, "categorical_nan", STARTS, 0)
        best[row.n_components] = len(values) * float(model.fit(values).score(values))
    return {"peer": f"StepMix, {_counted(STARTS)}", "peer_bic": _least_bic(found, best, len(values))}


def _chains() -> list[Case]:
    chains = (
        ("CategoricalHMM", "geyser"), ("CategoricalHMM", "mvad"), ("CategoricalHMM", "lambda_phage"),
        ("PoissonHMM", "earthquakes"), ("GaussianHMM diag", "geyser"), ("GaussianHMM diag", "speed"),
    )  # fmt: skip
    cases = []
    for label, name in chains:
        x, lengths = data.symbols(name) if label == "CategoricalHMM" else data.sequences(name)
        model = getattr(odeco, label.partition(" ")[0])(random_state=0)
        beside = partial(_starts, label, name, CHAIN_STARTS, len(x), "hmmlearn")
        cases.append(Case(label, name, model, x, range(1, 6), len(x), beside, {"lengths": lengths}))
    return cases


def _views() -> list[Case]:
    cases = []
    for name in ("wdbc", "wine"):
        views = data.views(name)
        model = odeco.MultiViewMixture(likelihood="gaussian", random_state=0)
        beside = partial(_starts, "MultiViewMixture", name, STARTS, len(views[0]), "scikit-learn, columns joined")
        cases.append(Case("MultiViewMixture", name, model, views, range(1, 9), len(views[0]), beside))
    return cases


def _crowds() -> list[Case]:
    """As many classes as labels at most; no peer chooses their number."""
    cases = []
    for name in ("crowd_bluebird", "crowd_rte"):
        labels = data.labels(name)
        cases.append(Case("DawidSkene", name, odeco.DawidSkene(random_state=0), labels, (1, 2), len(labels)))
    return cases


def _signals() -> list[Case]:
    """Electrodes as they are; six spoken words in twelve channels, with noise."""
    ecg = data.arrays("foetal_ecg")["X"].astype(np.float64)
    voices = data.mixed(Cell("ICA", "alsa_voices", 6, 12, 0.1))[0]
    return [
        Case("ICA", name, odeco.ICA(random_state=0), x, range(1, x.shape[1] + 1), len(x), partial(_minka, x))
        for name, x in (("foetal_ecg", ecg), ("alsa_voices: 6 of 12", voices))
    ]


def _minka(x: Any, found: Any) -> dict[str, Any]:
    """Dimensions by the evidence of principal components (Minka 2000)."""
    from sklearn.decomposition import PCA

    return {"peer": "scikit-learn, PCA by Minka's evidence", "peer_bic": int(PCA("mle").fit(x).n_components_)}


def _texts() -> list[Case]:
    cases = []
    for name in ("sotu", "debian", "wordnet_glosses"):
        documents, model = data.counts(name), odeco.LatentDirichletAllocation(random_state=0)
        beside = partial(_tomotopy, name)
        cases.append(Case("LatentDirichletAllocation", name, model, documents, TOPICS, documents.shape[0], beside))
    return cases


def _tomotopy(name: str, found: Any) -> dict[str, Any]:
    """The number of the least perplexity of a tenth of the documents, completed."""
    perplexity = {}
    for row in found:
        cell = problem(Cell("LatentDirichletAllocation", name, row.n_components))
        perplexity[row.n_components] = min(cell.judge(start()).value for start in cell.starts[:TOPIC_STARTS])
    best = min(perplexity, key=lambda k: perplexity[k])
    return {"peer": f"tomotopy, {_counted(TOPIC_STARTS)}", "peer_held_out": best}


GROUPS: dict[str, tuple[Callable[[], list[Case]], ...]] = {
    "real mixtures": (_gaussians,),
    "real tables": (_tables,),
    "real chains": (_chains,),
    "real views, crowds and signals": (_views, _crowds, _signals),
    "real topics": (_texts,),
}


def measure(group: str, quick: bool) -> list[dict[str, Any]]:
    """A row for each case of a group; `quick`: for the first."""
    cases = [case for make in GROUPS[group] for case in make()]
    return [_compared(case) for case in cases[: 1 if quick else None]]


def table(runs: list[dict[str, Any]]) -> str:
    """What was chosen, by what, and what else there is to go by."""
    rows = [
        [
            f"`{run['model']}`",
            run["data"],
            f"{run['n']:,}",
            f"{run['numbers'][0]} to {run['numbers'][1]}",
            several(run["chosen"], run["plausible"]),
            {"held_out": "held-out words", "bic": "BIC"}.get(run["criterion"], run["criterion"]),
            str(run["bic"] or ""),
            str(run["replicated"] or "none"),
            str(run["held_out"] or ""),
            run.get("peer", "none"),
            str(run.get("peer_bic") or ""),
            str(run.get("peer_held_out") or ""),
        ]
        for run in runs
    ]
    header = ["model", "data", "n", "of", "chosen", "by", "BIC", "most that replicate", "held-out halves", "peer",
              "its BIC or evidence", "its held-out rows"]  # fmt: skip
    return harness.markdown_table(header, rows)


def several(best: int, plausible: list[int]) -> str:
    """The number, and the range that is not told from it."""
    return f"{best}" if len(plausible) < 2 else f"{best} ({plausible[0]} to {plausible[-1]})"
