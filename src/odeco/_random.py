"""One way to turn a ``random_state`` into a generator."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

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
