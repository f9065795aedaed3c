"""Evidence for one number of components after the other, from fits to all rows and to two halves of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from odeco.exceptions import MomentError
from odeco.fitting.choice.judging import Scores, replication, standard_error
from odeco.fitting.choice.path import Path
from odeco.fitting.choice.record import Evidence
from odeco.fitting.choice.rule import decide
from odeco.moments.base import Additive
from odeco.moments.passes import fill


class Count(Additive):
    """How many samples there are."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "weight")

    def __init__(self) -> None:
        self.n, self.weight = 0, 0.0

    def update(self, batch: Any) -> Self:
        """Add those of a batch."""
        self.n += len(batch)
        weights = getattr(batch, "weights", None)
        per_sample = weights is not None and len(weights) == len(batch)
        self.weight += float(weights.sum()) if weights is not None and per_sample else len(batch)
        return self


@dataclass
class Gathering:
    """What has been found so far.

    Attributes
    ----------
    whole : Path
        Over all rows.
    halves : pair of Path, or None
        Over two halves, where these are wanted and can be made.
    full : bool
        Whether all rows are fitted too: not where nothing but the halves is asked.
    criterion : str
        What decides.
    n_half : int
        Samples of a half.
    """

    whole: Path
    halves: tuple[Path, Path] | None
    full: bool
    criterion: str
    n_half: int
    watch: Callable[[Evidence], None] | None = None

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.rows: dict[int, Evidence] = {}
        self.models: dict[int, Any] = {}
        self._largest: Any = None
        self._quick: set[int] = set()

    def goes_on(self, before: Gathering) -> None:
        """Take over what was found among fewer numbers."""
        self.rows, self.models, self._quick = dict(before.rows), dict(before.models), set(before._quick)

    def look(self, k: int, /, *, quick: bool = False) -> None:
        """Gather what speaks for k components, by quick fits or thorough ones."""
        began = perf_counter()
        quick = quick and self.whole.has_quick
        row = Evidence(k, note="by a quick fit" if quick else "")
        self._quick = self._quick | {k} if quick else self._quick - {k}
        try:
            row = self._on_all(row, k, quick=quick) if self.full else row
            row = self._on_halves(row, k) if self.halves is not None else row
        except MomentError as error:
            row = replace(row, note=str(error))
        self.rows[k] = replace(row, seconds=perf_counter() - began)
        if self.watch is not None:
            self.watch(self.rows[k])

    def best(self) -> int | None:
        """The best number so far; None where nothing is known."""
        found = decide(self.evidence(), self.criterion)
        return None if found is None else found.best

    def seen(self, *, thoroughly: bool = False) -> Collection[int]:
        """The numbers that were looked at."""
        return self.rows.keys() - self._quick if thoroughly else self.rows.keys()

    def _on_all(self, row: Evidence, k: int, *, quick: bool) -> Evidence:
        model = self.whole.fit(k, quick=quick)
        if not quick:
            self.models[k] = model
        if model._judges() and (n_parameters := model._n_parameters()) is not None:
            scores = fill(Scores(model), self.whole.source)
            total, completed, size = scores.log_likelihood.sum(), scores.completed.sum(), scores.size.sum()
            penalty = n_parameters * float(np.log(max(size, 2.0)))
            price = model._parameter_price(scores.members, scores.trials)
            row = replace(
                row,
                log_likelihood=float(total),
                n_parameters=n_parameters,
                bic=float(penalty - 2 * total),
                icl=float(penalty - 2 * completed),
                marginal=float("nan") if price is None else float(2 * price - 2 * total),
            )
        return row

    def _on_halves(self, row: Evidence, k: int) -> Evidence:
        assert self.halves is not None
        if k >= self.n_half:
            return replace(row, note=f"a half has {self.n_half} samples: too few for {k} components")
        models = [half.fit(k) for half in self.halves]
        alike = replication(models[0], models[1], k, self.halves[0].source)
        row = replace(row, replication=float(alike.min()))
        if not models[0]._judges():
            return row
        scores = [fill(Scores(models[i]), self.halves[1 - i].source) for i in (0, 1)]
        values = np.concatenate([each.log_likelihood for each in scores])
        sizes = np.concatenate([each.size for each in scores])
        return replace(
            row,
            held_out=float(values.sum() / sizes.sum()),
            held_out_error=standard_error(values, sizes),
            blocks=np.column_stack([values, sizes]),
        )

    def evidence(self) -> list[Evidence]:
        """All rows; those of one number that is known by its moments alone, too, where these decide."""
        if self.criterion != "spectrum":
            return list(self.rows.values())
        return self.with_spectrum()

    def with_spectrum(self) -> list[Evidence]:
        """All rows, with what the largest fit says of each direction."""
        if self._largest is None:
            fitted = self.models.get(self.whole.largest)
            self._largest = self.whole.theorem() if fitted is None else fitted
        if self._largest is None and self.models:  # the moments do not determine so many: what is known of fewer
            self._largest = self.models[max(self.models)]
        largest = self._largest
        if largest is None:
            return list(self.rows.values())
        report, shown = largest.diagnostics_, largest._shown_components()
        spectrum = np.asarray(report.spectrum, dtype=np.float64)

        def told(row: Evidence) -> Evidence:
            place = row.n_components - 1
            value = float(spectrum[place]) if place < spectrum.size else float("nan")
            return replace(row, eigenvalue=value, above_noise=None if shown is None else row.n_components <= shown)

        return [told(row) for row in self.rows.values()]
