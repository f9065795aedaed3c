"""The numbers that a multi-view mixture is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # Where starts are looked for.

    # Samples on which candidates are compared, and on which it is seen whether that is needed at all.
    most_rows: int = 2_500
    few_rows: int = 1_000
    # Columns of a view beyond which it is projected at random.
    widest: int = 100
    # Gain of a step at which EM ends where a search was needed.
    searched_tol: float = 1e-7

    # How the views are whitened.

    # Columns of a group up to which its pairs are formed whole.
    exact: int = 256
    # Directions beyond k, and products with the pairs, where they are not.
    oversamples: int = 10
    products: int = 3
    # Directions of a stream's basis beyond 2 k: the first samples need not find the range exactly.
    slack: int = 10
    # Share of the mean variance of a view's columns that is added to each where it holds counts: rare words get no
    # voice.
    variance_floor: float = 0.1
    # Least share of a column's variance that is left within components.
    within_floor: float = 1e-3
    # Residual of the tensor, of its norm, that is said to be mostly noise: as much noise as signal.
    doubtful_residual: float = 0.5

    # What EM is kept from.

    # Least variance within a component, of the variance of the column: EM on continuous data would otherwise end in
    # spikes.
    least_variance: float = 1e-6
    # Share of the overall means in the start of EM on counts: clipping leaves zeros, from which EM cannot come back.
    start_share: float = 0.1


POLICY = Policy()
