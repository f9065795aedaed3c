"""What the files of every model may hold: rows that wait in a stream, the stream itself, what a fit says of itself.

Compiled loops go on with the sums of `partial_fit` and trust what they find, so that everything a file says of an
object is compared with these lines and those of the cards first: types, shapes, ranges, finite values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odeco.fitting.card import Stored, shapes


def _not_negative(batch: Any) -> bool:
    return bool((batch.counts.data >= 0).all())


def _sequences(data: Any) -> bool:
    """Offsets that ascend from 0 to the number of steps, and codes that are rows of the values."""
    import numpy as np

    offsets, codes, values = data.offsets, data.codes, data.values
    if offsets[0] != 0 or (np.diff(offsets) <= 0).any():
        return False
    if codes is None:
        return bool(offsets[-1] == len(values))
    inside = codes.shape == (offsets[-1],) and (codes >= 0).all() and (codes < len(values)).all()
    return bool(inside)


def _chunk(chunk: Any) -> bool:
    """Rows side by side, each with its weight."""
    tables = [piece.rows for piece in chunk.pieces]
    sound = all(getattr(rows, "ndim", 0) == 2 for rows in tables) and len({rows.shape[1] for rows in tables}) == 1
    return sound and all(piece.weights is None or len(piece.weights) == len(piece.rows) for piece in chunk.pieces)


def _stream(stream: Any) -> bool:
    """Samples that wait are all there are until there are sums; rows are complete, tables and symbols alike."""
    import numpy as np

    held = [*stream._waiting, *([] if stream.first is None else [stream.first])]
    if stream.sums is None and stream.n != sum(map(len, stream._waiting)):
        return False
    rows = [chunk.rows for chunk in held if hasattr(chunk, "rows")]
    steps = [chunk for chunk in held if hasattr(chunk, "offsets")]
    return all(bool(np.isfinite(part).all()) for part in rows) and _alike(steps)


def _alike(steps: list[Any]) -> bool:
    """Symbols of one alphabet, then -1 for a missing one; or rows of numbers."""
    import numpy as np

    if any(data.codes is not None for data in steps):
        alphabet = [*range(len(steps[0].values) - 1), -1]
        return all(data.values.dtype.kind == "i" and np.array_equal(data.values, alphabet) for data in steps)
    return all(data.values.ndim == 2 and data.values.dtype.kind == "f" for data in steps)


_WEIGHTS = {"weights": "?nonnegative n"}
_ROWS: Mapping[str, Stored] = {
    "Batch": Stored(
        "odeco.sources.base:Batch",
        "d",
        {"counts": "sparse n d", "lengths": "nonnegative n", **_WEIGHTS},
        _not_negative,
    ),
    "DenseBatch": Stored("odeco.sources.dense:DenseBatch", "d", {"rows": "values n d", **_WEIGHTS}),
    "Column": Stored(
        "odeco.sources.tables:Column",
        "",
        shapes(
            "name: text, family: among gaussian bernoulli categorical poisson, categories: list of value, missing: flag"
        ),
    ),
    "Schema": Stored("odeco.sources.tables:Schema", "d", shapes("columns: list d of Column, notes: list of text")),
    "TablePiece": Stored(
        "odeco.sources.rows:TablePiece", "", shapes("rows: value, weights: ?nonnegative *, read: flag")
    ),
    "TableChunk": Stored("odeco.sources.rows:TableChunk", "d", shapes("pieces: list of TablePiece"), _chunk),
    "ViewBatch": Stored(
        "odeco.sources.views:ViewBatch", "v", {"blocks": "list v of finite n *|sparse n *", **_WEIGHTS}
    ),
    "VoteBatch": Stored("odeco.sources.votes:VoteBatch", "", {"votes": "sparse n *", **_WEIGHTS}),
    "Sequences": Stored(
        "odeco.sources.sequences:Sequences",
        "d",
        shapes("values: any m|any m d, codes: ?places *, offsets: integers s+1, weights: ?nonnegative s"),
        _sequences,
    ),
}

_STREAM = Stored(
    "odeco.fitting.stream:MomentStream",
    "",
    shapes("seed: whole, options: mapping, n: whole, sums: value, first: value, _waiting: list of value"),
    _stream,
)

_REPORTS: Mapping[str, Stored] = {
    "Certificate": Stored(
        "odeco.decomposition.result:Certificate", "", shapes("residuals: float r, contraction: float r")
    ),
    "Choice": Stored(
        "odeco.fitting.choice.record:Choice",
        "",
        shapes(
            "best: positive-whole, reason: text, plausible: list of positive-whole, "
            "criterion: among bic icl marginal held_out replication spectrum, table: list of Evidence, "
            "open_ended: flag"
        ),
    ),
    "Evidence": Stored(
        "odeco.fitting.choice.record:Evidence",
        "",
        shapes(
            "n_components: positive-whole, eigenvalue: number, above_noise: ?flag, replication: number, "
            "held_out: number, held_out_error: number, log_likelihood: number, n_parameters: ?whole, bic: number, "
            "icl: number, marginal: number, seconds: number, note: text, blocks: float b 2"
        ),
    ),
    "Diagnostics": Stored(
        "odeco.diagnostics:Diagnostics",
        "",
        shapes(
            "n_components: ?whole, spectrum: float *, gap: number, condition: number, residual: number, "
            "clipped_mass: number, suggested_components: ?whole, method: text, n_passes: whole, "
            "advice: list of text, details: mapping"
        ),
    ),
    "Record": Stored("odeco.refinement.loop:Record", "", shapes("iteration: whole, value: number, gain: number")),
    "Status": Stored("odeco.decomposition.result:Status", "", shapes("code: StatusCode, message: text, advice: text")),
    "StatusCode": Stored("odeco.decomposition.result:StatusCode"),
    "StopReason": Stored("odeco.refinement.loop:StopReason"),
    "Trace": Stored(
        "odeco.refinement.loop:Trace", "", shapes("records: list of Record, n_iter: whole, reason: StopReason")
    ),
}

SHARED: Mapping[str, Stored] = {**_ROWS, "MomentStream": _STREAM, **_REPORTS}
