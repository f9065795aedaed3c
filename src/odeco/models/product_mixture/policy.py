"""The tuning numbers of product mixtures, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What was chosen by measurement or by a rule of thumb, rather than by a theorem."""

    # Rows.

    # Batches up to this many cells are read into one table.
    most_cells: int = 2**24
    # Cells up to which equal rows are always looked for, and first rows that decide for larger tables.
    most_compared_cells: int = 2**18
    first_compared: int = 1_000
    # Distinct rows among these first ones, as a share, beyond which joining equal ones is not worth its sorting.
    most_distinct_share: float = 0.99
    # Statistics of all samples are kept in memory up to this size, and computed at every step beyond.
    most_bytes: int = 2**30

    # Moments.

    # First rows that centres and scales are taken from: near enough for sums about them to keep their digits.
    first_look: int = 1_024
    # Steps that complete the pairs, and the change of a filled entry, as a share of the largest, that ends them.
    fills: int = 100
    fill_tol: float = 1e-5
    # Part of a direction (its squared sine) that may lie outside those on which triples are known: 24 draws of 1,000
    # rows and 8 or 12 columns had shares that differ by 0.001 or less up to there, by 0.003 to 0.17 beyond.
    most_lost: float = 5e-3
    # Passes of a search for directions that reads the data at each step: the error of a subspace that far ahead of the
    # noise is smaller by then.
    implicit_iterations: int = 15
    # Joint categories of a pair of columns at most.
    most_joint: int = 64
    # Directions beyond 2 (k - 1) that a stream keeps, and steps of the search for them.
    stream_slack: int = 10
    stream_iterations: int = 30
    # Rounds in which a stream fills the products of a column with itself.
    stream_fills: int = 20
    # What Proposition 3.2 is asked for: views that keep sqrt(1/6) of the smallest singular value, in nine cases of ten.
    views_epsilon: float = 0.5
    views_delta: float = 0.1

    # The theorem.

    # Rounds of refilling the triples that repeat a column.
    refills: int = 60
    # Change of the means, in deviations of the columns, that ends the refilling; None: a tenth of their sampling error.
    refill_tol: float | None = None
    # A residual this many times the best one ends the refilling.
    worse_residual: float = 1.5
    # Weights are not taken to be smaller than this share of 1/k: means are divided by their roots.
    least_weight: float = 1e-3
    # Means of numbers are not taken to be further from the mean of all than so many standard deviations.
    furthest_mean: float = 10.0
    # Variances within components are not taken to be smaller than this share of the column's.
    least_variance: float = 1e-2
    # How far the moment estimate stays from impossible values by itself, and as a start: EM cannot come back from them.
    pure_floor: float = 1e-6
    start_floor: float = 1e-3

    # The search.

    # Rows on which candidates are compared; of larger tables, so many spread over all of them.
    most_rows: int = 5_000
    # Random starts take their first steps together, and as many as one step of so many products has room for.
    budget: int = 100_000_000
    most_random: int = 120
    first_steps: int = 40
    # Parts in which they are climbed: as many on every machine, because a part ends when none of it gains.
    climbed_parts: int = 4
    # How much of a component that is drawn around a row is the row's own, its variances as shares of the columns', and
    # the least of its rates as a share of the column's: half and half, and away from what EM cannot come back from.
    random_shares: tuple[float, float] = (0.2, 0.8)
    random_variances: tuple[float, float] = (0.2, 1.0)
    least_random_rate: float = 0.05
    # Rows on which it is seen whether a search is needed at all, and room for random starts there.
    few_rows: int = 1_000
    few_budget: int = 1_000_000
    # Data that need a search creep to their optimum: gain of a step at which EM ends there, on few rows and on many.
    small_tol: float = 1e-8
    large_tol: float = 1e-7


POLICY = Policy()
