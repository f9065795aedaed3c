"""What the cards of several models have in common: options that mean the same, attributes that all mixtures have."""

from __future__ import annotations

from collections.abc import Mapping

from odeco.fitting.card import Option

MAX_ITER = Option("max_iter", int, "Steps of the refinement at most.", least=1)
TOL = Option("tol", float, "Gain per step below which the refinement stops.", least=0)
EFFORT = Option("effort", str, "How long to look for a start.", choices=("auto", "quick", "thorough"))
SMOOTHING = Option("smoothing", float, "Pseudo-count of what was never seen.", least=0)


def refine(*names: str) -> Option:
    """The option `refine` of a model that has these refinements."""
    what = "What polishes the moment estimate; none keeps the pure estimate of the paper."
    return Option("refine", str, what, choices=("auto", *names, "none"))


# Every type of covariances, and the shape that a model keeps them in.
COVARIANCES: Mapping[str, str] = {
    "spherical": "nonnegative k",
    "tied_spherical": "finite-number",
    "diag": "nonnegative k d",
    "full": "finite k d d",
    "tied": "finite d d",
}


def covariance(*types: str) -> Option:
    """The option `covariance_type` of a model that has these types."""
    return Option("covariance_type", str, "Shape of the components.", "--covariance", choices=types)


MIXTURE: Mapping[str, str] = {"weights_": "simplex k", "converged_": "maybe flag", "lower_bound_": "maybe number"}
