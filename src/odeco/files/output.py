"""Where writers write: a file that is there as a whole or not at all, the standard output, a device."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from odeco.atomic import replacing
from odeco.files.opening import PathLike


@contextmanager
def writing(path: PathLike) -> Iterator[IO[bytes]]:
    """A stream to write to and to seek in.

    A file is replaced when the block ends well: a full disk, an error or Ctrl-C leave an older one as it was. "-", the
    standard output, gets everything at the end, or nothing. Pipes and devices cannot be replaced and are written to.
    """
    if str(path) != "-" and (not Path(path).exists() or Path(path).is_file() or Path(path).is_dir()):
        with replacing(Path(path).expanduser()) as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as spool:
        yield spool
        spool.seek(0)
        if str(path) != "-":
            with Path(path).open("wb") as stream:
                shutil.copyfileobj(spool, stream)
            return
        shutil.copyfileobj(spool, sys.stdout.buffer)
        sys.stdout.buffer.flush()
