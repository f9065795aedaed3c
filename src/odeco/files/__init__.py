"""Files in and out: one door for each kind of data, one file for each format behind it.

Readers hold a batch at a time and can be read again and again; writers leave a whole file or none.
"""

from __future__ import annotations

from odeco.exceptions import InputFileError
from odeco.files.counts import Counts, read_counts
from odeco.files.detect import FORMATS
from odeco.files.frames import Frame
from odeco.files.labels import Labels, read_labels
from odeco.files.sequences import SequenceData, read_sequences
from odeco.files.signals import Signals, read_signals
from odeco.files.tables import Table, read_table
from odeco.files.views import Views, read_views
from odeco.files.vocabulary import read_vocabulary
from odeco.files.write_counts import write_counts
from odeco.files.write_tables import write_table

__all__ = [
    "FORMATS",
    "InputFileError",
    "read_counts",
    "Counts",
    "read_vocabulary",
    "read_table",
    "Table",
    "Frame",
    "read_views",
    "Views",
    "read_labels",
    "Labels",
    "read_sequences",
    "SequenceData",
    "read_signals",
    "Signals",
    "write_table",
    "write_counts",
]
