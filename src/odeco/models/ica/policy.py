"""The numbers that ICA is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # How the tensor is formed.

    # Up to this dimension the k^4 / 24 distinct entries are cheaper to form once than to contract with again and again.
    explicit_limit: int = 24
    # From here on products of whitened samples are formed in single precision and summed in double: their rounding,
    # about 1e-6, is far below the sampling error n^(-1/2).
    single_samples: int = 20_000
    # Whitened samples are kept up to this size.
    most_bytes: int = 2**31
    # Largest dimension of moments that are kept of a stream (2,145^2 sums), and their dimension where there are more
    # channels.
    stream_limit: int = 64
    stream_dimension: int = 32

    # How channels are whitened.

    # Dimensions up to which all channels are whitened and the space of the sources is found by the cumulant.
    quasi_limit: int = 24
    # Eigenvalues of sampled isotropic noise spread as (1 +- sqrt(m/n))^2 does (Marchenko-Pastur); this much more is
    # still called isotropic: the bias it leaves is of second order.
    isotropy_slack: float = 1.2

    # How sources are separated.

    # Change of directions at which the decomposition ends that a likelihood goes on from.
    start_tolerance: float = 1e-4
    # Without noise the likelihood settles in 3 to 10 iterations; with it, where more are needed, little of it is taken.
    blended_iterations: int = 25
    # Correlation of magnitudes from which sources are not called independent: 0.01 to 0.03 for the sources of
    # docs/ica.md under any noise, 0.27 for spoken words. And the samples it is measured on.
    dependent: float = 0.1
    magnitudes: int = 10_000
    # Rotations with a fixed function converge linearly: they stop later.
    finer: float = 0.1
    # Stretches of time whose covariances are compared, and the samples needed for it.
    stretches: int = 100
    least_samples: int = 10_000


POLICY = Policy()
