"""Tables of docs/topics.md from the result file of `benchmarks.topics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.provenance import Result

NAME = "topics"
Row = dict[str, Any]


def _better_prior(row: Row) -> Row:
    """Each peer at the eta with which it did better."""
    best = {name: min(row[name], key=lambda fit: fit["perplexity"]) for name in ("scikit-learn", "gensim")}
    return row | {name: [fit] for name, fit in best.items()}


def _bare(section: Row) -> Row:
    """Medians, and what the products take together that a fit cannot do without."""
    medians = provenance.each("pairs", "projection", "fit")([section])[0]
    return medians | {"bare": 3 * medians["pairs"] + medians["projection"]}


def _start_means(row: Row) -> Row:
    means = provenance.each("residual", "error", how=np.mean)
    return row | {kind: means([row[kind]])[0] for kind in ("random", "documents")}


SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "real_online": lambda rows: [*map(_better_prior, rows)],
    "growth": provenance.each("refine=None", "default"),
    "scale": _bare,
    "starts": lambda rows: [*map(_start_means, rows)],
    "ways": lambda rows: provenance.each("seconds")(provenance.each("error", how=np.mean)(rows)),
}


def report(result: Result) -> None:
    """Write the tables where they belong."""
    page = harness.ROOT / "docs" / "topics.md"
    harness.write_between(page, f"benchmark:{NAME}", docs_tables(result))
    harness.write_between(page, f"benchmark:{NAME}-ways", ways_table(result))


def _joined(result: Result) -> list[Row]:
    """One row per corpus, with all who fitted it."""
    online = {row["corpus"]: row for row in result.get("real_online", [])}
    return [row | online.get(row["corpus"], {}) for row in result["real"]]


def docs_tables(result: Result) -> str:
    makers = {"synthetic": _synthetic, "real": _real, "growth": _growth, "streamed": _streamed}
    makers |= {"scale": _scale, "starts": _starts}
    also = {"real": ["real_online"]}
    parts = [
        f"{make(result)}\n\n{result.told(name, *also.get(name, []))}"
        for name, make in makers.items()
        if result.get(name)
    ]
    return "\n\n".join([*parts, "Two threads for everyone.", result.machines()])


def _synthetic(result: Result) -> str:
    s = result.settings("synthetic")
    fastest = np.median(result["synthetic"][0]["seconds"])
    rows = [
        [
            r["name"],
            str(r["seeds"]),
            f"{np.mean(r['errors']):.3f}",
            f"{min(r['errors']):.3f} to {max(r['errors']):.3f}",
            f"{np.median(r['seconds']):.3g} s",
            f"{np.median(r['seconds']) / fastest:.1f}",
        ]
        for r in result["synthetic"]
    ]
    header = ["", "seeds", "mean error", "range", "median time", "times the first row's"]
    return (
        f"**Documents of the model itself**: n = {s['n']:,}, d = {s['d']:,}, k = {s['k']}, alpha0 = 0.5, 60 words "
        "each, Zipfian topics. The error is the mean L1 distance of true topics from their partners. The peers know "
        f"alpha0: they are given alpha = alpha0 / k, and eta = 0.01.\n\n{harness.markdown_table(header, rows)}"
    )


def _real(result: Result) -> str:
    s = result.settings("real")
    timed, online = ["odeco", "odeco, refine=None", "tomotopy", "tomotopy, alpha fixed"], ["scikit-learn", "gensim"]
    names = timed + online
    about, scores = [], []
    for r in _joined(result):
        cells = [f"{_perplexity(r[name]):,.0f} [{_seconds(r[name]):.3g}]" for name in timed]
        cells += [f"{_perplexity(r[name]):,.0f}" if name in r else "not run" for name in online]
        about.append([r["corpus"], f"{r['n']:,}", f"{r['nonzeros']:,}", str(r["k"]), f"{r['unigram']:,.0f}", *cells])
        ratios = [_perplexity(r["odeco"]) / _perplexity(r[name]) if name in r else None for name in names[2:]]
        times = [f", {_seconds(r[name]) / _seconds(r['odeco']):.1f}x" for name in timed[2:]] + ["", ""]
        handed = np.mean([fit["preparation"] for fit in r["tomotopy"]])
        cells = [
            f"{100 * (ratio - 1):+.1f} %{time}" if ratio else "" for ratio, time in zip(ratios, times, strict=True)
        ]
        scores.append([r["corpus"], *cells, _range(r["odeco"]), _range(r["tomotopy"]), f"{handed:.2g} s"])
    table = harness.markdown_table(["text", "documents", "nonzeros", "k", "unigram", *names], about)
    header = ["odeco against", *names[2:], "seeds of odeco", "of tomotopy", "tomotopy's corpus"]
    ratios_table = harness.markdown_table(header, scores)
    return (
        "**Real text**: perplexity of the held-out tenth of the documents (not those on which constants of the method "
        "were chosen; bible_kjv had no part in that at all), [seconds of the fit]. One scorer for all: "
        "`odeco.completion.completion`, alpha = 1/k, topics smoothed by 1e-3 of the uniform. tomotopy: "
        f"{s['tomotopy'][1]} iterations, alpha = 1/k (optimised on the way, or fixed), eta = 0.01; scikit-learn: "
        f"{s['sklearn_epochs'][1]} online "
        f"epochs; gensim: LdaMulticore, {s['gensim_passes']} passes; these two with alpha = 1/k and the better of "
        f"eta = 1/k, their default, and 0.01. odeco and tomotopy: means over {s['real_seeds']} seeds.\n\n{table}\n\n"
        "The same in comparison: odeco's perplexity against the peer's, and how many times as long the peer took; the "
        "range of perplexities over seeds. The time to hand tomotopy its documents, in the last column, is not counted."
        f"\n\n{ratios_table}"
    )


def _growth(result: Result) -> str:
    rows = [
        [
            f"{r['nonzeros'] / 1e6:.2g} M",
            f"{r['documents']:,}",
            f"{r['refine=None']:.3g} s",
            f"{1e9 * r['refine=None'] / r['nonzeros']:.0f} ns",
            f"{r['default']:.3g} s",
            f"{1e9 * r['default'] / r['nonzeros']:.0f} ns",
            str(r["default sweeps"]),
        ]
        for r in result["growth"]
    ]
    header = ["nonzeros", "documents", "`refine=None`", "per nonzero", "default", "per nonzero", "sweeps"]
    s = result.settings("growth")
    return f"**Growth**: d = {2 * s['d']:,}, k = {s['k']}.\n\n{harness.markdown_table(header, rows)}"


def _streamed(result: Result) -> str:
    rows = [
        [
            f"{r['documents']:,}",
            f"{r['nonzeros'] / 1e6:.2g} M",
            f"{r['matrix bytes'] / 2**20:.0f} MB",
            f"{r['peak bytes'] / 2**20:.0f} MB",
            f"{r['seconds']:.3g} s",
        ]
        for r in result["streamed"]
    ]
    header = ["documents", "nonzeros", "as one matrix", "peak memory of the fit", "time"]
    return (
        "**Streamed**: a default fit that reads its documents from files, over what the process held before.\n\n"
        + harness.markdown_table(header, rows)
    )


def _scale(result: Result) -> str:
    r = result["scale"]
    return (
        f"**Scale**: {r['documents']:,} documents, {r['nonzeros'] / 1e6:.3g} M nonzeros, d = {r['words']:,}, "
        f"k = {r['k']}. A fit with `refine=None` and alpha0 known took {r['fit']:.3g} s, {r['fit'] / r['bare']:.2f} "
        "times the bare sparse products it cannot do without: three C'(w (C R)) with k + 10 columns "
        f"({r['pairs']:.3g} s each) and one C W ({r['projection']:.3g} s)."
    )


def _starts(result: Result) -> str:
    rows = []
    for r in result["starts"]:
        kinds = [r["random"], r["documents"]]
        residuals = [f"{kind['residual']:.3f}" for kind in kinds]
        errors = ["" if kind["error"] is None else f"{kind['error']:.3f}" for kind in kinds]
        rows.append([r["corpus"], str(r["updates"]), str(r["starts"]), *residuals, *errors])
    header = ["text", "N", "starts L", "residual, random", "documents", "L1 error of topics, random", "documents"]
    return (
        "**Starting power iterations from documents** (end of section 5.2): Algorithm 1 with L starts of N updates, "
        "new ones for each component: random points, or whitened documents chosen at random. Residual of the tensor "
        f"and error of the topics, means of 10 runs.\n\n{harness.markdown_table(header, rows)}"
    )


def ways_table(result: Result) -> str:
    """Error of the topics by the way in which the documents are read."""
    s = result.settings("ways")
    rows = [[r["name"], f"{r['error']:.4f}", f"{r['seconds']:.2g} s"] for r in result["ways"]]
    table = harness.markdown_table(["", "mean L1 error of topics", "time"], rows)
    return (
        f"{table}\n\nn = {s['n']:,}, d = {s['d']:,}, k = {s['k']}, 60 words per document; sources give a tenth of the "
        f"documents at a time; alpha0 = 0.5 is given where nothing is refined; mean of {s['seeds']} seeds.\n\n"
        f"{result.told('ways')}"
    )


def _perplexity(fits: list[dict[str, float]]) -> float:
    return float(np.mean([fit["perplexity"] for fit in fits]))


def _seconds(fits: list[dict[str, float]]) -> float:
    return float(np.mean([fit["seconds"] for fit in fits]))


def _range(fits: list[dict[str, float]]) -> str:
    values = [fit["perplexity"] for fit in fits]
    return f"{min(values):,.0f} to {max(values):,.0f}"
