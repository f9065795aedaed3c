"""Rows on the simplex: how they are estimated, and how accelerated steps mix them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import averages

Floats = NDArray[np.float64]

JEFFREYS = (0.5,)
SPARSE_OR_NOT = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

_LEAST_COUNT = 1e-12  # of all counts of a row: less is rounding


def pack_simplex(rows: Floats) -> Floats:
    """Square roots of probabilities: on this sphere a step of the same length is as easy to see everywhere."""
    return np.sqrt(rows).ravel()


def unpack_simplex(vector: Floats, shape: tuple[int, ...]) -> Floats:
    """Rows on the simplex from any vector like that of `pack_simplex`; none of them becomes exactly 0."""
    rows = np.maximum(vector.reshape(shape), 1e-12) ** 2
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def proportions(counts: Floats, smoothing: float, otherwise: Floats | float = 0.0) -> Floats:
    """Counts plus pseudo-counts as proportions of their row; rows without any weight are `otherwise`."""
    counts = counts + smoothing
    return averages(counts, counts.sum(axis=-1, keepdims=True), otherwise, _LEAST_COUNT)


def log_dirichlet(rows: Floats, smoothing: float) -> float:
    """Log density of Dirichlet(1 + smoothing) priors of all rows, up to a constant."""
    return float(smoothing * np.log(np.maximum(rows, 1e-300)).sum()) if smoothing else 0.0


def fitted_gain(counts: Floats, rows: Floats, pseudo_counts: tuple[float, ...] = JEFFREYS) -> float:
    """Nats by which counts (k, d) are likelier under rows fitted to them than under rows of a Dirichlet prior.

    The price of the rows as free parameters, integrated out. BIC is what is left of it where all counts are large: it
    asks more of probabilities of which few samples tell, or none. Of several pseudo-counts the one counts under which
    the counts are likeliest: rows with few large entries, as symbols of a state often are, cost less.
    """
    from scipy.special import gammaln

    d, totals = counts.shape[1], counts.sum(axis=1)
    fitted = float(np.sum(counts * np.log(np.maximum(rows, 1e-300))))

    def drawn(pseudo_count: float) -> float:
        each = gammaln(d * pseudo_count) - gammaln(totals + d * pseudo_count) - d * gammaln(pseudo_count)
        return float(np.sum(each) + np.sum(gammaln(counts + pseudo_count)))

    return fitted - max(drawn(pseudo_count) for pseudo_count in pseudo_counts)
