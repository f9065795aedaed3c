"""Several views, each with its likelihood, as one table of columns: what a scoring step needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odeco.families.tables import Families
from odeco.refinement.family_scoring import FamilyMixture, columns_of, positive, raised, raised_between
from odeco.refinement.scoring import Features, ScoreSums, Step, scoring_step
from odeco.refinement.views import ViewDensities, ViewModel, ViewParameters
from odeco.sources.views import ViewBatch

Floats = NDArray[np.float64]
Places = tuple[NDArray[np.intp], ...]


def view_step(
    batches: Iterable[ViewBatch], start: ViewParameters, model: ViewModel, bare: Sequence[bool]
) -> tuple[ViewParameters, Step[FamilyMixture]]:
    """The mixture one scoring step from `start`; views that are `bare` are not centred, for they may be sparse."""
    table = ViewTable.of(start, model, bare)
    done = scoring_step(batches, table, table.mixture(start, model.centers))
    return table.parameters(done.mixture, done.sums), done


def _places(model: ViewModel) -> Places:
    """Where the features of each view stand among all, in the order of `columns_of`: squares after all numbers."""
    places = [np.zeros(0, dtype=np.intp)] * len(model.likelihoods)
    first = 0
    for kind in ("bernoulli", "multinomial", "poisson", "gaussian", "gaussian"):
        for t in _views_of(model, kind):
            places[t] = np.append(places[t], np.arange(first, first + model.centers[t].size))
            first += model.centers[t].size
    return tuple(places)


def _views_of(model: ViewModel, kind: str) -> list[int]:
    return [t for t, name in enumerate(model.likelihoods) if name == kind]


@dataclass(frozen=True, eq=False)
class ViewTable:
    """Features of views, and their parameters as one table; Gaussian columns are about the centers of the model."""

    model: ViewModel
    places: Places = field(repr=False)
    densities: ViewDensities = field(repr=False)

    @classmethod
    def of(cls, start: ViewParameters, model: ViewModel, bare: Sequence[bool]) -> ViewTable:
        """The table of a model's views, of which those that are `bare` have no center."""
        centers = tuple(0 * center if without else center for center, without in zip(model.centers, bare, strict=True))
        about = replace(model, centers=centers)
        return cls(about, _places(model), ViewDensities(start, about))

    def __call__(self, batch: ViewBatch) -> Iterator[tuple[Features, Floats | None]]:
        for piece in batch.pieces():
            features = self.densities.features(piece.blocks)
            views = [features.view(t).astype(np.float64, copy=False) for t in range(len(self.places))]
            yield list(zip(self.places, views, strict=True)), piece.weights

    def mixture(self, parameters: ViewParameters, overall: tuple[Floats, ...]) -> FamilyMixture:
        """All views side by side; `overall` are the means of the columns."""
        table = np.empty((parameters.weights.size, sum(place.size for place in self.places)))
        for t, place in enumerate(self.places):
            table[:, place] = self._view_table(parameters, t, overall[t])
        return FamilyMixture(self._families(), positive(parameters.weights), table)

    def _view_table(self, parameters: ViewParameters, t: int, overall: Floats) -> Floats:
        name, mean, variance = self.model.likelihoods[t], parameters.means[t], parameters.variances[t]
        if variance is not None:
            return np.hstack([mean - self.model.centers[t], variance])
        if name == "multinomial":
            tiny = np.finfo(float).tiny
            return raised(mean / np.maximum(mean.sum(axis=1, keepdims=True), tiny), overall / max(overall.sum(), tiny))
        return raised_between(mean, overall, 1.0 if name == "bernoulli" else np.inf)

    def _families(self) -> Families:
        def widths(kind: str) -> tuple[int, ...]:
            return tuple(self.model.centers[t].size for t in _views_of(self.model, kind))

        return columns_of(
            bernoulli=sum(widths("bernoulli")),
            blocks=widths("multinomial"),
            poisson=sum(widths("poisson")),
            gaussian=sum(widths("gaussian")),
        )

    def parameters(self, mixture: FamilyMixture, sums: ScoreSums) -> ViewParameters:
        """The way back. How many words a row has on average is no part of its likelihood: the posteriors tell."""
        means: list[Floats] = []
        variances: list[Floats | None] = []
        for name, place, center, floor in zip(
            self.model.likelihoods, self.places, self.model.centers, self.model.floors, strict=True
        ):
            mean, variance = mixture.table[:, place], None
            if name == "gaussian":
                mean, variance = np.split(mean, 2, axis=1)
                mean, variance = mean + center, np.maximum(variance, floor)
            elif name == "multinomial":
                lengths = sums.features[:, place].sum(axis=1) / np.maximum(sums.totals, np.finfo(float).tiny)
                mean = lengths[:, None] * mean
            means.append(mean)
            variances.append(variance)
        return ViewParameters(mixture.weights, tuple(means), tuple(variances))
