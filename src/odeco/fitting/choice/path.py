"""Fits of one estimator to one source for several numbers of components: on moments that were read once, each with
where the next larger one ended for one of its starts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone

from odeco._random import as_generator
from odeco.exceptions import MomentError, MomentWarning
from odeco.fitting.ladder import Ladder, shared
from odeco.moments.passes import run_passes


class Path:
    """The way over k. The moments are read at the largest number; smaller ones take their part of them where the model
    can say what that is (`MomentEstimator._narrowed`), and read their own elsewhere.

    Parameters
    ----------
    estimator : MomentEstimator
        What is fitted; it stays as it is.
    source : source
        Rows, opened.
    opened : mapping
        Attributes that opening them has set: the form of the data.
    largest : int
    """

    def __init__(self, estimator: Any, source: Any, opened: Mapping[str, Any], largest: int) -> None:
        self.estimator, self.source, self.opened, self.largest = estimator, source, opened, largest
        self._moments: Any = None
        self._was_read = False
        self._ladder: Ladder = {}

    @property
    def has_quick(self) -> bool:
        """Whether a quick fit differs from another one."""
        return getattr(self.estimator, "effort", "quick") != "quick" and self.estimator.refine is not None

    def over(self, source: Any, largest: int) -> Path:
        """The same over other rows of the same form."""
        return Path(self.estimator, source, self.opened, largest)

    def fit(self, k: int, *, quick: bool = False) -> Any:
        """The fit with k components; MomentError where the rows do not determine it. `quick`: one start alone."""
        model = with_count(self.estimator, k)
        if quick and self.has_quick:
            model.set_params(effort="quick")
        vars(model).update(self.opened)
        model._check_options()
        rng = as_generator(model.random_state)
        with quiet(), shared(self._ladder):
            return model._run(self.source, lambda: self._moments_of(model, k, rng), rng)

    def theorem(self) -> Any:
        """The estimate of the moments alone with the largest number; None where they determine none."""
        estimator = self.estimator
        model = with_count(estimator, self.largest).set_params(refine=None)
        vars(model).update(self.opened)
        if self._largest_moments() is None:
            return None
        with quiet():
            try:
                return model._run(self.source, self._largest_moments, as_generator(model.random_state))
            except MomentError:
                return None

    def _moments_of(self, model: Any, k: int, rng: Any) -> Any:
        """A part of those of the largest number, or read where they are none."""
        moments = self._largest_moments()
        if k < self.largest and moments is not None:
            moments = model._narrowed(moments, k)
        return run_passes(model._passes(self.source, rng), self.source) if moments is None else moments

    def _largest_moments(self) -> Any:
        if not self._was_read:
            self._moments, self._was_read = self._read(), True
        return self._moments

    def _read(self) -> Any:
        model = with_count(self.estimator, self.largest)
        vars(model).update(self.opened)
        try:
            with model._blas():
                return run_passes(model._passes(self.source, as_generator(model.random_state)), self.source)
        except MomentError:  # each number by itself: smaller ones may do
            return None


def with_count(estimator: Any, k: int) -> Any:
    """A clone that is asked for k components."""
    return clone(estimator).set_params(**{estimator._count: k})


@contextmanager
def quiet() -> Iterator[None]:
    """Doubts about numbers that are tried are no warnings: they are evidence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        yield
