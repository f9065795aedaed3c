"""Runs the examples of README.md, of docs/ and of the docstrings as tests."""

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
    pattern="src/**/*.py",
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = SybilCollection([documents, docstrings]).pytest()
