"""Writing a file so that it is there as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from odeco.files.opening import PathLike


@contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` when the block ends well, and is forgotten when it does not.

    It is a temporary file in the same folder: a full disk, an error or Ctrl-C leave an older file as it was. "-" is the
    standard output, which gets the content at the end.
    """
    if str(path) == "-":
        with tempfile.TemporaryFile() as spool:
            yield spool
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    target = Path(os.fspath(path)).expanduser()
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder, a file is expected.")
    if target.exists() and not target.is_file():  # /dev/null, a pipe: nothing to replace
        with target.open("wb") as stream:
            yield stream
        return
    target = target.resolve()  # a link goes on pointing to what is written
    try:
        number, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise type(error)(f"{path}: cannot be written here ({error.strerror}).") from error
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.strerror:
            raise type(error)(f"{path}: cannot be written ({error.strerror}); nothing was changed.") from error
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one: temporary files are private."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
