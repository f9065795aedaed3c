"""Arrays and JSON in one file: how models and sums are kept.

A zip that any tool opens: ``odeco.json`` says what the file is (kind, version, a document, and the dtype, shape and
SHA-256 of each array), ``arrays/NAME.npy`` hold the arrays. Nothing is compressed: a file cannot grow when it is read,
so that a small one never asks for much memory. Nothing is extracted to disk, nothing is pickled, no name in the file
is ever imported. Files are written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from odeco.atomic import replacing
from odeco.exceptions import ModelFileError

_HEADER = "odeco.json"
_FORMAT = "odeco archive"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KINDS = "biufcSUmM"  # plain values only: never "O", which would be pickled
_DATE = (1980, 1, 1, 0, 0, 0)  # the same contents give the same bytes
_DTYPE = re.compile(rf"[<|][{_KINDS}][0-9]{{1,6}}(\[[0-9]*[A-Za-z]+\])?")  # as numpy spells them
_CHUNK = 1 << 20
# What a file that is cut, flipped or forged makes of zipfile, json and numpy.
_DAMAGE = (zipfile.BadZipFile, EOFError, ValueError, KeyError, TypeError, OverflowError, struct.error)
_MORE_DAMAGE = (NotImplementedError, RuntimeError, RecursionError, OSError, IndexError, AttributeError, SyntaxError)
_SHOWN = 200  # characters of an error of the zip: it may quote the whole file


@dataclass(frozen=True)
class Limits:
    """How much a file may hold. Arrays need as much memory as they have bytes in it, the document some 20 times."""

    arrays: int = 1_000_000
    document_bytes: int = 1 << 30


def write(path: str | os.PathLike[str], kind: str, version: int, document: Any, arrays: Mapping[str, Any]) -> None:
    """Write a file of this kind and version in place of `path`; `document` is anything that JSON can hold."""
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        digests = {name: _add_array(archive, name, array) for name, array in plain.items()}
        header = {
            "format": _FORMAT,
            "kind": kind,
            "version": version,
            "arrays": {
                name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digests[name]}
                for name, array in plain.items()
            },
            "document": document,
        }
        text = json.dumps(header, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        archive.writestr(zipfile.ZipInfo(_HEADER, _DATE), text)


def read(
    path: str | os.PathLike[str], kind: str, newest: int, *, limits: Limits | None = None
) -> tuple[int, Any, dict[str, NDArray[Any]]]:
    """The version, the document and the arrays of a file of this kind, of version `newest` at most.

    Everything is checked before it is used: sizes before memory is asked for, checksums before values. What is not as
    `write` leaves it raises `ModelFileError`.
    """
    limits = limits or Limits()
    if Path(path).exists() and not Path(path).is_file():
        raise IsADirectoryError(21, "not a file", str(path))
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, size, limits)
                header = _header(archive, members, kind, newest)
                arrays = _arrays(archive, members, header["arrays"])
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)}: {error}") from None
        except zipfile.BadZipFile as error:
            if not _looks_like_zip(file):
                raise ModelFileError(f"{os.fspath(path)}: not an odeco file.") from error
            raise ModelFileError(f"{os.fspath(path)}: damaged or cut short ({str(error)[:_SHOWN]}).") from error
        except (*_DAMAGE, *_MORE_DAMAGE) as error:
            raise ModelFileError(f"{os.fspath(path)}: damaged ({type(error).__name__}: {error}).") from error
    return header["version"], header["document"], arrays


def _plain(name: str, array: Any) -> NDArray[Any]:
    """An array as it is stored: contiguous in its own order, little-endian, of plain values."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"array names may have letters, digits, '_', '-' and '.', got {name!r}.")
    plain = np.asarray(array)
    if plain.dtype.kind not in _KINDS:
        raise ValueError(f"array {name!r} has dtype {plain.dtype}: only numbers, booleans, text and dates can be kept.")
    return plain.astype(plain.dtype.newbyteorder("<"), copy=False)


def _add_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> str:
    """Write an array as ``.npy``; its SHA-256."""
    info = zipfile.ZipInfo(_member(name), _DATE)
    with archive.open(info, "w", force_zip64=array.nbytes > 1 << 30) as stream:
        hashing = _Hashing(stream)
        npy.write_array(hashing, array, version=(1, 0), allow_pickle=False)
    return hashing.digest.hexdigest()


class _Hashing:
    """A stream that takes the SHA-256 of what is written to it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.digest = stream, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._stream.write(data)


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _looks_like_zip(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


def _members(archive: zipfile.ZipFile, size: int, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """The members by name; none compressed, encrypted or twice there, together no larger than the file."""
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if _HEADER not in members:
        raise ModelFileError("not an odeco file (a zip of something else).")
    if len(members) != len(infos):
        raise ModelFileError("damaged: a member is there twice.")
    if len(infos) > limits.arrays + 1:
        raise ModelFileError(f"has {len(infos)} members, more than the {limits.arrays} arrays that are allowed.")
    for info in infos:
        if info.flag_bits & ~0x800:
            raise ModelFileError(f"member {info.filename!r} is encrypted or of a kind that odeco does not write.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"member {info.filename!r} is compressed: odeco writes its members as they are.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(f"damaged: its members claim more than the {size} bytes of the file.")
    if members[_HEADER].file_size > limits.document_bytes:
        raise ModelFileError(f"its document is larger than the {limits.document_bytes} bytes that are allowed.")
    return members


def _header(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], kind: str, newest: int) -> dict[str, Any]:
    """The contents of ``odeco.json``, once it is known to be of this kind and not too new."""
    header = json.loads(archive.read(members[_HEADER]).decode("utf-8"))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ModelFileError("not an odeco file.")
    if header.get("kind") != kind:
        raise ModelFileError(f"holds {header.get('kind')!r}, not {kind!r}.")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"damaged: its version is {version!r}.")
    if version > newest:
        raise ModelFileError(
            f"was written by a newer odeco (format {version}; this one reads up to {newest}). Upgrade odeco to read it."
        )
    if not isinstance(header.get("arrays"), dict) or "document" not in header:
        raise ModelFileError("damaged: parts of odeco.json are missing.")
    return header


def _arrays(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], declared: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """All arrays: those that odeco.json declares, no others."""
    for name in declared:
        if not _NAME.fullmatch(name):
            raise ModelFileError(f"has an array named {name!r}, which odeco would not write.")
    expected = {_HEADER, *map(_member, declared)}
    if unknown := sorted(set(members) - expected):
        raise ModelFileError(f"has a member {unknown[0]!r} that does not belong to it.")
    if missing := sorted(expected - set(members)):
        raise ModelFileError(f"damaged: its member {missing[0]!r} is missing.")
    return {name: _array(archive, members[_member(name)], name, entry) for name, entry in declared.items()}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    """One array, read into memory of its own once its header has said that it is what was declared."""
    dtype, shape = _declared(name, entry)
    with archive.open(info) as stream:
        digest = hashlib.sha256()
        order = _read_npy_header(stream, digest, name, dtype, shape)
        flat = np.empty(_size(name, shape, dtype, info), dtype=dtype)
        content = flat.view(np.uint8).data if flat.nbytes else memoryview(b"")
        start = 0
        while start < flat.nbytes:
            n_read = stream.readinto(content[start : start + _CHUNK])  # type: ignore[attr-defined]
            if not n_read:
                raise ModelFileError(f"cut short: array {name!r} ends after {start} of {flat.nbytes} bytes.")
            digest.update(content[start : start + n_read])
            start += n_read
        if stream.read(1):  # asking for more is also what makes zipfile compare the CRC
            raise ModelFileError(f"damaged: array {name!r} has more bytes than its shape {list(shape)} asks for.")
    if digest.hexdigest() != entry["sha256"]:
        raise ModelFileError(f"damaged: array {name!r} is not the one that was written (SHA-256 differs).")
    return flat.reshape(shape, order=order).astype(dtype.newbyteorder("="), copy=False)


def _declared(name: str, entry: Mapping[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Dtype and shape of an array by odeco.json."""
    if not _DTYPE.fullmatch(entry["dtype"]):
        raise ModelFileError(f"array {name!r} has dtype {entry['dtype']!r}, which odeco does not read.")
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > 32 or not all(type(n) is int and n >= 0 for n in shape):
        raise ModelFileError(f"damaged: array {name!r} has the shape {shape!r}.")
    return np.dtype(entry["dtype"]), tuple(shape)


def _size(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], info: zipfile.ZipInfo) -> int:
    """The number of entries; no more than the bytes in the file allow."""
    size = math.prod(shape)
    if size * max(dtype.itemsize, 1) > info.file_size:
        raise ModelFileError(
            f"damaged: array {name!r} of shape {list(shape)} does not fit into its {info.file_size} bytes."
        )
    return size


def _read_npy_header(
    stream: IO[bytes], digest: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Literal["C", "F"]:
    """Read the header of an ``.npy`` and compare it with what it must be; the order of the array in memory.

    It is compared as text, not parsed: what is not known cannot do harm.
    """
    start = stream.read(10)
    text = stream.read(int.from_bytes(start[8:10], "little"))
    digest.update(start + text)
    for fortran in (False, True):
        expected = f"{{'descr': {dtype.str!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
        if start[:8] == b"\x93NUMPY\x01\x00" and text.rstrip(b" \n") == expected.encode("ascii"):
            return "F" if fortran else "C"
    raise ModelFileError(f"damaged: array {name!r} is not {dtype.str} of shape {list(shape)}, as odeco.json says.")
