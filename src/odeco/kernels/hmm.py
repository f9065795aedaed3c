"""Scaled forward and backward recursions of hidden Markov models, eight stretches of the data in lockstep.

The data are one long array of steps in which sequences follow each other (``first[t]`` is 1 where one begins). It is
cut into stretches of equal length whatever the sequences, and `LANES` stretches advance together: a step is then a
product of the k x k transition matrix with a k x LANES matrix, which fills the vector units for any k and hides the
latency of a recursion. A stretch that begins within a sequence needs the message of the step before it: it starts
``burn`` steps earlier, from anywhere, and the filter forgets where it started. The caller compares the message that a
stretch has used with the one that its neighbour ends with, so that nothing rests on that hope
(`odeco.refinement.forward_backward`).

Steps before 0 and from n on exist only to fill the lanes: each is a sequence of its own without an observation.

Messages have shape (kp, LANES), kp = padded(k), padded with states that never occur; the matrices that multiply them
have shape (kp, k). ``rows[index[t]]`` (k,) are the likelihoods of step t in each state, up to the factor
``exp(scales[index[t]])``. An empty ``weights`` means 1 for each step.
"""

from odeco.kernels._native import LANES, PAD, advance, backward, forward, retreat

__all__ = ["LANES", "advance", "backward", "forward", "padded", "retreat"]


def padded(k: int) -> int:
    """k rounded up to a multiple of what the products with messages handle at a time."""
    return -(-k // PAD) * PAD
