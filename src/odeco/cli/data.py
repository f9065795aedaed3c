"""What a command has read: arrays where they are small, what can be read in batches elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from odeco.cli.console import Stage

Options = Mapping[str, Any]

# Data up to this size are read once and kept; larger ones are read again for every pass.
HELD_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class Data:
    """What was read.

    Attributes
    ----------
    arguments : tuple
        Of `fit` and of all that predicts: arrays where they are small, what can be read in batches elsewhere.
    format : str
        What the input was found to be.
    names : dict
        "vocabulary", "feature_names" or "symbols", as far as they are known.
    rows : int or None
        How many there are, where that is known before they are fitted to.
    settings : dict
        Arguments of the estimator that follow from the data.
    text : dict or None
        Settings of the vectorizer that made counts of text.
    documents : callable or None
        Gives the texts again, for the report.
    table : TableInput or None
        The table that held the texts, for the report.
    keys : dict
        Columns that name the rows of the output of `transform`.
    """

    arguments: tuple[Any, ...]
    format: str
    names: Options = field(default_factory=dict)
    rows: int | None = None
    settings: Options = field(default_factory=dict)
    text: Options | None = None
    documents: Callable[[], Any] | None = None
    table: Any = None
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> Any:
        """As the report takes it: one argument, or a pair of sequences and their lengths."""
        return self.arguments[0] if len(self.arguments) == 1 else self.arguments

    def watched(self, stage: Stage) -> tuple[Any, ...]:
        """The arguments, what is read in batches seen by a stage; what is held needs no watching."""
        first, *others = self.arguments
        if hasattr(first, "reiterable"):
            return stage.watch(lambda: first), *others
        return (stage.watch(first) if callable(first) else first), *others


def held(read: Callable[[], Iterator[Any]], join: Callable[[list[Any]], Any]) -> Any:
    """All batches as one, or None where they take more than `HELD_BYTES`."""
    parts, size = [], 0
    for part in read():
        size += _n_bytes(part)
        if size > HELD_BYTES:
            return None
        parts.append(part)
    return join(parts)


def _n_bytes(part: Any) -> int:
    if hasattr(part, "counts"):  # a batch of counts
        part = part.counts
    if hasattr(part, "indptr"):
        return int(part.data.nbytes + part.indices.nbytes + part.indptr.nbytes)
    if hasattr(part, "parts") or isinstance(part, (list, tuple)):
        return sum(_n_bytes(each) for each in getattr(part, "parts", part))
    # An object is a text of its own: 64 bytes are a short one with its pointer.
    return int(part.size * 64 if part.dtype == object else part.nbytes)


def joined_rows(parts: list[Any]) -> Any:
    """Arrays or frames under one another."""
    import numpy as np

    from odeco.files.frames import Frame

    if isinstance(parts[0], Frame):
        columns = zip(*(part.parts for part in parts), strict=True)
        return Frame(parts[0].columns, tuple(np.concatenate(column) for column in columns))
    return np.concatenate(parts)


def joined_views(parts: list[list[Any]]) -> list[Any]:
    """The blocks of each view under one another."""
    import numpy as np
    from scipy import sparse

    views = zip(*parts, strict=True)
    return [sparse.csr_array(sparse.vstack(v)) if sparse.issparse(v[0]) else np.concatenate(v) for v in views]
