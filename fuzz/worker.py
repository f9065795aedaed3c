"""A process that runs cases, and its keeper, who notices when it dies, hangs or takes too much memory."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz.cases import Outcome

_SHOW_STACK = signal.SIGUSR1
_MEMORY = 2 << 30  # bytes that a case may ask for beyond what a worker has


class Worker:
    """Runs one case after the other in a process of its own, which is replaced when it is lost."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self._seconds = folder, seconds
        self._process: Any = None
        self._pipe: Any = None

    def run(self, name: str, seed: int, number: int) -> Outcome:
        """Make a case in the worker's folder, and run it."""
        return self._ask((name, seed, number))

    def replay(self) -> Outcome:
        """Run the case that is in the folder."""
        return self._ask(None)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _ask(self, request: Any) -> Outcome:
        if self._process is None:
            self._start()
        self._pipe.send(request)
        if not self._pipe.poll(self._seconds):
            os.kill(self._process.pid, _SHOW_STACK)
            time.sleep(1)
            self.close()
            return Outcome("failed", "hang", f"no answer in {self._seconds:g} seconds\n{self._stack()}")
        try:
            outcome: Outcome = self._pipe.recv()
        except EOFError:
            return self._lost()
        return outcome

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")  # nothing of a former case, and no thread, is inherited
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, str(self.folder)), daemon=True)
        self._process.start()
        other.close()
        self._pipe.recv()  # imports are done: they are no part of the time of a case

    def _lost(self) -> Outcome:
        self._process.join()
        code = self._process.exitcode
        self.close()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome("failed", f"the interpreter died: {name}", self._stack())

    def _stack(self) -> str:
        stack = self.folder.parent / "stack.txt"
        return stack.read_text() if stack.exists() else ""


def _serve(pipe: Any, place: str) -> None:
    from fuzz import cases

    folder = Path(place)
    tempfile.tempdir = str(folder.parent)  # what a worker that is killed leaves goes with the campaign
    with (folder.parent / "stack.txt").open("w") as stack:
        faulthandler.enable(stack)
        faulthandler.register(_SHOW_STACK, stack)
        pipe.send(None)
        while True:
            try:
                request = pipe.recv()
            except EOFError:
                return
            if request is not None:
                cases.make(*request, folder)
            _limit_memory()
            pipe.send(cases.run(folder))


def _limit_memory() -> None:
    """Let the next large request fail; where the system cannot say what there is, there is no limit.

    Before each case: threads and compiled loops of former ones have left their marks.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + _MEMORY, most))
