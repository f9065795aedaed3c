"""`make mutants`: make one formula wrong at a time, and see whether the tests notice.

Each mutation of `mutations.py` is made in a temporary copy of `src`, never in the work tree, and the tests that are
named beside it run against that copy. First they all run against a copy without any fault: a test that fails anyway
would prove nothing. A list that has rotted is an error too: text that is no longer there, tests that no longer exist.

    python -m tests.mutants             all of them
    python -m tests.mutants whitening   those whose file, text or tests contain a word
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from odeco.kernels import _native
from tests.mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
KILLED, SURVIVED = "killed", "SURVIVED"
# What pytest's exit codes say of a mutation; any other one is a list that no longer fits the tests.
VERDICTS = {0: SURVIVED, 1: KILLED}
# An editable installation stands before all paths: in the child it must not.
_FROM_PATH = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]"


def copy_of_sources(folder: Path) -> Path:
    """The package in a folder, with its compiled loops wherever they are."""
    shutil.copytree(ROOT / "src", folder)
    compiled = Path(str(_native.__file__))
    shutil.copy2(compiled, folder / "odeco" / "kernels" / compiled.name)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Do the tests notice wrong formulas?")
    parser.add_argument("words", nargs="*", help="only mutations whose file, text or tests contain one of these")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2), help="mutations at a time")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for the tests of one mutation")
    given = parser.parse_args()
    chosen = [m for m in MUTATIONS if not given.words or any(word in " ".join(m) for word in given.words)]
    if not chosen:
        parser.error(f"no mutation contains {' or '.join(given.words)}.")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="odeco-mutants-") as folder:
        verdicts = _judge_all(chosen, Path(folder), max(given.jobs, 1), given.timeout)
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    print(f"{', '.join(f'{n} {verdict}' for verdict, n in counts.items())} in {time.monotonic() - start:.0f} s")
    return int(set(verdicts) != {KILLED})


def _judge_all(chosen: list[Mutation], folder: Path, jobs: int, timeout: float) -> list[str]:
    """A verdict on each, printed as it comes; each thread has a copy of its own."""
    copies: SimpleQueue[Path] = SimpleQueue()
    first = folder / "0"
    copy_of_sources(first)
    _check_without_faults(chosen, first, timeout)
    copies.put(first)
    for job in range(1, jobs):
        copies.put(shutil.copytree(first, folder / str(job)))

    def take_turn(mutation: Mutation) -> str:
        copy = copies.get()
        try:
            verdict = judge(mutation, copy, timeout)
        finally:
            copies.put(copy)
        print(f"{verdict:<9} {mutation.file}: {_short(mutation.old)}  ->  {_short(mutation.new)}", flush=True)
        return verdict

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(take_turn, chosen))


def _check_without_faults(chosen: list[Mutation], copy: Path, timeout: float) -> None:
    """All tests that are named pass where no formula is wrong, and it is the copy that they see."""
    tests = sorted({test for mutation in chosen for test in mutation.tests.split()})
    seen = _run(f"{_FROM_PATH}; import odeco; print(odeco.__file__)", [], copy, timeout).stdout.strip()
    if not Path(seen).is_relative_to(copy):
        sys.exit(f"the tests would see {seen}, not the copy in {copy}.")
    found = _pytest(tests, copy, timeout * len(chosen), write_bytecode=True)
    if found.returncode:
        sys.exit(f"{found.stdout}\nthe tests fail without any mutation: mend them, or the list, first.")


def judge(mutation: Mutation, copy: Path, timeout: float) -> str:
    """What the tests say of a mutation, made in the copy and taken back."""
    path = copy / "odeco" / mutation.file
    text = path.read_text() if path.exists() else ""
    if text.count(mutation.old) != 1:
        return f"NOT ONCE IN THE FILE ({text.count(mutation.old)} times)"
    times = path.stat()
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        found = _pytest(mutation.tests.split(), copy, timeout)
    except subprocess.TimeoutExpired:
        return f"NO END IN {timeout:.0f} s"
    finally:
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return VERDICTS.get(found.returncode, f"TESTS CANNOT RUN (pytest: {found.returncode})")


def _pytest(
    tests: list[str], copy: Path, timeout: float, *, write_bytecode: bool = False
) -> subprocess.CompletedProcess[str]:
    names = ["-x", "-q", "-p", "no:cacheprovider", *(f"tests/{test}" for test in tests)]
    environment = {} if write_bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}
    return _run(f"{_FROM_PATH}; import pytest; sys.exit(pytest.console_main())", names, copy, timeout, environment)


def _run(
    program: str, arguments: list[str], copy: Path, timeout: float, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    whole = {**os.environ, "PYTHONPATH": str(copy), "ODECO_NUM_THREADS": "1", **(environment or {})}
    return subprocess.run(command, cwd=ROOT, env=whole, timeout=timeout, capture_output=True, text=True, check=False)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:57]}..."


if __name__ == "__main__":
    sys.exit(main())
