"""The numbers that the hidden Markov models were tuned by, each with its reason or the measurement that chose it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from odeco.fitting.candidates import EFFORTS, TRIAL, Effort


@dataclass(frozen=True)
class Policy:
    """The theorem's estimate has `fewest_starts` and the bases from here; all else says how a start is looked for."""

    # Input: a larger alphabet than both of these is a mistake unless `n_features` says so: what symbols cost (300
    # steps, k = 2: 1 s for every 10,000) they then cost without occurring.
    symbols: int = 10_000
    symbols_per_step: int = 10

    # Stream: steps that are kept as they are; up to there partial_fit is fit.
    head_steps: int = 50_000

    # Theorem: sequences for each state from which on the first states are read from the first observations.
    fewest_starts: int = 10

    # Basis of symbols: directions beyond those asked for while it is sought, and steps of subspace iteration.
    basis_slack: int = 10
    basis_steps: int = 6
    # Bases of features: multiplications spent on finding them; the triples on them use every step.
    basis_work: float = 5e8
    # Least variance of each basis: less noise; or small differences between columns that go together.
    least_variances: tuple[float, float] = (1e-2, 1e-4)

    # Symmetrized moments: little damping for symbols that a chain of k states has made, much for text and the like,
    # which no such chain has made: there a small ridge can end where symbols are independent. The likelihood tells
    # which it is.
    ridges: tuple[float, ...] = (0.01, 0.5)
    least_state: float = 1e-4  # weight of a state that they give
    least_share: float = 1e-3  # of the frequencies, below which no estimated probability of a symbol starts
    pair_steps: int = 30  # of EM on the pairs, whose cost does not depend on n
    start_steps: int = 100  # of EM for the first states
    # Common eigenvectors, whose least-squares fit needs a start near enough: symbols have the first of these alone.
    common_ridges: tuple[float, ...] = (0.05, 0.2)
    least_pair: float = 1e-4  # added to each pair of states: Baum-Welch never revives a zero
    combinations: int = 30  # random ones whose eigenvectors are tried
    sweeps: int = 60  # of alternating least squares: k^4 each
    settled: float = 1e-6  # change of a unit vector by a sweep, below which no further one is taken
    damping: float = 1e-3  # of its normal equations, in units of their mean diagonal
    # Windows of symbols: at most so many, a ridge, and the part of the uniform distribution in what is estimated, as
    # Baum-Welch never revives a zero.
    most_windows: int = 256
    window_ridge: float = 0.01
    window_floor: float = 1e-2

    # Starts from features: means farther out (in deviations of the data) and variances beyond these (in units of the
    # data's) are noise; nor is a rate below this part of its column's mean trusted.
    farthest: float = 3.5
    start_variances: tuple[float, float] = (0.1, 4.0)
    least_rate: float = 0.02
    spread: float = 0.02  # of each row of transitions is spread evenly: Baum-Welch never revives a zero

    # Clusters: rows and rounds of k-means; less than this part of a column's deviation is rounding of repeated values.
    cluster_rows: int = 5_000
    cluster_rounds: int = 12
    least_within: float = 1e-10
    # Segments of symbols that are clustered by composition: their length, and how many at most.
    segment_steps: int = 200
    most_segments: int = 5_000

    # Samples on which starts are compared, of measurements and of symbols: 20,000 of the 49,840 of `mvad` preferred the
    # wrong one of two optima 0.002 nats apart. Units and features are learned from this many times as many.
    sample_steps: int = 20_000
    symbol_steps: int = 50_000
    learned_from: int = 8

    # Residuals of the third moments below which a chain of k states may have made the data: 0.01-0.10 for drawn chains,
    # 0.19-0.42 for letters of two texts.
    fits: float = 0.15
    small: int = 5_000  # steps that are searched in any case; of more, on so many the moments are tried against rivals
    # Symbols that go together can be shared out among states in many ways, each of them an optimum: with four starts
    # `mvad` with three states ended 0.002 nats below the best for every second seed. States that last (phage lambda)
    # come slowly: after 60 steps two optima were 0.004 nats apart in the wrong order.
    efforts: Mapping[str, Effort] = field(
        default_factory=lambda: {**EFFORTS, "auto": replace(EFFORTS["auto"], climb_steps=150, n_field=10, tol=3e-6)}
    )
    # A few steps tell which variant of the moment estimate is nearest to the optimum, where it is near.
    near_steps: int = 2
    nearer_steps: int = 10
    # The best of them and the best rival go equally far: one of two states that hardly differ comes slowly.
    tried: Effort = field(default_factory=lambda: replace(TRIAL, n_finalists=2))
    finish_steps: int = 10  # of the finalists of a sample on all steps, where they are apart
    most_states: int = 16  # up to which states are counted, or four times those asked for

    # Long data: from so many steps on Baum-Welch begins with one step in `part`, for so many passes. What the part did
    # not show may be in the data: so much of each row of transitions is spread evenly after it.
    long: int = 80_000
    part: int = 4
    part_passes: int = 100
    loose: float = 2e-3

    # Report: a variance within 1 % of the floor counts as on it.
    near_floor: float = 1.01


POLICY = Policy()
