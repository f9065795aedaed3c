"""Fits of one estimator to one source for several numbers of components, on moments that were read once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone

from odeco._random import as_generator
from odeco.exceptions import MomentError, MomentWarning
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
        shared = self._shared(model, k)
        rng = as_generator(model.random_state)
        with quiet():
            if shared is None:
                return model._fit_rows(self.source, rng)
            return model._run(self.source, lambda: shared, rng)

    def theorem(self) -> Any:
        """The estimate of the moments alone with the largest number; None where they determine none."""
        estimator = self.estimator
        model = with_count(estimator, self.largest).set_params(refine=None)
        vars(model).update(self.opened)
        shared = self._shared(model, self.largest)
        if shared is None:
            return None
        with quiet():
            try:
                return model._run(self.source, lambda: shared, as_generator(model.random_state))
            except MomentError:
                return None

    def _shared(self, model: Any, k: int) -> Any:
        """The moments of k components, from those of the largest number; None where they have to be read."""
        if not self._was_read:
            self._moments, self._was_read = self._read(), True
        return self._moments if k == self.largest or self._moments is None else model._narrowed(self._moments, k)

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
