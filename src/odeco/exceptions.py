"""Warnings and errors of the library's own."""

from __future__ import annotations


class MomentWarning(UserWarning):
    """The moments of the data do not support the answer well: the message says what was seen and what to change."""


class MomentError(ValueError):
    """The moments of the data do not determine the model: rank too low, too few samples, documents too short."""
