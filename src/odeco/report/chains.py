"""The pages of hidden Markov models and of ICA: transitions, emissions, a decoded sequence; sources and mixing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.chains import DecodedSequence, decoded_sequence, transitions
from odeco.plots.columns import Profile, most_telling, profiles
from odeco.plots.names import column_names, rows_of
from odeco.plots.signals import mixing, source_series
from odeco.plots.topics import relevance, top_words
from odeco.report.chain_charts import sequence_chart, state_runs, transition_chart
from odeco.report.charts import colour, histogram_chart, series_chart
from odeco.report.classes import profile_group
from odeco.report.page import Inputs, Page, plural
from odeco.report.sure import Sure
from odeco.report.svg import Scale, number, percent

Floats = NDArray[np.float64]

_MOST_SYMBOLS = 14  # of a state
_MOST_COLUMNS = 24
_LANES = 3  # columns beside the decoded states
_MOST_CHANNELS = 64
_MOST_POINTS = 6_400  # of all sources together: a page of many stays small


def hmm_page(model: Any, inputs: Inputs) -> Page:
    """States of a hidden Markov model."""
    graph, sequence = transitions(model), decoded_sequence(model, inputs.data)
    k, sure = len(graph.stationary), Sure(inputs.intervals)
    content: dict[str, Any] = {
        "graph": transition_chart(graph),
        "matrix": [
            [(float(p), percent(float(p)), sure.share("transmat_", (i, j))) for j, p in enumerate(row)]
            for i, row in enumerate(graph.matrix)
        ],
        "states": [
            {
                "number": i,
                "colour": sure.colour(i),
                "lost": sure.lost(i),
                "share": percent(float(graph.stationary[i])),
                "bar": float(graph.stationary[i]),
                "stays": number(float(graph.stays[i])),
                "start": percent(float(graph.start[i])),
                "sure": sure.share("startprob_", (i,)),
            }
            for i in range(k)
        ],
        "groups": [],
        "symbols": [],
        "level": sure.level,
        "sequence": {"steps": len(sequence.states), "length": f"{sequence.length:,}", "drawn": sequence.drawn},
        "certainty": percent(float(sequence.certainty.mean())),
    }
    if rows_of(model) == "symbols":
        _add_symbols(model, inputs, sequence, graph.stationary, content)
    else:
        _add_columns(model, inputs, sequence, content)
    return Page(
        title=plural(k, "hidden state"),
        lede="The chain moves between states that are not seen; each state has its own distribution of observations.",
        template="hmm.html.jinja",
        content=content,
        figures=((str(k), "states" if k > 1 else "state"), (content["observed"], content["observed_name"])),
    )


def _add_symbols(
    model: Any, inputs: Inputs, sequence: DecodedSequence, stationary: Floats, content: dict[str, Any]
) -> None:
    """Symbols of every state, and the decoded sequence as text."""
    emissions = np.asarray(model.emissionprob_, dtype=np.float64)
    n = emissions.shape[1]
    given = inputs.vocabulary if inputs.vocabulary is not None else inputs.feature_names
    names, sure = column_names(model, given, n, what="", argument="vocabulary"), Sure(inputs.intervals)
    if n <= _MOST_SYMBOLS:
        best = [np.arange(n)] * len(emissions)
    else:
        best = top_words(relevance(emissions, stationary @ emissions), _MOST_SYMBOLS)
    content["symbols"] = [_symbols_of(i, emissions, chosen, names, sure) for i, chosen in enumerate(best)]
    shown = ["·" if s < 0 else names[int(s)] for s in sequence.observations.astype(np.int64)]
    glue = "" if all(len(name) == 1 for name in names) else " "
    content["runs"] = [
        {"number": state, "colour": colour(state), "text": glue.join(shown[a:b])}
        for state, a, b in state_runs(sequence.states)
    ]
    content["left_out"] = max(n - _MOST_SYMBOLS, 0)
    content["observed"], content["observed_name"] = f"{n:,}", "symbols"


def _symbols_of(i: int, emissions: Floats, chosen: Any, names: list[str], sure: Sure) -> dict[str, Any]:
    """The symbols of one state."""
    largest = sure.largest("emissionprob_", i, chosen, emissions)
    rows = [
        {
            "name": names[w],
            "bar": float(emissions[i, w] / largest),
            "share": percent(float(emissions[i, w])),
            "sure": sure.share("emissionprob_", (i, int(w))),
            "reach": sure.reach(Scale(0, largest, 0, 100), "emissionprob_", (i, int(w))),
        }
        for w in chosen
    ]
    return {"number": i, "colour": sure.colour(i), "lost": sure.lost(i), "rows": rows}


def _add_columns(model: Any, inputs: Inputs, sequence: DecodedSequence, content: dict[str, Any]) -> None:
    """Profiles of the columns, and the decoded sequence over the most telling of them."""
    found = profiles(model, inputs.feature_names)
    shown = most_telling(found, _MOST_COLUMNS)
    lanes: list[Profile] = most_telling(found, _LANES)
    content["groups"] = [profile_group("", shown, len(found), Sure(inputs.intervals))]
    content["sequence"]["chart"] = sequence_chart(sequence, [(p.column, p.name) for p in lanes])
    content["observed"] = f"{len(found):,}"
    content["observed_name"] = "columns" if len(found) > 1 else "column"


def ica_page(model: Any, inputs: Inputs) -> Page:
    """Sources of an `ICA`."""
    found = mixing(model, inputs.feature_names)
    k, d = len(found.kurtosis), len(found.channels)
    n_points = int(np.clip(_MOST_POINTS // k, 100, 400))
    series = None if inputs.data is None else source_series(model, inputs.data, n_points)
    strength, sure = np.abs(found.matrix).max(axis=1), Sure(inputs.intervals)
    shown = np.sort(np.argsort(-strength, kind="stable")[:_MOST_CHANNELS])
    largest = float(strength.max()) or 1.0
    content = {
        "sources": [
            {
                "number": i,
                "colour": sure.colour(i),
                "lost": sure.lost(i),
                "kurtosis": number(float(found.kurtosis[i])),
                "sure": sure.number("kurtosis_", (i,)),
                "tails": _tails(float(found.kurtosis[i]), bool(found.identified[i])),
                "power": percent(float(found.power[i])),
                "bar": float(min(found.power[i], 1.0)),
                "identified": bool(found.identified[i]),
                "series": None if series is None else series_chart(series, i),
                "histogram": None if series is None else histogram_chart(series, i),
            }
            for i in range(k)
        ],
        "channels": [
            (
                found.channels[c],
                [
                    (float(v / largest), number(float(v)), sure.number("mixing_", (int(c), i)))
                    for i, v in enumerate(found.matrix[c])
                ],
            )
            for c in shown
        ],
        "left_out": d - len(shown),
        "level": sure.level,
        "noise": percent(max(0.0, 1 - float(found.power.sum()))),
        "noise_model": str(model.diagnostics_.details.get("noise_model", "")),
        "n_samples": "" if series is None else f"{series.n_samples:,}",
    }
    figures = [(str(k), "sources" if k > 1 else "source"), (f"{d:,}", "channels")]
    if series is not None:
        figures.append((f"{series.n_samples:,}", "samples shown"))
    return Page(
        title=plural(k, "independent source"),
        lede="Channels are mixtures of sources that know nothing of each other; the largest kurtosis comes first.",
        template="ica.html.jinja",
        content=content,
        figures=tuple(figures),
    )


def _tails(kurtosis: float, identified: bool) -> str:
    if not identified:
        return "hardly told from a Gaussian: its direction is not identified"
    return "heavy tails, often near zero" if kurtosis > 0 else "light tails, rarely near zero"
