"""The numbers that a single topic model is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # Documents that candidates are compared on, and steps on all of them before finalists are compared again.
    sample: int = 4000
    final_steps: int = 5
    # Directions that documents are told apart by.
    directions: int = 40
    # Share of the uniform distribution in a topic when it judges documents it may not have seen the words of.
    prediction_smoothing: float = 1e-6


POLICY = Policy()
