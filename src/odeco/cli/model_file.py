"""A model file, opened: the estimator, what it is called here, and the names that its fit knew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odeco.cli.console import Stage
from odeco.cli.data import Data
from odeco.cli.inputs import READERS, read
from odeco.cli.options import expanded
from odeco.fitting.card import Card
from odeco.models.cards import known_card

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


@dataclass(frozen=True, eq=False)
class Saved:
    """A fitted model and its metadata; those of a model that was saved from Python may be empty."""

    estimator: Any
    card: Card
    metadata: Mapping[str, Any]

    @property
    def names(self) -> Mapping[str, Any]:
        """Arguments of the report: "vocabulary" and "feature_names", where they are known."""
        known = ("vocabulary", "feature_names")
        names = {name: self.metadata[name] for name in known if self.metadata.get(name) is not None}
        if self.metadata.get("symbols") is not None:
            names["feature_names"] = self.metadata["symbols"]
        return names

    def intervals(self, path: Path) -> Intervals:
        """Intervals of this model from a file; ValueError where they are those of another."""
        from odeco.uncertainty.stored import read_intervals

        found = read_intervals(expanded(path))
        found.check_model(self.estimator, str(path))
        return found

    def read(self, paths: Sequence[str], stage: Stage, **changes: Any) -> Data:
        """Read data for this model as those of its fit were read, but for the changes that are not None."""
        settings = {each.name for each in READERS[self.card.rows].settings}
        changes = {name: value for name, value in changes.items() if value is not None}
        for name in changes:
            if name not in settings:
                raise ValueError(f"--{name} says nothing to a model of kind {self.card.name}: leave it out.")
        options = {**self.metadata.get("input", {}).get("options", {}), **changes}
        return read(self.card.rows, paths, options, stage, self.metadata)


def open_model(path: Path) -> Saved:
    """Load a model file."""
    from odeco.persistence import load_with_metadata

    saved = load_with_metadata(expanded(path))
    return Saved(saved.model, known_card(saved.model), saved.metadata or {})
