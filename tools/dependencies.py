"""What odeco needs, a requirement a line: `python tools/dependencies.py`, with the names of extras for theirs as well.

`make` installs these while the package itself is compiled: they wait for the network and the disk, the compiler for the
processor. An extra that names others (``odeco[plots]``) has theirs.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def dependencies(project: dict[str, object], extras: Sequence[str]) -> Iterator[str]:
    """The requirements of a project table of pyproject.toml, those of its extras after its own."""
    yield from project["dependencies"]
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            inner = re.fullmatch(rf"{project['name']}\[(.+)\]", requirement)
            found = dependencies(project, inner[1].split(",")) if inner else [requirement]
            yield from found


if __name__ == "__main__":
    print(*dict.fromkeys(dependencies(tomllib.loads(PROJECT.read_text())["project"], sys.argv[1:])), sep="\n")
