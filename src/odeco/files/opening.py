"""Opening an input file: found, readable, decompressed, in blocks of whole lines; every failure is one clear line."""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, TypeAlias

from odeco.exceptions import InputFileError
from odeco.files.compression import DAMAGED, MAGIC_BYTES, codec_of, open_packed
from odeco.files.encodings import text_decoder
from odeco.files.limits import limits, variable

PathLike: TypeAlias = "str | os.PathLike[str]"

# Bytes that are read at a time: what is made of them takes some ten times as much, and fits any memory.
BLOCK_BYTES = 2**20
_HEAD_BYTES = 2**16
_LONG_LINE = "a line is too long (is this a text file?)"


@dataclass(frozen=True, eq=False)
class InputFile:
    """A file (or the copy of a pipe) that can be read as often as needed; `name` is what its user calls it."""

    path: Path
    name: str
    codec: str = ""  # what compresses it, if anything
    spool: Any = field(default=None, repr=False)  # keeps the copy of a pipe alive

    @property
    def compressed(self) -> bool:
        """Whether its bytes have to be unpacked."""
        return bool(self.codec)

    def error(self, text: str, line: int | None = None) -> InputFileError:
        """The error to raise: one line that names the file."""
        place = self.name if line is None else f"{self.name}, line {line}"
        return InputFileError(f"{place}: {one_line(text)}")

    def check_limit(self, name: str, found: int, what: str, line: int | None = None) -> None:
        """Refuse what the file claims beyond one of the `Limits`, and say how that is raised."""
        most = getattr(limits(), name)
        if found > most:
            raise self.error(
                f"{what}, the limit is {most}: set {variable(name)} to raise it if the file is right.", line
            )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn whatever a parser raises about this file into an `InputFileError`."""
        try:
            yield
        except InputFileError:
            raise
        except UnicodeDecodeError as error:
            raise self.error(_undecodable(error)) from error
        except DAMAGED as error:
            raise self.error(f"the compressed data are damaged or cut short ({error}): copy the file again.") from error
        except MemoryError as error:
            raise self.error(
                "it does not fit in memory, or is damaged and claims to be large: Parquet files are read in pieces."
            ) from error
        except OSError as error:
            raise self.error(_os_words(error)) from error
        except (ValueError, OverflowError, NotImplementedError, struct.error, zipfile.BadZipFile) as error:
            raise self.error(str(error) or type(error).__name__) from error

    def open(self) -> BinaryIO:
        """The bytes, decompressed."""
        if self.compressed:
            return open_packed(self.path, self.codec, self.name, BLOCK_BYTES)
        return self.path.open("rb")

    def head(self) -> bytes:
        """The first bytes, by which the format is recognised."""
        with self.guard(), self.open() as stream:
            return stream.read(_HEAD_BYTES)

    def line_blocks(self, skip_lines: int = 0) -> Iterator[tuple[int, bytes]]:
        """Blocks of whole lines with the number of their first line (from 1); the last may lack its newline."""
        with self.guard(), self.open() as stream:
            for line in range(1, skip_lines + 1):
                self.read_line(stream, line)
            yield from self._whole_lines(_pieces(stream), b"\n", 1 + skip_lines)

    def text_blocks(self, encoding: str = "utf-8") -> Iterator[tuple[int, list[str]]]:
        """Blocks of lines as text, without their newlines, with the number of their first line (from 1)."""
        line = 1
        with self.guard(), self.open() as stream:
            try:
                for line, text in self._whole_lines(_texts(stream, encoding), "\n"):
                    if "\0" in text:
                        raise self.error("it holds binary data (NUL bytes), and lines of text are expected.")
                    yield line, text.removesuffix("\n").split("\n")
            except UnicodeDecodeError as error:
                raise self.error(f"near line {line}: {_undecodable(error)}") from error

    def text_pieces(self, encoding: str = "utf-8") -> Iterator[str]:
        """The text as it comes, cut anywhere: for formats that know no lines."""
        with self.guard(), self.open() as stream:
            yield from _texts(stream, encoding)

    def read_line(self, stream: BinaryIO, line: int) -> bytes:
        """The next line of a stream, no longer than a line may be."""
        found = stream.readline(limits().line_bytes + 1)
        self.check_limit("line_bytes", len(found), _LONG_LINE, line)
        return found

    def unpacked(self) -> BinaryIO:
        """A stream to seek in: that of the file itself, or its decompressed bytes, which are held."""
        if not self.compressed:
            return self.open()
        with self.guard(), self.open() as stream:
            content = stream.read(limits().unpacked_bytes + 1)
        self.check_limit("unpacked_bytes", len(content), "it holds too many bytes when it is unpacked")
        return io.BytesIO(content)

    def _whole_lines(self, pieces: Iterable[AnyStr], newline: AnyStr, line: int = 1) -> Iterator[tuple[int, AnyStr]]:
        """Pieces cut anew, behind newlines. What waits for its newline is joined once: long lines take linear time."""
        waiting: list[AnyStr] = []
        n_waiting = 0
        for piece in pieces:
            first, cut = piece.find(newline), piece.rfind(newline) + 1
            self.check_limit("line_bytes", n_waiting + (first if cut else len(piece)), _LONG_LINE, line)
            if cut:
                waiting.append(piece[:cut])
                whole = newline[:0].join(waiting)
                yield line, whole
                line += whole.count(newline)
                waiting, n_waiting = [], 0
            waiting.append(piece[cut:])
            n_waiting += len(piece) - cut
        if n_waiting:
            yield line, newline[:0].join(waiting)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(BLOCK_BYTES), b"")


def _texts(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Pieces of text; every kind of newline becomes the one of Unix."""
    decoder = io.IncrementalNewlineDecoder(text_decoder(encoding), translate=True)
    for piece in _pieces(stream):
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def open_input(path: PathLike) -> InputFile:
    """Find a file and look whether it can be read; "-" is the standard input, kept in a temporary file."""
    if str(path) == "-":
        return _spooled(sys.stdin.buffer, "<stdin>")
    name = os.fspath(path)
    found = Path(os.path.expanduser(name))  # ~ of an unknown user stays as it is, and is not found
    try:
        mode = found.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputFileError(f"{name}: is a folder, a file is expected.")
        with found.open("rb") as stream:
            if not stat.S_ISREG(mode):
                return _spooled(stream, name)
            magic = stream.read(MAGIC_BYTES)
    except OSError as error:
        raise InputFileError(f"{name}: {_os_words(error)}") from error
    except ValueError as error:  # a NUL in the name
        raise InputFileError(f"{name!r}: {one_line(str(error))}") from error
    if not magic:
        raise InputFileError(f"{name}: is empty.")
    return InputFile(found, name, codec_of(magic))


def _spooled(stream: Any, name: str) -> InputFile:
    """A pipe can be read only once, so it is copied first."""
    try:
        spool = tempfile.NamedTemporaryFile(prefix="odeco-")  # noqa: SIM115  (closed and removed with the InputFile)
        shutil.copyfileobj(stream, spool, BLOCK_BYTES)
        spool.flush()
    except OSError as error:
        raise InputFileError(
            f"{name}: cannot be kept in {tempfile.gettempdir()} ({_os_words(error)}) Set TMPDIR to a folder with space."
        ) from error
    path = Path(spool.name)
    with path.open("rb") as copy:
        magic = copy.read(MAGIC_BYTES)
    if not magic:
        raise InputFileError(f"{name}: is empty.")
    return InputFile(path, name, codec_of(magic), spool)


def one_line(text: str, width: int = 300) -> str:
    """Words of a message in one line, shortened in the middle where a library quotes half the file."""
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in text[: 4 * width]).split())
    return line if len(line) <= width else f"{line[: width - 60]} ... {line[-50:]}"


def _undecodable(error: UnicodeDecodeError) -> str:
    byte = error.object[error.start : error.start + 1].hex()
    return f"byte 0x{byte} is not {error.encoding}: give the encoding of the file (latin-1, utf-16, ...)."


def _os_words(error: OSError) -> str:
    """What the system says, in the words of a sentence."""
    if isinstance(error, FileNotFoundError):
        return "no such file."
    if isinstance(error, PermissionError):
        return "permission denied: it cannot be read."
    return f"{error.strerror or error}."
