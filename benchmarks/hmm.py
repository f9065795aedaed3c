"""Hidden Markov models beside hmmlearn: symbols, characters of a text, Gaussian states, scoring, growth with n.

`python -m benchmarks hmm --only scoring` measures one section and keeps the others.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.provenance import Result, Section
from odeco import CategoricalHMM, MomentWarning
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.hmm import baum_welch
from odeco.simulate import categorical_hmm, random_chain

NAME = "hmm"
# n, d, k, seeds, seeds on which hmmlearn runs too (100 of its passes take minutes on the last)
CATEGORICAL = [
    (100_000, 50, 5, 5, 5),
    (100_000, 100, 10, 5, 5),
    (300_000, 100, 20, 5, 5),
    (1_000_000, 1000, 20, 5, 1),
]
FIRST_SEED = 100  # seeds below were used while the method was made
HELD_OUT = 100_000
CHARACTERS = (5, 10, 20)
TEXT = harness.ROOT / "examples" / "data" / "moby_dick.txt"
GROWTH = (100_000, 1_000_000, 3_000_000, 10_000_000)


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All sections, or some `only`; `quick` takes small cases."""
    packages = ["numpy", "scipy", "scikit-learn", "hmmlearn"]
    measurements = {name: partial(measure, quick) for name, measure in SECTIONS.items()}
    with harness.one_thread():  # as many as hmmlearn uses
        _warm_up()
        return provenance.measure(measurements, only, packages, _code, quick=quick)


def _code(section: str) -> tuple[str, ...]:
    return provenance.code("measurements" if section == "gaussian" else "symbols")


def _warm_up() -> None:
    """Load what every fit and every answer needs."""
    x = np.random.default_rng(0).integers(0, 4, 5_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = CategoricalHMM(3, random_state=0).fit(x)
    model.predict(x), model.predict_proba(x), model.score(x)


def _peer(k: int, d: int, *, n_iter: int, seed: int) -> Any:
    from hmmlearn.hmm import CategoricalHMM as Peer

    return Peer(k, n_iter=n_iter, tol=0, implementation="scaling", random_state=seed, n_features=d)


def _fit(model: Any, x: Any) -> tuple[Any, float]:
    """The fitted model and its seconds; what it warns of is not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, harness.once(lambda: model.fit(x))


def _categorical(quick: bool) -> list[dict[str, Any]]:
    cases = [(20_000, 50, 5, 2, 1)] if quick else CATEGORICAL
    return [_categorical_case(*case) for case in cases]


def _categorical_case(n: int, d: int, k: int, n_seeds: int, n_peers: int) -> dict[str, Any]:
    rows: list[dict[str, float]] = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        transmat, emissions = random_chain(k, d, random_state=seed)
        sample = categorical_hmm(n + HELD_OUT, transmat, emissions, random_state=1000 + seed)
        x, held_out = sample.observations[:n], sample.observations[n:]
        model, seconds = _fit(CategoricalHMM(k, n_features=d, random_state=0), x)
        row = {"odeco seconds": seconds, "passes": model.n_iter_}
        row["below truth"] = _below_truth(
            model, x, HMMParameters(sample.startprob, transmat, CategoricalEmission(emissions))
        )
        if seed < FIRST_SEED + n_peers:
            peer, row["hmmlearn seconds"] = _fit(_peer(k, d, n_iter=100, seed=seed), x)
            row["held out"] = (model.score(held_out) - _score(peer, held_out)) / HELD_OUT
        rows.append(row)
    return {"n": n, "d": d, "k": k, "seeds": n_seeds, "peer seeds": n_peers, "runs": rows}


def _score(peer: Any, held_out: Any) -> float:
    """hmmlearn's model by our own scorer, no symbol quite impossible: its own fails where a state has not seen one."""
    model = CategoricalHMM.from_hmmlearn(peer)
    model.emissionprob_ = (1 - 1e-9) * model.emissionprob_ + 1e-9 / model.n_symbols_
    return model.score(held_out)


def _below_truth(model: CategoricalHMM, x: Any, truth: HMMParameters[CategoricalEmission]) -> float:
    """Training log-likelihood per step of Baum-Welch from the true parameters to convergence, less the model's."""
    data = model._encode(x, None, None, reset=False)
    refined = baum_welch(data, truth, max_iter=300, tol=1e-7)
    return float(refined.trace.values.max() - model.score(x) / len(x))


def letters(path: Path = TEXT) -> Any:
    """A text as symbols: a to z are 1 to 26, everything between words one 0."""
    text = path.read_text(encoding="utf-8").lower().encode("ascii", "replace")
    codes = np.frombuffer(text, dtype=np.uint8).astype(int) - 96
    codes[(codes < 1) | (codes > 26)] = 0
    return codes[np.concatenate([[True], (codes[1:] > 0) | (codes[:-1] > 0)])]


def _characters(quick: bool) -> list[dict[str, Any]]:
    x = letters()[: 5_000 if quick else None]
    rows = []
    for k in CHARACTERS[: 1 if quick else None]:
        model, seconds = _fit(CategoricalHMM(k, n_features=27, random_state=0), x)
        peers = [_fit(_peer(k, 27, n_iter=100, seed=seed), x[:, None]) for seed in range(1 if quick else 5)]
        scores = [peer.score(x[:, None]) / len(x) for peer, _ in peers]
        rows.append(
            {
                "k": k,
                "n": len(x),
                "odeco": model.score(x) / len(x),
                "odeco seconds": seconds,
                "hmmlearn": scores,
                "hmmlearn seconds": [spent for _, spent in peers],
            }
        )
    return rows


def _starts(row: dict[str, Any]) -> dict[str, Any]:
    """The best and the mean of hmmlearn's starts."""
    scores, spent = row["hmmlearn"], float(np.mean(row["hmmlearn seconds"]))
    return row | {"hmmlearn best": max(scores), "hmmlearn single": float(np.mean(scores)), "hmmlearn seconds": spent}


def _gaussian(quick: bool) -> list[dict[str, Any]]:
    from benchmarks import hmm_gaussian

    return hmm_gaussian.measure(quick)


def _scoring(quick: bool) -> list[dict[str, Any]]:
    """Nanoseconds per step of score, predict (Viterbi) and predict_proba, the same parameters in both."""
    rows = []
    for k in (5, 20)[: 1 if quick else None]:
        n = 20_000 if quick else 200_000
        transmat, emissions = random_chain(k, 100, random_state=FIRST_SEED)
        x = categorical_hmm(n, transmat, emissions, random_state=FIRST_SEED).observations
        model = _fit(CategoricalHMM(k, n_features=100, max_iter=3, random_state=0), x)[0]
        peer = model.to_hmmlearn()
        peer.implementation = "scaling"
        for name in ("score", "predict", "predict_proba"):
            row: dict[str, Any] = {"k": k, "what": name}
            for who, it in (("odeco", model), ("hmmlearn", peer)):
                spent = harness.times(lambda it=it, name=name, x=x: getattr(it, name)(x), 3)
                row[who] = [1e9 * seconds / n for seconds in spent]
            rows.append(row)
    return rows


def _growth(quick: bool) -> list[dict[str, Any]]:
    """Seconds of ten passes against n, one sequence, and the most memory they take beyond the data."""
    rows = []
    transmat, emissions = random_chain(10, 100, random_state=FIRST_SEED)
    for n in GROWTH[: 1 if quick else None]:
        x = categorical_hmm(n, transmat, emissions, random_state=FIRST_SEED).observations[:, 0].astype(np.int32)
        model = CategoricalHMM(10, n_features=100, max_iter=10, tol=0.0, random_state=0)
        seconds = _fit(model, x)[1]
        tracemalloc.start()  # x is there already: what is counted comes on top of it
        model.fit(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append({"n": n, "seconds": seconds, "megabytes": peak / 1e6, "data megabytes": x.nbytes / 1e6})
    return rows


SECTIONS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "categorical": _categorical,
    "characters": _characters,
    "gaussian": _gaussian,
    "scoring": _scoring,
    "growth": _growth,
}
SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "characters": lambda rows: [*map(_starts, rows)],
    "scoring": provenance.each("odeco", "hmmlearn"),
}


def report(result: Result) -> None:
    """Tables of the docs from a result file."""
    harness.write_between(harness.ROOT / "docs" / "hmm.md", f"benchmark:{NAME}", docs_tables(result))


def _summary(case: dict[str, Any]) -> dict[str, Any]:
    runs = case["runs"]
    both = [r for r in runs if "hmmlearn seconds" in r]
    held_out = [r["held out"] for r in both]
    return {
        "odeco": float(np.median([r["odeco seconds"] for r in runs])),
        "peer": float(np.median([r["hmmlearn seconds"] for r in both])),
        "ratio": float(np.median([r["hmmlearn seconds"] / r["odeco seconds"] for r in both])),
        "worst": min(held_out),
        "median": float(np.median(held_out)),
        "reached": sum(r["below truth"] <= 1e-3 for r in runs),
    }


def docs_tables(result: Result) -> str:
    parts = [
        f"{make(result[name])}\n\n{result.told(name)}"
        for name, make in (
            ("categorical", _categorical_table),
            ("characters", _characters_table),
            ("gaussian", _gaussian_table),
            ("scoring", _scoring_table),
            ("growth", _growth_table),
        )
        if name in result
    ]
    return "\n\n".join([*parts, "One thread for both.", result.machines()])


def _categorical_table(cases: list[dict[str, Any]]) -> str:
    header = [
        "n, symbols, states", "odeco", "hmmlearn", "times as fast", "held-out gain: median", "worst",
        "at the optimum",
    ]  # fmt: skip
    rows = []
    for case in cases:
        s = _summary(case)
        rows.append(
            [
                f"{case['n']:,}, {case['d']}, {case['k']}",
                f"{s['odeco']:.2g} s",
                f"{s['peer']:.3g} s",
                f"{s['ratio']:.1f}",
                f"{s['median']:+.5f}",
                f"{s['worst']:+.5f}",
                f"{s['reached']} of {case['seeds']}",
            ]
        )
    peers = ", ".join(str(case["peer seeds"]) for case in cases)
    return (
        "Symbols: hmmlearn with 100 passes (`tol=0`, scaling) from its random start. Gains are held-out log-likelihood "
        f"per step; hmmlearn ran on {peers} of the seeds. At the optimum: training likelihood within 0.001 per step of "
        f"Baum-Welch from the true parameters.\n\n{harness.markdown_table(header, rows)}"
    )


def _characters_table(rows: list[dict[str, Any]]) -> str:
    header = [
        "states",
        "odeco",
        "hmmlearn, best of 5",
        "mean of 5",
        "odeco time",
        "hmmlearn, one start",
        "times as fast",
    ]
    body = [
        [
            str(r["k"]),
            *(f"{r[name]:.4f}" for name in ("odeco", "hmmlearn best", "hmmlearn single")),
            f"{r['odeco seconds']:.2g} s",
            f"{r['hmmlearn seconds']:.2g} s",
            f"{r['hmmlearn seconds'] / r['odeco seconds']:.1f}",
        ]
        for r in rows
    ]
    return (
        f"English letters ({rows[0]['n']:,} characters: chapters 1 to 10 of *Moby-Dick*, 27 symbols), log-likelihood "
        f"per symbol:\n\n{harness.markdown_table(header, body)}"
    )


def _gaussian_table(rows: list[dict[str, Any]]) -> str:
    from benchmarks import hmm_gaussian

    return hmm_gaussian.table(rows)


def _scoring_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            str(r["k"]),
            f"`{r['what']}`",
            f"{r['odeco']:.0f} ns",
            f"{r['hmmlearn']:.0f} ns",
            f"{r['hmmlearn'] / r['odeco']:.1f}",
        ]
        for r in rows
    ]
    return "Per step, one long sequence of 100 symbols:\n\n" + harness.markdown_table(
        ["states", "method", "odeco", "hmmlearn", "times as fast"], body
    )


def _growth_table(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            f"{r['n']:,}",
            f"{r['seconds']:.2f} s",
            f"{1e9 * r['seconds'] / r['n']:.0f} ns",
            f"{r['megabytes']:.1f} MB",
            f"{r['data megabytes']:.1f} MB",
        ]
        for r in rows
    ]
    return (
        "Moments and ten passes against n (100 symbols, 10 states, one sequence of 32-bit integers):\n\n"
        + harness.markdown_table(["n", "seconds", "per step", "most memory beyond the data", "data"], body)
    )
