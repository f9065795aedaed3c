"""What a command says while it works: stages on stderr, warnings and errors in one line each, and how it ends."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any, NoReturn, TypeVar

from odeco.cli.printing import printable
from odeco.progress import listening

INTERRUPTED = 130  # what shells give a command that Ctrl-C ended
# Warnings of libraries to their own callers: nothing that a person at a terminal could change.
_FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)

_TYPED = {
    **{"n_components": "-k", "n_classes": "-k", "min_df": "--min-df", "max_df": "--max-df", "layout": "--layout"},
    "replace_vocabulary": "--replace-vocabulary",
}
_PYTHON_NAMES = re.compile(r"(?<![\w-])(n_components|n_classes|min_df|max_df|replace_vocabulary|layout(?==))\b(=)?")
_SYSTEM_ERRORS = {
    errno.ENOSPC: "no space left on the device",
    errno.EBADF: "stdout is closed, and there is something to write to it",
}
_STOPPED = "interrupted; no half-written file is left"

Item = TypeVar("Item")
Command = TypeVar("Command", bound=Callable[..., None])
Step = Callable[[str, "int | None", "int | None"], None]


def say(text: str) -> None:
    """One line on stderr."""
    print(f"odeco: {printable(' '.join(text.split()))}", file=sys.stderr)  # noqa: T201


def fail(message: str, code: int = 1) -> NoReturn:
    """Say in one line on stderr what went wrong, and exit."""
    say(f"error: {message}")
    sys.exit(code)


@contextmanager
def readable_errors(debug: bool = False) -> Iterator[None]:
    """Turn exceptions and warnings of the library into one line each on stderr."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {_as_typed(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _FOR_PROGRAMMERS:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        try:
            yield
        except KeyboardInterrupt:
            fail(_STOPPED, INTERRUPTED)
        except (BrokenPipeError, SystemExit) as end:
            # `odeco show model.odeco | head` is no fault of anyone; where typer meets it first, it exits with 1.
            if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
                raise
            sys.exit(0)
        except Exception as error:
            if debug:
                raise
            fail(_words(error))


@contextmanager
def standard_streams() -> Iterator[None]:
    """Streams that can be written to or say why not, and nothing left in them when Python shuts down.

    Where the caller has closed a stream (``>&-``), Python has none. A closed stdin is empty and a closed stderr is not
    heard; for stdout stands a null device opened for reading, where the first write is an error. What a full disk did
    not take is given up at the end: Python would try again while it shuts down, and change the exit code to 120.
    """
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (open as long as Python runs)
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def interruptible(command: Command) -> Command:
    """A command that Ctrl-C ends with one line: typer would add an empty one."""

    @wraps(command)
    def run(*args: Any, **values: Any) -> None:
        try:
            command(*args, **values)
        except KeyboardInterrupt:
            fail(_STOPPED, INTERRUPTED)

    return run  # type: ignore[return-value]


def _words(error: Exception) -> str:
    """What went wrong, for a person who does not read Python."""
    message = _as_typed(" ".join(str(error).split()))
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns, a smaller vocabulary, or a machine with more."
    if isinstance(error, OSError) and error.strerror:
        words = _SYSTEM_ERRORS.get(error.errno or 0, error.strerror.lower())
        return f"{error.filename}: {words}" if error.filename else words
    if not isinstance(error, (ValueError, OSError, ImportError)):
        return f"unexpected {type(error).__name__}: {message} (run again with --debug and report it)"
    return message or type(error).__name__


def _as_typed(message: str) -> str:
    """A message of the library in the words of the command line: what Python calls n_components is -k here."""
    return _PYTHON_NAMES.sub(lambda found: _TYPED[found[1]] + (" " if found[2] else ""), message)


class Stages:
    """Stages of a command: a bar on a terminal while one lasts, and a line when it has ended."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.terminal = sys.stderr.isatty() and not quiet

    @contextmanager
    def stage(self, doing: str) -> Iterator[Stage]:
        """Show that something is being done; the stage's `done` is what is said of it in the end."""
        stage, start = Stage(), perf_counter()
        if self.terminal:
            with _bar(printable(doing)) as (stage.update, stage.step_shown), listening(stage.hear):
                yield stage
        else:
            yield stage
        stage.seconds = perf_counter() - start
        if stage.done and not self.quiet:
            say(f"{'; '.join([stage.done, *stage.notes])} ({stage.seconds:.1f} s)")

    def doubts(self, diagnostics: Any) -> None:
        """Say what the numbers of a fit give reason to doubt; what was raised as a warning has been said."""
        for reason in () if self.quiet else diagnostics.verdict.reasons:
            if reason.text not in diagnostics.warned:
                say(f"{reason.trust.value.split(':')[0].lower()}: {_as_typed(reason.text)}")


class Stage:
    """One stage: counts what passes through it, and keeps what else is to be said when it has ended."""

    def __init__(self) -> None:
        self.done = ""
        self.notes: list[str] = []
        self.seconds = 0.0
        self.rows = 0
        self.update: Callable[[int, int, int], None] | None = None
        self.step_shown: Step | None = None

    def step(self, what: str, done: int | None = None, total: int | None = None) -> None:
        """Say what is being done, or that so many of some things are, where somebody looks."""
        if self.step_shown is not None:
            self.step_shown(what, done, total)

    def hear(self, text: str, step: bool) -> None:
        """Show what a fit says of itself."""
        self.step(printable(text))

    def watch(self, read: Callable[[], Iterable[Item]]) -> Callable[[], Iterator[Item]]:
        """Readings of batches, counted: the bar knows its end from the second reading on."""
        n_readings = 0

        def watched() -> Iterator[Item]:
            nonlocal n_readings
            n_readings, seen = n_readings + 1, 0
            for batch in read():
                seen += n_rows(batch)
                self.rows = max(self.rows, seen)
                if self.update is not None:
                    self.update(n_readings, seen, self.rows)
                yield batch

        return watched


def n_rows(batch: Any) -> int:
    """Rows of a batch of any kind: an array, a frame, texts, views of the same rows, named columns."""
    if isinstance(batch, (list, tuple)) and not isinstance(batch[0], str):  # views of the same rows
        batch = batch[0]
    if isinstance(batch, dict):  # columns
        batch = next(iter(batch.values()))
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape is not None else len(batch)


@contextmanager
def _bar(doing: str) -> Iterator[tuple[Callable[[int, int, int], None], Step]]:
    """A bar on the terminal; gives what moves it: by rows, called with (reading, rows read in it, rows known), or by
    steps, called with (words, steps done, steps in all).
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None)

        def update(reading: int, seen: int, known: int) -> None:
            what = f"{doing}: {seen:,} rows" if reading == 1 else f"{doing}: reading {reading}, {seen:,} rows"
            progress.update(task, description=what, completed=seen, total=None if reading == 1 else known)

        def step(what: str, done: int | None, total: int | None) -> None:
            progress.update(task, description=f"{doing}: {what}", completed=done, total=total)

        yield update, step
