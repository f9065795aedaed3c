"""python -m fuzz [TARGET ...] [--seconds 120] [--seed N] [--case N] [--out fuzz/found]."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fuzz import targets
from fuzz.cases import Outcome
from fuzz.worker import Worker


@dataclass
class Tally:
    """What a campaign has seen of one target."""

    seconds: float = 0.0
    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)


class Campaign:
    """Cases of all targets in turn, each target for the same time, until the time is over."""

    def __init__(self, names: list[str], seed: int, found: Path, seconds_per_case: float) -> None:
        self.names, self.seed, self.found = names, seed, found
        self.tallies = {name: Tally() for name in names}
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._worker = Worker(self._folder / "case", seconds_per_case)

    def run(self, seconds: float) -> None:
        """Go on for so long; a case that has begun ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = min(self.names, key=lambda name: self.tallies[name].seconds)
            self.one(name, self.tallies[name].cases)

    def one(self, name: str, number: int) -> Outcome:
        """Run one case, and keep it where it failed for the first time."""
        began, tally = time.monotonic(), self.tallies[name]
        outcome = self._worker.run(name, self.seed, number)
        tally.seconds += time.monotonic() - began
        tally.cases += 1
        tally.kinds[outcome.kind] += 1
        if outcome.kind == "failed":
            tally.found[outcome.title] += 1
            if tally.found[outcome.title] == 1:
                self._keep(name, number, outcome)
        return outcome

    def close(self) -> None:
        """End the worker, and remove what it left."""
        self._worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, name: str, number: int, outcome: Outcome) -> None:
        """Copy a case that failed, run it once more by itself, and tell."""
        kept = self.found / f"{name}-{self.seed}-{number}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self._worker.folder, kept)
        self._worker.close()
        again = self._worker.replay()
        note = "" if again.kind == "failed" else "(alone it does not fail: what came before it in the worker matters)\n"
        (kept / "outcome.txt").write_text(f"{outcome.title}\n{note}\n{outcome.details}")
        print(f"FOUND {name}: {outcome.title} {note.strip()}")
        print(f"      {kept} (again: python -m fuzz {name} --seed {self.seed} --case {number})", flush=True)

    def summary(self) -> str:
        """A line for each target."""
        lines = [f"{'target':16}{'cases':>8}{'valid':>8}{'refused':>9}{'failed':>8}{'different':>11}"]
        for name, tally in self.tallies.items():
            counts = "".join(
                f"{tally.kinds[kind]:{width}}" for kind, width in (("valid", 8), ("refused", 9), ("failed", 8))
            )
            lines.append(f"{name:16}{tally.cases:8}{counts}{len(tally.found):11}")
        return "\n".join(lines)

    @property
    def clean(self) -> bool:
        """Whether nothing failed."""
        return not any(tally.found for tally in self.tallies.values())


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Hostile input for every door of the library.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of {', '.join(targets.NAMES)}; all of them")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (120)")
    parser.add_argument("--seed", type=int, help="of all cases; the same seed gives the same cases")
    parser.add_argument("--case", type=int, help="one case alone, by its number, of one target")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a case may take (60)")
    parser.add_argument("--out", type=Path, default=Path("fuzz/found"), help="where cases that fail are kept")
    given = parser.parse_args(arguments)
    unknown = set(given.targets) - set(targets.NAMES)
    if unknown or (given.case is not None and len(given.targets) != 1):
        parser.error(f"targets are {', '.join(targets.NAMES)}; --case needs one of them")
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    campaign = Campaign(given.targets or targets.NAMES, seed, given.out, given.limit)
    try:
        if given.case is not None:
            outcome = campaign.one(given.targets[0], given.case)
            print(f"{outcome.kind} {outcome.title}\n{outcome.details}")
            return 0 if campaign.clean else 1
        with suppress(KeyboardInterrupt):  # enough is enough
            campaign.run(given.seconds)
        print(campaign.summary())
    finally:
        campaign.close()
    return 0 if campaign.clean else 1


if __name__ == "__main__":
    sys.exit(main())
