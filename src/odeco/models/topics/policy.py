"""The numbers that a topic model is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Iterations:
    """Steps of the power map at most, and the change at which they end."""

    n_iter: int
    tol: float

    def options(self) -> dict[str, Any]:
        """As a decomposer takes them."""
        return {"n_iter": self.n_iter, "tol": self.tol}


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # How words are whitened.

    # Documents on which the word scale is chosen, where there are more than those on which the noise is measured.
    pilot: int = 5_000
    noise_sample: int = 20_000
    # Word scales: 1/2 gives every word the same variance; less where noise would drown the directions.
    fine: float = 0.5
    coarse: float = 0.25
    # Words at which a document has a quarter of the weight of a very long one: with equal weights a few short documents
    # drown the rest in noise.
    half_length: float = 100.0
    # Documents times k^3 above which the tensor of a part of them is decomposed and finished on all.
    large_tensor: float = 2e11
    # Documents of each half at most, while numbers of topics are compared: more would cost, and not change, the choice.
    most_judged: int = 10_000
    # Directions of a stream's basis for each component.
    slack: int = 2

    # How alpha0 is found.

    # Values that are tried, evenly in the logarithm.
    alpha0_range: tuple[float, float] = (0.01, 30.0)
    n_alpha0: int = 9
    # Around its best point, in units of log alpha0: the vertex of a parabola through points this far apart, and again.
    alpha0_widths: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
    # On documents that follow the model the residual doubles within a factor of four from the true alpha0. Where it
    # hardly varies over the whole grid, alpha0 is not identified and the usual prior of one pseudo-document is taken.
    identified: float = 0.9
    unidentified_alpha0: float = 1.0

    # How long the tensor is iterated.

    # A frame that has not settled by then will not: columns of noise wander for ever.
    settled: Iterations = Iterations(40, 1e-5)
    # Enough to compare values of alpha0.
    rough: Iterations = Iterations(15, 1e-3)
    # In double precision at the end: what rounding leaves in the residual moves the vertex of a flat parabola.
    exact: Iterations = Iterations(20, 1e-4)
    # The power map contracts by the relative noise at each step: three take the error of a sample to that of all
    # documents.
    few: Iterations = Iterations(3, 1e-4)

    # Where the moments give no start.

    # Documents among which those are chosen that topics start from.
    sample: int = 5_000


POLICY = Policy()
