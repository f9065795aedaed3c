"""The numbers that a crowd is tuned by, and what chose them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """Each field stands below the reason for its value."""

    # Items that are searched on, and cells of all votes: where there are more, the first starts are all there is.
    most_items: int = 5_000
    most_cells: int = 2**24
    # Share of the uniform confusion in the start of EM: workers with few labels come out of the moments too sure.
    start_share: float = 0.25
    # Labels that are taken for classes without being asked.
    most_classes: int = 100
    # Nats in all: groupings whose EM ends this close to the best found the same answer.
    same: float = 1e-3


POLICY = Policy()
