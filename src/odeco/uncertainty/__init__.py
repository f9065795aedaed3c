"""How sure a fitted model is: intervals of everything it has learned, and how well each component replicates."""

from odeco.uncertainty.classes import class_table, write_class_table
from odeco.uncertainty.compute import intervals
from odeco.uncertainty.result import Intervals
from odeco.uncertainty.stored import read_intervals, write_intervals

__all__ = ["Intervals", "class_table", "intervals", "read_intervals", "write_class_table", "write_intervals"]
