"""Runs the examples of README.md, of docs/ and of the docstrings as tests."""

import os

# Before numpy is imported. Two BLAS threads on a busy machine can be ten times slower than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

documents = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser()],
    patterns=["src/**/*.py", "src/odeco/*/*.py"],
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = SybilCollection([documents, docstrings]).pytest()
