"""One table of tensors for many tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odeco.simulate import OdecoSample, odeco_tensor


@dataclass(frozen=True)
class Case:
    """A tensor with a known decomposition; `noise` is the operator norm of its error."""

    name: str
    n: int
    eigenvalues: tuple[float, ...]
    order: int = 3
    noise: float = 0.0

    def draw(self, seed: int = 0) -> OdecoSample:
        return odeco_tensor(self.n, order=self.order, eigenvalues=self.eigenvalues, noise=self.noise, random_state=seed)

    @property
    def rank(self) -> int:
        return len(self.eigenvalues)

    @property
    def smallest(self) -> float:
        return float(np.abs(self.eigenvalues).min())


def _spread(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(np.linspace(low, high, count))


CASES = [
    Case("clean spread", 8, _spread(1, 10, 8)),
    Case("clean repeated", 12, (2.0,) * 12),
    Case("clean large", 70, _spread(1, 3, 70)),  # beyond the plain product: packed and mixed precision
    Case("rank deficient", 15, (3.0, 2.0, 2.0, 1.0)),
    Case("rank one", 6, (0.5,)),
    Case("one by one", 1, (4.0,)),
    Case("noisy repeated", 20, (1.0,) * 20, noise=0.1 / np.sqrt(20)),
    Case("noisy spread", 20, _spread(1, 10, 20), noise=0.1 / np.sqrt(20)),
    Case("noisy rank deficient", 30, _spread(1, 3, 6), noise=0.02),
    Case("order 4 mixed signs", 7, (3.0, -2.5, 2.0, -1.5, 1.0, -1.0, 1.0), order=4),
    Case("order 4 rank deficient", 9, (2.0, -1.0, 1.0), order=4),
    Case("order 4 noisy", 10, (2.0, -2.0, 1.5, -1.5, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0), order=4, noise=0.05),
    Case("order 4 packed", 18, _spread(-2, -1, 9) + _spread(1, 2, 9), order=4),
]
CLEAN = [case for case in CASES if not case.noise]
NOISY = [case for case in CASES if case.noise]


def case_id(case: Case) -> str:
    return case.name
