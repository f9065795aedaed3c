"""The command ``odeco``: from a file to a fitted model and a page to look at, without writing Python.

One command per file. What is heavy is imported by the command that needs it: ``odeco --help`` stays quick.
Exit codes: 0 done, 1 the data or the fit is at fault, 2 the command was misspelt, 130 interrupted.
"""

from odeco.cli.app import main

__all__ = ["main"]
