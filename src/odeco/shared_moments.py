"""Moments of separate machines or days on one basis: made apart, merged, and fitted without the data.

A basis is learned once, from a sample; sums on it can be made anywhere and added up. Each is a model that `partial_fit`
could go on with, and is kept as one (`odeco.save`): moments files are model files whose sums are what matters.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from odeco.fitting.estimator import MomentEstimator
from odeco.fitting.stream import MomentStream
from odeco.persistence import load_with_metadata, save


def make_basis(model: Any, sample: Any) -> Any:
    """The model with a basis learned from a sample, and no rows: what every part starts from.

    Parameters
    ----------
    model : any estimator of odeco
        Gaussians of full or shared covariances are given those of the moments, spheres: only "diag" has its own.
    sample : anything that `partial_fit` takes
        Some thousand rows (sequences, items), drawn at random from all: directions that it lacks are lost to the parts,
        and labels that it lacks are an error in them. Hidden Markov models keep the sample in the basis: it judges the
        estimates.
    """
    started = type(model)(**model.get_params())
    _check(started)
    started.partial_fit(sample)
    started._stream = started._stream.emptied(started._plan())
    return started


def add_moments(basis: Any, X: Any) -> Any:
    """A copy of a model that has a basis, with the rows of X added to its sums; nothing is estimated yet."""
    part = deepcopy(basis)
    stream = _stream(part)
    part._add_chunks(X)
    stream.settle(part._plan())
    return part


def merge_moments(parts: Sequence[Any]) -> Any:
    """One model with the sums of all parts; parts on different bases are a ValueError."""
    if not parts:
        raise ValueError("there is nothing to merge: give at least one part.")
    total = deepcopy(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        if type(part) is not type(total) or part.get_params() != total.get_params():
            raise ValueError(f"part {place} is of another model than the first: {part!r}, not {total!r}.")
        try:
            _stream(total).merge(deepcopy(_stream(part)), total._plan())
        except ValueError as error:
            raise ValueError(f"part {place} cannot be added to the first: {error}") from error
    return total


def fit_moments(part: Any) -> Any:
    """The moment estimate of all rows in the sums; `diagnostics_` says that it is one, for there are no rows to refine
    on.
    """
    fitted = deepcopy(part)
    _stream(fitted)
    return fitted._read_moments()


def n_rows(part: Any) -> int:
    """How many rows are in the sums: samples, steps of sequences, or items."""
    return int(_stream(part).n)


def write_moments(part: Any, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Keep a basis or sums in a file."""
    _stream(part)
    save(part, path, metadata={**(metadata or {}), "moments": {"rows": n_rows(part)}})


def read_moments(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The part in a file, and what was said beside it."""
    saved = load_with_metadata(path)
    if "moments" not in saved.metadata:
        raise ValueError(f"{os.fspath(path)} holds a model, not moments: make a file of moments with odeco moments.")
    return saved.model, dict(saved.metadata)


def _check(model: Any) -> None:
    if not isinstance(model, MomentEstimator):
        raise ValueError(f"moments on a shared basis are kept of odeco's estimators, got {type(model).__name__}.")


def _stream(model: Any) -> MomentStream[Any, Any]:
    _check(model)
    if not hasattr(model, "_stream"):
        raise ValueError(f"{type(model).__name__} has no moments: make a basis from a sample first.")
    stream: MomentStream[Any, Any] = model._stream
    return stream
