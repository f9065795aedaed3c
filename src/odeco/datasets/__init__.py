"""Text that comes with the package: the demo, the guides and the benchmarks run on it without a download."""

from odeco.datasets.union import Passages, state_of_the_union

__all__ = ["Passages", "state_of_the_union"]
