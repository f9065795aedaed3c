"""What may be wrapped around data before they are given to `fit`, and which library a collection is of, found out
without importing any.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, eq=False)
class OutOfCore:
    """Data of which nothing is kept but sums. Made by :func:`out_of_core`."""

    data: Any = field(repr=False)


def out_of_core(X: Any) -> OutOfCore:
    """Say that nothing of the rows of X may be kept: `fit` then takes what it takes of Dask and Spark collections.

    Mixtures and ICA otherwise keep rows projected to k dimensions where these fit into memory (a few hundred MB, see
    docs/scaling.md), and refine on them. Topic models never keep documents of a stream.

    Parameters
    ----------
    X : array, list of batches, function that returns a new iterator over batches, or a source
    """
    return X if isinstance(X, OutOfCore) else OutOfCore(X)


@dataclass(eq=False)
class Checkpointed:
    """Data with a folder for the sums over them. Made by :func:`checkpointed`."""

    data: Any = field(repr=False)
    folder: Path
    seconds: float
    fit: dict[str, str] = field(default_factory=dict, repr=False)
    """The estimator and its arguments, once one is fitted."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.clear()

    def clear(self) -> None:
        """Remove the files: the next fit starts from nothing."""
        for path in (*self.folder.glob("pass-*.odeco-moments"), self.current_file, self.signature_file):
            path.unlink(missing_ok=True)
        if self.folder.exists() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    @property
    def signature_file(self) -> Path:
        """What the files beside it are of."""
        return self.folder / "fit.odeco-moments"

    @property
    def current_file(self) -> Path:
        """The sums of the pass that is being made."""
        return self.folder / "current.odeco-moments"

    def pass_file(self, number: int) -> Path:
        """The sums of a pass that was completed."""
        return self.folder / f"pass-{number:05d}.odeco-moments"


def checkpointed(X: Any, folder: str | os.PathLike[str], *, seconds: float = 60.0) -> Checkpointed:
    """Let `fit` write its sums into a folder every so many seconds, and go on from there when it is called again.

    Repeat the same call after an interruption: the same data, the same parameters, `random_state` an integer. The
    result is that of a fit that was not interrupted, to rounding. Anything else is an error: `fit` reads all rows once
    before its first pass, and compares them with those that the files are of. As a context manager, the files are
    removed when the block ends without an error:

        with checkpointed(read, "run.checkpoint") as data:
            model.fit(data)

    Parameters
    ----------
    X : anything that `fit` takes, but not an iterator
        Of a Dask or Spark collection whole passes are kept, not parts of them: the engine repeats what is lost.
    folder : path
        Made where it is not there. One file per pass, as large as its sums: O(d k) numbers.
    seconds : float
        How long a process works before it writes again.
    """
    if not (isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < float("inf")):
        raise ValueError(f"seconds must be a number of at least 0, got {seconds!r}.")
    if isinstance(X, Iterator):
        raise ValueError("an iterator can be read only once: pass a function that returns a new iterator at each call.")
    return Checkpointed(X, Path(folder), float(seconds))


def fitted_by(estimator: Any, X: Any) -> Any:
    """X as it is; `checkpointed` data are told of whose fit their files will be."""
    if not isinstance(X, Checkpointed):
        return X
    from odeco.sources.signatures import described

    return replace(X, fit=described(estimator))


@dataclass(frozen=True, eq=False)
class SparkColumn:
    """Data in a Spark DataFrame. Made by :func:`odeco.sources.spark.from_spark`.

    `kind` is "vectors", "arrays", "tokens", "numbers", "rows", "views" or "sequences"; `vocabulary` are the words
    counted in token lists.
    """

    frame: Any = field(repr=False)
    columns: tuple[str, ...]
    kind: str
    vocabulary: tuple[str, ...] | None = field(default=None, repr=False)
    weight: str | None = None


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def are_dask(X: Any) -> bool:
    """Whether X is a list of Dask collections: views of the same samples."""
    return isinstance(X, (list, tuple)) and bool(X) and all(is_dask(view) for view in X)


def is_spark(X: Any) -> bool:
    """Whether X is a Spark DataFrame, or a column of one."""
    if isinstance(X, SparkColumn):
        return True
    return type(X).__module__.split(".")[0] == "pyspark" and hasattr(X, "rdd") and hasattr(X, "select")


def is_remote(X: Any) -> bool:
    """Whether X is a collection of one of the engines: never to be turned into one array."""
    return is_dask(X) or is_spark(X)
