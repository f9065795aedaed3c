"""What the public functions of this package check before they compute."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from odeco.moments.views import PAIRS, ThreeViews
from odeco.reduction.result import FloatArray
from odeco.tensors import ExplicitTensor, as_symmetric_tensor
from odeco.whitening import Whitener


def check_third(third: ArrayLike, name: str, second: ArrayLike, second_name: str) -> FloatArray:
    """A third moment as a symmetric float array with the side of the second, which is checked where it is whitened."""
    if np.ndim(third) != 3:
        raise ValueError(f"{name} must be of order 3, got shape {np.shape(third)}.")
    tensor = as_symmetric_tensor(third, name)
    if np.ndim(second) == 2 and tensor.dimension != np.shape(second)[0]:
        raise ValueError(
            f"{name} and {second_name} must be moments of the same d dimensions, got shapes {np.shape(third)} and "
            f"{np.shape(second)}."
        )
    assert isinstance(tensor, ExplicitTensor)
    return tensor.array


def check_finite(vector: ArrayLike, name: str, shape: tuple[int, ...]) -> FloatArray:
    """A float array of this shape without NaN."""
    array = np.asarray(vector, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite of shape {shape}, got shape {array.shape}{_not_finite(array)}.")
    return array


def check_lengths(lengths: FloatArray, scale: str) -> FloatArray:
    """Lengths of lifted vectors that are to be divided by them."""
    if not (lengths > 0).all():
        index = int(np.argmin(lengths))
        raise ValueError(f"component {index} lifts to a vector of length 0, it cannot be scaled to {scale}.")
    return lengths


def check_views(views: ThreeViews, n_components: int) -> None:
    """Finite moments whose shapes belong together, and a number of components that they could have."""
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 1:
        raise ValueError(f"n_components must be a positive integer, got {n_components!r}.")
    ranks = np.shape(views.triples)
    if len(ranks) != 3 or len(views.pairs) != 3:
        raise ValueError(
            f"views must have three pairs and triples of order 3, got {len(views.pairs)} pairs and shape {ranks}."
        )
    check_finite(views.triples, "views.triples", ranks)
    for place, (first, second) in enumerate(PAIRS):
        check_finite(views.pairs[place], f"views.pairs[{place}]", (ranks[first], ranks[second]))
    for view, mean in enumerate(views.means or ()):
        check_finite(mean, f"views.means[{view}]", (ranks[view],))


def _not_finite(array: FloatArray) -> str:
    count = int(np.count_nonzero(~np.isfinite(array)))
    return f" with {count} NaN or infinite entries" if count else ""


def check_eigenpairs(
    whitener: Whitener, eigenvalues: ArrayLike, eigenvectors: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs as float arrays of matching shapes (r,) and (k, r)."""
    values, vectors = np.asarray(eigenvalues, dtype=np.float64), np.asarray(eigenvectors, dtype=np.float64)
    if values.ndim != 1 or vectors.shape != (whitener.n_components, values.shape[0]):
        raise ValueError(
            f"eigenvalues and eigenvectors must have shapes (r,) and ({whitener.n_components}, r), "
            f"got {values.shape} and {vectors.shape}."
        )
    if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        raise ValueError("eigenvalues and eigenvectors must be finite.")
    return values, vectors
