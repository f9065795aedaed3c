"""Warnings and errors of the library's own."""

from __future__ import annotations


class MomentWarning(UserWarning):
    """The moments of the data do not support the answer well: the message says what was seen and what to change."""


class MomentError(ValueError):
    """The moments of the data do not determine the model: rank too low, too few samples, documents too short."""


class InputFileError(ValueError):
    """A file cannot be read as what it should be: the message names file and line, what was found, what to do."""


class ModelFileError(ValueError):
    """A file is not what `odeco.save` writes: damaged, cut short, of another kind, or of a newer odeco."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written: the fit goes on without it."""
