"""Warnings that the library raises."""

from __future__ import annotations


class MomentWarning(UserWarning):
    """The moments of the data do not support the answer well: the message says what was seen and what to change."""
