"""How sure a fitted model is: intervals of everything it has learned, and how well each component replicates."""

from odeco.uncertainty.compute import intervals
from odeco.uncertainty.result import Intervals

__all__ = ["Intervals", "intervals"]
