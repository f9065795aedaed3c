"""Sources that write their sums to disk as they go, and go on from there when they are read again.

Every pass over a source is a sum (`add_to`), and what a fit does depends on nothing but its passes. So a fit that was
killed can be repeated: passes that were complete are read from their files, the one that was not goes on from the rows
it had seen, and the rest are made. All rows are read once before that, and signed: the files are of one fit to these
rows, or they are refused. Files are archives (`odeco.archive`): versioned, checksummed, written whole or not at all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from odeco import archive
from odeco.exceptions import CheckpointWarning, ModelFileError
from odeco.sources.base import Batch, Source
from odeco.sources.dense import DenseSource, OutOfCoreRows
from odeco.sources.kinds import Checkpointed
from odeco.sources.signatures import Signature, same_signature, signature
from odeco.sources.views import ViewSource
from odeco.sources.votes import VoteSource

KIND, VERSION = "moments checkpoint", 2
_CSR = ("data", "indices", "indptr")


class Checkpoint:
    """The files of one fit: `given` says where, and `signed` of what."""

    def __init__(self, given: Checkpointed, signed: Signature) -> None:
        self._given, self._signed, self._pass = given, signed, 0
        given.folder.mkdir(parents=True, exist_ok=True)
        if given.signature_file.exists():
            self._compare(given.signature_file)

    def total(self, empty: Any, batches: Callable[[int], Iterator[Any]]) -> Any:
        """`empty` with all batches added; ``batches(n)`` reads the source without its first n batches."""
        number, self._pass = self._pass, self._pass + 1
        done = self._read(self._given.pass_file(number), empty, number)
        if done is not None:
            return empty.unpack(done[1])
        sums, n_batches = deepcopy(empty), 0
        begun = self._read(self._given.current_file, empty, number)
        if begun is not None:
            n_batches = begun[0]
            sums.unpack(begun[1])
        written = time.monotonic()
        for batch in batches(n_batches):
            sums.update(batch)
            n_batches += 1
            if time.monotonic() - written >= self._given.seconds:
                self._write(self._given.current_file, empty, number, n_batches, sums.pack())
                written = time.monotonic()
        return self._finish(empty, number, n_batches, sums.pack())

    def remember(self, empty: Any, make: Callable[[Any], Any]) -> Any:
        """``make(empty)``, or what it gave before: a whole pass at a time."""
        number, self._pass = self._pass, self._pass + 1
        done = self._read(self._given.pass_file(number), empty, number)
        if done is not None:
            return empty.unpack(done[1])
        return self._finish(empty, number, 0, make(deepcopy(empty)).pack())

    def _finish(self, empty: Any, number: int, n_batches: int, packed: Any) -> Any:
        """Keep a complete pass. What is returned went through the file's form: a repetition gives the same bits."""
        self._write(self._given.pass_file(number), empty, number, n_batches, packed)
        self._given.current_file.unlink(missing_ok=True)
        return empty.unpack(packed)

    def _write(self, path: Path, empty: Any, number: int, n_batches: int, packed: Any) -> None:
        document = {"pass": number, "n_batches": n_batches, "of": self._signed.digest, "on": signature(empty)}
        try:
            if not self._given.signature_file.exists():
                arrays = {"rows": self._signed.rows, "digests": self._signed.digests}
                archive.write(self._given.signature_file, KIND, VERSION, {"fit": self._signed.fit}, arrays)
            archive.write(path, KIND, VERSION, document, dict(_flat(packed)))
        except OSError as error:  # a full disk is no reason to lose the fit
            text = f"the checkpoint {path} could not be written ({error}); the fit goes on, and an older one is kept."
            warnings.warn(text, CheckpointWarning, stacklevel=2)

    def _compare(self, path: Path) -> None:
        """Raise unless the files are of this fit to these rows."""
        document, arrays = _open(path)
        try:
            before = Signature(dict(document["fit"]), arrays["rows"], arrays["digests"])
            difference = self._signed.difference(before)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelFileError(
                f"{path}: damaged ({error}). Delete this file: the others are checked without it."
            ) from error
        if difference is not None:
            raise _of_another_fit(path.parent, difference)

    def _read(self, path: Path, empty: Any, number: int) -> tuple[int, _Restored] | None:
        """The number of batches in a file of this pass and their sums; None where there is no such file."""
        if not path.exists():
            return None
        document, arrays = _open(path)
        try:
            found, n_batches, of, on = (document[name] for name in ("pass", "n_batches", "of", "on"))
            if path == self._given.current_file and found != number:
                return None  # its pass has been completed since, or one before it was deleted
            same = found == number and same_signature(on, signature(empty))
            if of == self._signed.digest and same:
                if type(n_batches) is not int or n_batches < 0:
                    raise ValueError(f"it claims {n_batches!r} batches")
                return n_batches, _restored(arrays, empty.pack())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{path}: damaged ({error}). {_DELETE}") from error
        what = "what it sums on differs" if of == self._signed.digest else "its data or parameters differ"
        raise _of_another_fit(path, what)


_DELETE = "Delete this file: the fit goes on from the passes before it."


def _open(path: Path) -> tuple[Any, dict[str, NDArray[Any]]]:
    try:
        version, document, arrays = archive.read(path, KIND, VERSION)
    except ModelFileError as error:
        raise ModelFileError(f"{error} {_DELETE}") from error
    if version != VERSION:
        raise ModelFileError(
            f"{path}: written by an older odeco, which did not say of which data. Finish the fit with that version, or "
            "delete the files of this folder."
        )
    return document, arrays


def _of_another_fit(path: Path, difference: str) -> ModelFileError:
    return ModelFileError(
        f"{path}: belongs to another fit: {difference}. Repeat the call that was interrupted (the same data and "
        "parameters, random_state an integer), or use another folder."
    )


def _flat(packed: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of packed sums by the names they have in a file; CSR arrays as those that they are made of."""
    for kind, values in (("sum", packed.sums), ("max", packed.maxima)):
        for name, value in values.items():
            if sparse.issparse(value):
                yield from ((f"csr.{name}.{part}", getattr(value, part)) for part in _CSR)
            else:
                yield f"{kind}.{name}", value


def _restored(arrays: dict[str, NDArray[Any]], like: Any) -> _Restored:
    """Packed sums from a file, if they are as the empty ones `like` in names, types and shapes: compiled code believes
    them. Anything else is a ValueError.
    """
    expected = dict(_flat(like))
    if set(expected) != set(arrays):
        raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(expected)}")
    sums = {
        name: _checked_csr(name, value, arrays) if sparse.issparse(value) else _checked(f"sum.{name}", value, arrays)
        for name, value in like.sums.items()
    }
    return _Restored(sums, {name: _checked(f"max.{name}", value, arrays) for name, value in like.maxima.items()})


def _checked(name: str, like: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    found = arrays[name]
    if found.shape != like.shape or found.dtype != like.dtype:
        raise ValueError(f"{name} is {found.dtype} of shape {found.shape}, not {like.dtype} of shape {like.shape}")
    return found


def _checked_csr(name: str, like: Any, arrays: dict[str, NDArray[Any]]) -> sparse.csr_array:
    data, indices, indptr = (arrays[f"csr.{name}.{part}"] for part in _CSR)
    if data.dtype != like.dtype or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError(f"csr.{name} has values and places of types {data.dtype}, {indices.dtype}, {indptr.dtype}")
    matrix = sparse.csr_array((data, indices, indptr), shape=like.shape)
    matrix.check_format(full_check=True)  # places in range, rows in order
    return matrix


@dataclass(frozen=True, eq=False)
class _Restored:
    """Packed sums from a file: what `Additive.unpack` takes."""

    sums: dict[str, Any]
    maxima: dict[str, NDArray[Any]]


def keep(source: Any, given: Checkpointed) -> Any:
    """A source of anything that keeps its sums; all its rows are read and signed first."""
    checkpoint = Checkpoint(given, Signature.of(source, given.fit))
    for kind, keeping in _KEEPING:
        if isinstance(source, kind) and not hasattr(source, "checkpoint"):
            return keeping(source, checkpoint)
    kept = copy(source)  # sequences, and rows elsewhere, keep sums themselves
    kept.checkpoint = checkpoint
    return kept


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

    def __init__(self, source: DenseSource, checkpoint: Checkpoint) -> None:
        super().__init__(lambda: source, source._batch_size)
        self._source, self.checkpoint = source, checkpoint
        if hasattr(source, "schema"):
            self.schema = source.schema

    def map(self, function: Callable[[Any], Any]) -> OutOfCoreRows:
        return CheckpointedRows(super().map(function), self.checkpoint)


_KEEPING: tuple[tuple[type, Callable[[Any, Checkpoint], Any]], ...] = (
    (Source, CheckpointedCounts),
    (DenseSource, CheckpointedRows),
    (VoteSource, CheckpointedVotes),
    (ViewSource, CheckpointedViews),
)


def _skipped(batches: Any, n: int) -> Iterator[Any]:
    """The batches of a source after the first n."""
    for index, batch in enumerate(batches):
        if index >= n:
            yield batch
