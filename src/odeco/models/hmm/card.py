"""The cards of the hidden Markov models: of symbols, of measurements, of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odeco.fitting.card import ByOption, Card, Stored, shapes
from odeco.models.card_parts import COVARIANCES, EFFORT, MAX_ITER, SMOOTHING, TOL, covariance, refine

_OPTIONS = (refine("baum-welch"), EFFORT, SMOOTHING, MAX_ITER, TOL)
_PLOTS = ("transitions", "decoded_sequence")
_CHAIN = {"startprob_": "simplex k", "transmat_": "simplex k k", "monitor_": "maybe ConvergenceMonitor"}
_MONITOR = {
    "ConvergenceMonitor": Stored(
        "odeco.models.hmm.base:ConvergenceMonitor",
        "",
        shapes("history: list of number, iter: whole, converged: flag, tol: number, n_iter: whole"),
    )
}


def _check_symbols(parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
    """Steps that are held are of the model's symbols, and one more for what is missing."""
    if "n_symbols_" not in learned or "_stream" not in learned:
        return
    stream, n_symbols = learned["_stream"], int(learned["n_symbols_"])
    held = [*stream._waiting, *([] if stream.first is None else [stream.first])]
    if any(data.codes is None or len(data.values) != n_symbols + 1 for data in held):
        raise ValueError(f"_stream should hold steps of {n_symbols} symbols.")


def _neighbours(triples: Any) -> bool:
    """Observations beside the steps before and after, and products as the features have them."""
    ndim = 3 if len(triples.basis.features.products) else 2
    same = triples.products.ndim == triples.seen_products.ndim == ndim
    return same and bool(len(triples.values) == 2 * len(triples.pairs))


_SYMBOLS: Mapping[str, Stored] = {
    "SymbolPairs": Stored(
        "odeco.moments.sequences:SymbolPairs",
        "s",
        shapes(
            "n_features: whole s, basis: none, n: whole, _single: finite s, _first: finite s, "
            "_counts: finite s s|sparse s s, _weight: finite-number"
        ),
    ),
    "SymbolTriples": Stored(
        "odeco.moments.sequences:SymbolTriples",
        "s r",
        shapes("n_features: whole s, basis: finite s r, n: whole, _core: finite r r r, _weight: number"),
    ),
    "StreamedSymbols": Stored(
        "odeco.models.hmm.stream:StreamedSymbols", "s", shapes("pairs: SymbolPairs s, triples: SymbolTriples s r")
    ),
}

_FEATURES: Mapping[str, Stored] = {
    "SequenceFeatures": Stored(
        "odeco.moments.sequence_features:FeatureMap",
        "d",
        shapes("center: finite d, axes: finite d d, knots: finite * d, products: places * 2 < d"),
    ),
    "FeatureBasis": Stored(
        "odeco.moments.sequence_features:FeatureBasis",
        "d f r",
        shapes(
            "features: SequenceFeatures d, mean: finite f, projection: finite f r, lift: finite f r, spectrum: finite *"
        ),
    ),
    "FeaturePairs": Stored(
        "odeco.moments.sequence_features:FeaturePairs",
        "d f",
        shapes(
            "features: SequenceFeatures d, weight: finite-number, pair_weight: finite-number, total: finite f, "
            "square: finite f f, lagged: finite f f"
        ),
    ),
    "FeatureTriples": Stored(
        "odeco.moments.sequence_features:FeatureTriples",
        "d f",
        shapes(
            "basis: FeatureBasis d f r, n: whole, pair_weight: finite-number, triple_weight: finite-number, "
            "first_weight: finite-number, pairs: finite r+1 r+1, triples: finite r+1 r+1 r+1, "
            "first: finite r+1, seen: finite h d, values: finite h d, seen_products: finite h d|finite h d d, "
            "products: finite h d|finite h d d"
        ),
        _neighbours,
    ),
    "FeatureMoments": Stored(
        "odeco.models.hmm.starts:FeatureMoments",
        "d",
        shapes("pairs: FeaturePairs d f, triples: list of FeatureTriples d f, advice: list of text"),
    ),
    "StreamedFeatures": Stored(
        "odeco.models.hmm.starts:StreamedFeatures",
        "d",
        shapes("found: FeatureMoments d, triples: list of FeatureTriples d f"),
    ),
}


def _card(name: str, estimator: str, rows: str, summary: str, *, learned: Mapping[str, Any], **own: Any) -> Card:
    """What all three have in common."""
    return Card(
        name,
        f"odeco.models.hmm.{estimator}",
        rows,
        "state",
        summary,
        learned={**_CHAIN, **learned},
        page="odeco.report.chains:hmm_page",
        objective="log-likelihood per step",
        **own,
    )


_STREAM = "maybe stream StreamedFeatures d; Sequences d"
_OF_NUMBERS: Mapping[str, Any] = {
    "stored": {**_MONITOR, **_FEATURES},
    "parts": "odeco.plots.parts:column_states",
    "frame": "odeco.plots.frames:column_frame",
    "plots": (*_PLOTS, "profiles"),
}

CARDS = (
    _card(
        "hmm",
        "categorical:CategoricalHMM",
        "symbols",
        "Hidden states behind sequences of symbols: letters, words, events.",
        options=_OPTIONS,
        examples=(
            "odeco fit hmm moby_dick.txt --unit characters -k 2 --out letters.odeco",
            "odeco fit hmm clicks.csv --sequence session --columns page -k 6 --out visits.odeco",
        ),
        learned={
            "n_features_in_": "whole 1",  # symbols stand in one column
            "n_symbols_": "whole s",
            "emissionprob_": "simplex k s",
            "_stream": "maybe stream StreamedSymbols s; Sequences",
        },
        stored={**_MONITOR, **_SYMBOLS},
        check=_check_symbols,
        parts="odeco.plots.parts:symbol_states",
        frame="odeco.plots.frames:symbol_frame",
        plots=_PLOTS,
    ),
    _card(
        "gaussian-hmm",
        "gaussian:GaussianHMM",
        "features",
        "Hidden states behind sequences of measurements.",
        options=(covariance("spherical", "diag", "full", "tied"), *_OPTIONS),
        examples=(
            "odeco fit gaussian-hmm geyser.csv -k 3 --out geyser.odeco",
            "odeco fit gaussian-hmm sensors.parquet --sequence device --columns speed,load -k 4 --out states.odeco",
        ),
        learned={
            "means_": "finite k d",
            "covars_": ByOption("covariance_type", COVARIANCES),
            "_stream": _STREAM,
        },
        **_OF_NUMBERS,
    ),
    _card(
        "poisson-hmm",
        "poisson:PoissonHMM",
        "events",
        "Hidden states behind sequences of counts.",
        options=_OPTIONS,
        examples=(
            "odeco fit poisson-hmm earthquakes.csv --columns count -k 3 --out quakes.odeco",
            "odeco fit poisson-hmm calls.npy -k 2 --out calls.odeco",
        ),
        learned={"lambdas_": "nonnegative k d", "_stream": _STREAM},
        **_OF_NUMBERS,
    ),
)
