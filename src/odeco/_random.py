"""One way to turn a ``random_state`` into a generator, and draws that refuse in words."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# Means of counts that 64-bit integers hold, as numpy has it.
_LARGEST_RATE = 9e18

RandomState: TypeAlias = int | np.integer | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a NumPy ``Generator`` for a seed, a generator, a legacy ``RandomState`` or ``None``.

    A ``Generator`` is returned as it is (its state advances); a legacy ``RandomState`` seeds a new one
    from its stream, so that scikit-learn's convention of passing one through is honoured.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state}.")
        return np.random.default_rng(int(random_state))
    raise ValueError(
        f"random_state must be None, a non-negative integer, a numpy Generator or RandomState, got {random_state!r}."
    )


def draw_counts(rng: np.random.Generator, rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Poisson counts with these means."""
    largest = float(rates.max(initial=0.0))
    if largest > _LARGEST_RATE:
        raise ValueError(f"counts of mean {largest:.1g} cannot be drawn: they are beyond the range of 64-bit integers.")
    return rng.poisson(rates)
