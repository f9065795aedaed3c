"""The numbers that a Gaussian mixture is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from odeco.fitting.candidates import TRIAL, Effort


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # Where starts are looked for.

    # Rows that candidates are compared on, at least and for each component.
    sample_rows: int = 5000
    sample_rows_each: int = 100
    # And as many more as keep the numbers in the posteriors, times columns, below this: of shuttle, whose few outliers
    # decide, 5,000 rows ended behind ten starts for one shared covariance, and so did half of these numbers.
    sample_numbers: int = 1_000_000
    # Rows on which it is seen whether the theorem's start needs rivals, at least and for each free parameter; as many
    # others judge it. With fewer, starts differ by chance.
    trial_rows: int = 2000
    trial_rows_each: int = 3
    # Who is far ahead after these steps stays so; a start that climbs slowly gets rivals.
    trial: Effort = field(default_factory=lambda: replace(TRIAL, screen_steps=10, settle_steps=3))
    # Rows on which it is seen whether spheres are round, and the widest spread of noise at which they tell: the rows of
    # one that covers two are spread twice as far where these are two deviations apart.
    round_rows: int = 10_000
    telling_edge: float = 2.0
    # Columns beyond which spheres are compared on principal components, and how many of these, at least and for each
    # component.
    many_columns: int = 60
    principal_columns: int = 30
    principal_columns_each: int = 2
    # Up to this many numbers in the posteriors, times columns, several starts cost less than a second.
    small: int = 300_000
    # Steps on all rows after which finalists of a search on some are compared.
    final_steps: int = 5
    # Numbers of components below k that all rows are asked about after one that they do not prefer.
    in_vain: int = 2
    # Variances, as shares of the columns' own, below which a component sits on equal values; rows that make that no
    # chance.
    thin: float = 1e-4
    few_rows: int = 10

    # What the theorem's start is held to.

    # One in so many components may be too light for its direction to stand out.
    light: int = 10
    # Variances that leave this range about their average are sampling error and are put back.
    variance_range: tuple[float, float] = (0.05, 20.0)
    # Eigenvalue times last coordinate is 1; sampling brought it down to 0.6 where a component was found, and below 0.25
    # where none was. Such a component is given this share of the average weight.
    consistent: float = 0.4
    left_weight: float = 0.3

    # How rows are read and kept.

    # Columns up to which the covariance is formed: its n d^2 operations then take less than an EM step or two.
    most_columns: int = 300
    # From here on rows are projected in single precision and summed in double: the rounding, about 1e-6, is far below
    # the sampling error n^(-1/2).
    single_rows: int = 20_000
    # Rows that `partial_fit` learns its directions from, for each column, and their least number.
    held_rows_each: int = 20
    held_rows: int = 5000
    # Directions of a stream's basis for each component: what the first rows may have missed.
    slack: int = 2
    # Features of rows are kept from step to step up to this size.
    kept_bytes: int = 2**28
    # Projected rows, and rows of a sample, that a thread works on at a time, fewer where so many products of full
    # covariances (half a millisecond) are worth a thread already.
    batch: int = 8064
    worth_a_thread: int = 5_000_000


POLICY = Policy()
