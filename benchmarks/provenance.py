"""Where figures come from: the commit, the machine and every run of a section, and whether its code changed since.

A result file holds sections, each with a digest over all that it says: a number that is edited by hand is noticed when
the file is read. It stops accidents, not liars.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import odeco
from benchmarks import harness

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "benchmarks" / "results"

_TENSORS = ("decomposition", "tensors")
_STEPS = ("refinement/loop.py", "families", "kernels/threads.py", "kernels/columns.py")
_WORDS = (
    *_TENSORS, *_STEPS, "models/topics", "moments/words.py", "moments/triples.py", "moments/cubes.py",
    "moments/dirichlet.py", "moments/scatter.py", "whitening", "reduction/plain.py", "kernels/sparse.py",
    "kernels/products.py", "kernels/alignment.py", "sources/documents.py",
)  # fmt: skip
_VIEWS = (
    *_TENSORS, *_STEPS, "models/mixture_base.py", "moments/views.py", "moments/cubes.py", "reduction/views.py",
    "reduction/symmetrized.py",
    "reduction/least_squares.py", "reduction/groups.py", "sources/views.py",
)  # fmt: skip
_CHAINS = (
    *_STEPS, "models/hmm/base.py", "models/hmm/remote.py", "models/hmm/policy.py", "models/hmm/st*.py",
    "models/hmm/feature_chain.py", "refinement/hmm.py",
    "refinement/acceleration.py", "refinement/forward_backward.py", "refinement/expectation_sums.py",
    "refinement/emissions.py", "kernels/hmm.py", "sources/sequences.py",
)  # fmt: skip
_FEATURES = (*_CHAINS, "models/hmm/feature_estimator.py", "moments/sequence_features.py", "moments/columns.py")
# What of src/odeco runs in a measurement, as patterns: found by a profile of one fit, without what only reports on it.
CODE: dict[str, tuple[str, ...]] = {
    "tensor": _TENSORS,
    "topics": (*_WORDS, "models/lda", "refinement/lda.py", "refinement/documents.py", "kernels/topics.py"),
    "one topic each": (*_WORDS, "models/single_topic", "refinement/multinomial_mixture.py"),
    "spheres": (
        *_TENSORS, *_STEPS, "models/gaussian_mixture", "models/mixture_base.py",
        "moments/vectors.py", "moments/cubes.py", "reduction/affine.py", "refinement/gaussian_mixture.py",
        "sources/dense.py",
    ),
    "latent classes": (
        *_TENSORS, *_STEPS, "models/product_mixture", "models/mixture_base.py",
        "moments/products.py", "moments/cubes.py", "refinement/product_mixture.py",
        "whitening/completed.py", "kernels/products.py", "sources/tables.py",
    ),
    "views": (*_VIEWS, "models/multiview", "refinement/views.py"),
    "crowd": (
        *_VIEWS, "models/dawid_skene", "moments/crowd.py", "refinement/dawid_skene.py",
        "sources/crowd.py", "sources/votes.py",
    ),
    "symbols": (
        *_TENSORS, *_CHAINS, "models/hmm/categorical.py", "models/hmm/symbol_*.py", "moments/sequences.py",
        "refinement/categorical_emission.py",
    ),
    "measurements": (*_FEATURES, "models/hmm/gaussian.py", "refinement/emissions_gaussian.py", "kernels/gaussian.py"),
    "counts": (*_FEATURES, "models/hmm/poisson.py", "refinement/emissions_poisson.py"),
    "signals": (
        *_TENSORS, "models/ica", "moments/cumulants.py", "refinement/ica*.py",
        "refinement/scores.py", "kernels/scores.py", "whitening/whitener.py",
    ),
    "words": ("text",),
    "formats": ("files",),
    "partitions": ("sources", *_WORDS),
}  # fmt: skip


def code(*names: str) -> tuple[str, ...]:
    """The patterns of several measurements, each once."""
    return tuple(dict.fromkeys(pattern for name in names for pattern in CODE[name]))


@dataclass(frozen=True)
class Environment:
    """Versions and machine, no host name and no path; None is what was not noted."""

    python: str
    processor: str
    packages: dict[str, str]
    cores: int | None = None
    memory: int | None = None  # bytes
    system: str | None = None
    blas: str | None = None

    def __str__(self) -> str:
        known = self.cores and self.memory
        machine = f"{self.cores} cores, {self.memory / 2**30:.0f} GiB, {self.system}, {self.blas}" if known else ""
        versions = ", ".join(f"{name} {number}" for name, number in sorted(self.packages.items()))
        said = ", ".join(filter(None, [self.processor, machine, f"Python {self.python}", versions]))
        return f"{said}." if known else f"{said}; cores, memory, system and BLAS were not noted."


def environment(packages: Iterable[str]) -> Environment:
    """Where this process runs, with the versions of odeco and of `packages`."""
    return Environment(
        python=platform.python_version(),
        processor=_processor(),
        packages={"odeco": odeco.__version__} | {name: version(name) for name in packages},
        cores=harness.cores(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=_system(),
        blas=_blas(),
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _system() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    return platform.system()


def _blas() -> str:
    """Names and versions of the BLAS libraries that are loaded: numpy's and scipy's may differ."""
    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = {f"{library['internal_api']} {library['version']}" for library in loaded}
    return " and ".join(sorted(names)) or "no known BLAS"


def git(*arguments: str) -> str | None:
    """What a git command prints, None where there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@cache
def changed_since(commit: str, patterns: tuple[str, ...]) -> tuple[str, ...] | None:
    """The files of src/odeco that differ now from those of a commit; None where git cannot say."""
    names = git("diff", "--name-only", commit, "--", *(f"src/odeco/{pattern}" for pattern in patterns))
    return None if names is None else tuple(names.splitlines())


def code_digests(patterns: Iterable[str]) -> dict[str, str]:
    """The files of src/odeco that patterns name, each with a digest of what it says: a history may be lost."""
    root = REPOSITORY / "src" / "odeco"
    named = {path for pattern in patterns for path in root.glob(pattern)}
    files = {file for path in named for file in (path.rglob("*") if path.is_dir() else [path]) if _is_source(file)}
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in sorted(files)}


def _is_source(file: Path) -> bool:
    return file.is_file() and file.suffix not in (".pyc", ".so")


@dataclass(frozen=True)
class Section:
    """What was measured together, and all that it takes to judge it.

    `runs` has the numbers of every repetition, `files` digests of the code that was measured. Older sections know only
    the commit, for which git is asked; those from before commits were noted the one that they were `stored` with, made
    after they were measured; where repetitions were not kept, there is a `summary` instead of runs.
    """

    environment: Environment
    code: tuple[str, ...]
    runs: Any = None
    summary: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    date: str | None = None
    stored: str | None = None
    quick: bool = False
    files: dict[str, str] | None = None

    def changes(self) -> tuple[str, ...] | None:
        """The files it measures that have changed since; None where only git could say, and cannot."""
        if self.files is not None:
            now = code_digests(self.code)
            changed = [name for name in self.files | now if self.files.get(name) != now.get(name)]
            return tuple(f"src/odeco/{name}" for name in sorted(changed))
        commit = self.commit or self.stored
        return changed_since(commit, self.code) if commit else None

    def told(self) -> str:
        """When it was measured, what is missing, and whether it is older than its code, in a line for a page."""
        kept = "" if self.summary is None else "Raw runs were not kept."
        return " ".join(filter(None, [self._when(), kept, self._age()]))

    def _when(self) -> str:
        if self.commit:
            changed = " with uncommitted changes" if self.dirty else ""
            return f"Measured on commit {self.commit[:7]}{changed} ({self.date})."
        if self.stored:
            return f"Measured before commit {self.stored[:7]} ({self.date})."
        return f"Measured on {self.date}, on no commit that git could name."

    def _age(self) -> str:
        changes = self.changes()
        if changes is None:
            return "Git cannot say whether the code it measures has changed since."
        if changes:
            return "The code it measures has changed since."
        return "" if self.commit else "It may be older than the code it measures."


def measure(
    measurements: Mapping[str, Callable[[], Any]],
    only: Iterable[str] | None,
    packages: Iterable[str],
    code: Callable[[str], tuple[str, ...]],
    *,
    settings: dict[str, Any] | None = None,
    quick: bool = False,
) -> dict[str, Section]:
    """Every section, or `only` some, with what is known of commit and machine; `code` gives the patterns of each."""
    commit, date = git("rev-parse", "HEAD"), datetime.now(UTC).date().isoformat()
    # Result files and pages change while benchmarks run; what is measured should not.
    dirty = None if commit is None else bool(git("status", "--porcelain", "--", "src", "benchmarks/*.py"))
    known: dict[str, Any] = {"settings": settings or {}, "commit": commit, "dirty": dirty, "date": date, "quick": quick}
    machine = environment(packages)
    return {
        name: Section(machine, code(name), measurements[name](), files=code_digests(code(name)), **known)
        for name in choose(measurements, only)
    }


def choose(sections: Iterable[str], only: Iterable[str] | None) -> list[str]:
    """The sections to measure, in their own order: all, or `only` some."""
    known = list(sections)
    unknown = sorted(set(only or []) - set(known))
    if unknown:
        raise ValueError(f"no section {', '.join(unknown)}; there are {', '.join(known)}.")
    return [name for name in known if only is None or name in only]


# Files


def plain(sections: Mapping[str, Section]) -> dict[str, Any]:
    """Sections as JSON takes them, each with the digest of all that it says."""
    # To JSON and back, so that tuples are lists and a digest is the same before and after.
    fields = {name: json.loads(json.dumps(asdict(section))) for name, section in sections.items()}
    return {name: values | {"digest": digest(values)} for name, values in fields.items()}


def digest(values: Mapping[str, Any]) -> str:
    """Of runs, environment and everything else that a section says."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read(values: Mapping[str, Any]) -> dict[str, Section]:
    """The sections of `plain`, each checked against its digest."""
    sections = {}
    for name, entry in values.items():
        fields = {key: value for key, value in entry.items() if key != "digest"}
        if digest(fields) != entry.get("digest"):
            raise ValueError(f"section {name!r} is not what was measured: its digest is not that of its numbers.")
        machine = Environment(**fields.pop("environment"))
        sections[name] = Section(machine, tuple(fields.pop("code")), **fields)
    return sections


def save(name: str, sections: Mapping[str, Section]) -> Path:
    """Write a result file; tables are made from it and from nothing else."""
    if hasty := [section for section, found in sections.items() if found.quick]:
        raise ValueError(f"{name}: quick measurements are not stored, but {', '.join(hasty)} is one.")
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(plain(sections), indent=1, sort_keys=True) + "\n")
    return path


def stored(name: str) -> dict[str, Section]:
    """The sections of a result file, none where there is no file."""
    path = RESULTS / f"{name}.json"
    try:
        return read(json.loads(path.read_text())) if path.exists() else {}
    except ValueError as error:
        cure = f"Take the file from git, or measure again: python -m benchmarks {name}."
        raise ValueError(f"{path.name}: {error} {cure}") from error


# What tables are made of


class Result(dict[str, Any]):
    """By section the rows that tables are made of: what the benchmark's summary makes of its runs."""

    def __init__(self, sections: Mapping[str, Section], summaries: Mapping[str, Callable[[Any], Any]]) -> None:
        self.sections = dict(sections)
        super().__init__({name: _rows(section, summaries.get(name)) for name, section in sections.items()})

    def told(self, *names: str) -> str:
        """What `Section.told` says, once for all sections of which it says the same."""
        return _grouped({name: self.sections[name].told() for name in names or self if name in self})

    def machines(self) -> str:
        """Environments, once for all sections that share one."""
        return _grouped({name: str(section.environment) for name, section in self.sections.items()})

    def settings(self, name: str) -> dict[str, Any]:
        """The sizes of a section."""
        return self.sections[name].settings


def _rows(section: Section, summary: Callable[[Any], Any] | None) -> Any:
    if section.summary is not None:
        return section.summary
    return summary(section.runs) if summary else section.runs


def _grouped(texts: Mapping[str, str]) -> str:
    """The one text of all names, or every text after the names that share it."""
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    groups = {text: [name for name in texts if texts[name] == text] for text in texts.values()}
    return "\n".join(f"- {', '.join(names)}: {text}" for text, names in groups.items())


def tables(name: str, sections: Mapping[str, Section]) -> Result:
    """What the tables of a benchmark are made of."""
    return Result(sections, getattr(import_module(f"benchmarks.{name}"), "SUMMARIES", {}))


def load(name: str) -> Result:
    """A result file as tables need it."""
    return tables(name, stored(name))


def each(
    *keys: str, how: Callable[[Any], Any] = np.median
) -> Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]:
    """A summary: rows in which the repetitions under these keys are one figure."""

    def summarised(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {key: float(how(row[key])) if row[key] else None for key in keys} for row in rows]

    return summarised


def ages(name: str) -> str:
    """Every section of a benchmark: what `told` says, the files that changed, and how to measure it again."""
    lines = []
    for section, found in stored(name).items():
        files = [file.removeprefix("src/odeco/") for file in found.changes() or ()]
        some = f" [{len(files)}: {', '.join(files[:4])}{', ...' if len(files) > 4 else ''}]" if files else ""
        lines.append(f'python -m benchmarks {name} --only "{section}": {found.told()}{some}')
    return "\n".join(lines)
