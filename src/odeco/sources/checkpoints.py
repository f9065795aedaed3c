"""Sources that write their sums to disk as they go, and go on from there when they are read again.

Every pass over a source is a sum (`add_to`), and what a fit does depends on nothing but its passes. So a fit that was
killed can be repeated: passes that were complete are read from their files, the one that was not goes on from the rows
it had seen, and the rest are made. Files are archives (`odeco.archive`): versioned, checksummed, written whole or not
at all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco import archive
from odeco.exceptions import CheckpointWarning, ModelFileError
from odeco.sources.base import Batch, Source
from odeco.sources.dense import DenseSource, OutOfCoreRows, first_rows
from odeco.sources.kinds import Checkpointed
from odeco.sources.partitions import PartitionedCounts, PartitionedRows
from odeco.sources.remote import PartitionedViews
from odeco.sources.remote_votes import PartitionedVotes
from odeco.sources.signatures import same_signature, signature
from odeco.sources.views import ViewSource
from odeco.sources.votes import VoteSource

KIND, VERSION = "moments checkpoint", 1


class Checkpoint:
    """The files of one fit."""

    def __init__(self, folder: Path, seconds: float, data: Any = None) -> None:
        self.folder, self.seconds = folder, seconds
        folder.mkdir(parents=True, exist_ok=True)
        self._pass = 0
        self._data = signature(data)  # of the first rows: other data are not taken for the same

    def total(self, empty: Any, batches: Callable[[int], Iterator[Any]]) -> Any:
        """`empty` with all batches added; ``batches(n)`` reads the source without its first n batches."""
        number, self._pass = self._pass, self._pass + 1
        done = self._read(self._finished(number), empty, number)
        if done is not None:
            return empty.unpack(_unflatten(done[1]))
        sums, n_batches = deepcopy(empty), 0
        begun = self._read(self._current, empty, number)
        if begun is not None:
            n_batches = int(begun[0])
            sums.unpack(_unflatten(begun[1]))
        written = time.monotonic()
        for batch in batches(n_batches):
            sums.update(batch)
            n_batches += 1
            if time.monotonic() - written >= self.seconds:
                self._write(self._current, empty, number, n_batches, sums)
                written = time.monotonic()
        return self._finish(empty, number, n_batches, sums.pack())

    def remember(self, empty: Any, make: Callable[[Any], Any]) -> Any:
        """``make(empty)``, or what it gave before: a whole pass at a time."""
        number, self._pass = self._pass, self._pass + 1
        done = self._read(self._finished(number), empty, number)
        if done is not None:
            return empty.unpack(_unflatten(done[1]))
        return self._finish(empty, number, 0, make(deepcopy(empty)).pack())

    def _finish(self, empty: Any, number: int, n_batches: int, packed: Any) -> Any:
        """Keep a complete pass. What is returned went through the file's form: a repetition gives the same bits."""
        self._write(self._finished(number), empty, number, n_batches, packed)
        self._current.unlink(missing_ok=True)
        return empty.unpack(packed)

    def _signature(self, empty: Any) -> dict[str, Any]:
        return {**signature(empty), **{f"data{name}": value for name, value in self._data.items()}}

    def _finished(self, number: int) -> Path:
        return self.folder / f"pass-{number:05d}.odeco-moments"

    @property
    def _current(self) -> Path:
        return self.folder / "current.odeco-moments"

    def _write(self, path: Path, empty: Any, number: int, n_batches: int, sums: Any) -> None:
        packed = sums.pack() if hasattr(sums, "pack") else sums
        arrays = {f"sum.{name}": value for name, value in packed.sums.items() if not sparse.issparse(value)}
        arrays |= _flatten({name: value for name, value in packed.sums.items() if sparse.issparse(value)})
        arrays |= {f"max.{name}": value for name, value in packed.maxima.items()}
        document = {"pass": number, "n_batches": n_batches, "on": self._signature(empty)}
        try:
            archive.write(path, KIND, VERSION, document, arrays)
        except OSError as error:  # a full disk is no reason to lose the fit
            text = f"the checkpoint {path} could not be written ({error}); the fit goes on, and an older one is kept."
            warnings.warn(text, CheckpointWarning, stacklevel=2)

    def _read(self, path: Path, empty: Any, number: int) -> tuple[int, dict[str, NDArray[Any]]] | None:
        if not path.exists():
            return None
        try:
            _, document, arrays = archive.read(path, KIND, VERSION)
            found, n_batches, on = document["pass"], document["n_batches"], document["on"]
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"{path}: damaged ({error}).") from error
        except ModelFileError as error:
            raise ModelFileError(f"{error} Delete this file: the fit goes on from the passes before it.") from error
        if path == self._current and found < number:
            return None  # its pass has been completed since
        if found != number or not same_signature(on, self._signature(empty)):
            raise ModelFileError(
                f"{path}: belongs to another fit (other data, parameters or random_state; random_state must be an "
                "integer). Repeat the call that was interrupted, or use another folder."
            )
        return int(n_batches), arrays


def _flatten(matrices: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """CSR arrays as the arrays that they are made of."""
    return {
        f"csr.{name}.{part}": np.asarray(getattr(value, part))
        for name, value in matrices.items()
        for part in ("data", "indices", "indptr", "shape")
    }


def _unflatten(arrays: dict[str, NDArray[Any]]) -> Any:
    matrices = {}
    for name in {name[4:].rpartition(".")[0] for name in arrays if name.startswith("csr.")}:
        data, indices, indptr, shape = (arrays[f"csr.{name}.{part}"] for part in ("data", "indices", "indptr", "shape"))
        matrices[name] = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    return _Restored(
        {name[4:]: value for name, value in arrays.items() if name.startswith("sum.")} | matrices,
        {name[4:]: value for name, value in arrays.items() if name.startswith("max.")},
    )


@dataclass(frozen=True, eq=False)
class _Restored:
    """Packed sums from a file: what `Additive.unpack` takes."""

    sums: dict[str, Any]
    maxima: dict[str, NDArray[Any]]


def keep_counts(source: Source, given: Checkpointed) -> Source:
    """A source of counts that keeps its sums."""
    if isinstance(source, PartitionedCounts):
        return source.keeping(Checkpoint(given.folder, given.seconds))
    first = next(iter(source)).counts
    data = [source.n_features, first.data[:100_000], first.indices[:100_000]]
    return CheckpointedCounts(source, Checkpoint(given.folder, given.seconds, data))


def keep_rows(source: DenseSource, given: Checkpointed) -> OutOfCoreRows:
    """A source of dense rows that keeps its sums."""
    if isinstance(source, PartitionedRows):
        return source.keeping(Checkpoint(given.folder, given.seconds))
    data = [source.n_features, first_rows(source, 1024).rows]
    return CheckpointedRows(source, Checkpoint(given.folder, given.seconds, data), getattr(source, "schema", None))


def keep_votes(source: VoteSource, given: Checkpointed) -> VoteSource:
    """A source of votes that keeps its sums."""
    if isinstance(source, PartitionedVotes):
        return source.keeping(Checkpoint(given.folder, given.seconds))
    first = next(iter(source)).votes
    return CheckpointedVotes(source, Checkpoint(given.folder, given.seconds, [first.shape[1], first.indices[:100_000]]))


def keep_views(source: ViewSource, given: Checkpointed) -> ViewSource:
    """A source of views that keeps its sums."""
    if isinstance(source, PartitionedViews):
        return source.keeping(Checkpoint(given.folder, given.seconds))
    data = [(block.shape[1], np.asarray(block.sum(axis=1))) for block in next(iter(source)).blocks]
    return CheckpointedViews(source, Checkpoint(given.folder, given.seconds, data))


class _KeepsSums:
    """A source whose sums are kept in a folder."""

    checkpoint: Checkpoint

    def add_to(self, sums: Any) -> Any:
        """Add all batches to `sums`, which must be empty."""
        return self.checkpoint.total(sums, lambda n: _skipped(self, n))


class CheckpointedVotes(_KeepsSums, VoteSource):
    """Votes whose sums are kept."""

    def __init__(self, source: VoteSource, checkpoint: Checkpoint) -> None:
        super().__init__(lambda: source, source.names, source.items)
        self.checkpoint = checkpoint


class CheckpointedViews(_KeepsSums, ViewSource):
    """Views whose sums are kept."""

    def __init__(self, source: ViewSource, checkpoint: Checkpoint) -> None:
        super().__init__(lambda: source)
        self.checkpoint = checkpoint


class CheckpointedCounts(Source):
    """Counts whose sums are kept in a folder."""

    def __init__(self, source: Source, checkpoint: Checkpoint) -> None:
        self._source, self.checkpoint = source, checkpoint

    @property
    def n_features(self) -> int:
        return self._source.n_features

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._source)

    def add_to(self, sums: Any) -> Any:
        """Add all rows to `sums`, which must be empty."""
        return self.checkpoint.total(sums, lambda n: _skipped(self._source, n))

    def map(self, function: Callable[[Batch], Batch]) -> CheckpointedCounts:
        return CheckpointedCounts(self._source.map(function), self.checkpoint)


class CheckpointedRows(_KeepsSums, OutOfCoreRows):
    """Dense rows whose sums are kept in a folder."""

    def __init__(self, source: DenseSource, checkpoint: Checkpoint, schema: Any = None) -> None:
        super().__init__(lambda: source, source._batch_size)
        self._source, self.checkpoint = source, checkpoint
        if schema is not None:
            self.schema = schema

    def map(self, function: Callable[[Any], Any]) -> OutOfCoreRows:
        return CheckpointedRows(super().map(function), self.checkpoint)


def _skipped(batches: Any, n: int) -> Iterator[Any]:
    """The batches of a source after the first n."""
    for index, batch in enumerate(batches):
        if index >= n:
            yield batch
