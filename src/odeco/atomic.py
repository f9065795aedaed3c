"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_MODE = 0o666  # less what the umask takes, as for any new file


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file, open for writing and seeking, that takes the place of `path` when the block ends well.

    Until then, and if the block raises or the process is killed, what was at `path` stays as it was. Where the system
    knows files without a name (Linux: ``O_TMPFILE``) not even a killed process leaves anything behind. A link is
    followed: the file that it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise IsADirectoryError(21, "not a file that could be replaced", str(path))
    name = target.parent / f".odeco-{secrets.token_hex(8)}.tmp"
    try:
        handle, named = _open(name)
        with os.fdopen(handle, "w+b") as file:
            if target.exists() and hasattr(os, "fchmod"):
                os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(handle)
            if not named:  # src_dir_fd: only then does the system look through /proc at the file itself
                os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle)
        os.replace(name, target)
        _keep(target.parent)
    except OSError as error:
        if error.errno is None or (error.filename is not None and error.filename != str(name)):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error  # of the caller's file, not of ours
    finally:
        name.unlink(missing_ok=True)


def _open(name: Path) -> tuple[int, bool]:
    """A new file in the folder of `name`, without a name where that can be had; whether it has the name."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(name.parent, os.O_RDWR | os.O_TMPFILE, _MODE), False
        except OSError:  # not every file system can; if it is for another reason, the next line says so
            pass
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _MODE), True


def _keep(folder: Path) -> None:
    """Make the new name last through a loss of power, where folders can be synchronized."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
