"""The State of the Union addresses of the United States' presidents, 1790 to 2021, cut into passages.

Where the texts come from, and that they are in the public domain, says ``README.md`` beside this file.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files

FILE = "state_of_the_union.tsv.xz"  # year, president, party, text: one address per line

# A sentence ends at . ! or ? where a capital, a figure or a quotation mark follows. "Mr. Speaker" is cut in two by this
# rule; its halves nearly always meet again in one passage, and no word is lost where they do not.
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z0-9\"“])")


@dataclass(frozen=True)
class Passages:
    """Passages of the addresses, in the order of time; the four lists are parallel.

    Attributes
    ----------
    documents : list of str
        The passages themselves: whole sentences, nothing left out.
    years, presidents, parties : list
        When, by whom and for which party ("none" for Washington) each was spoken or sent.
    """

    documents: list[str] = field(repr=False)
    years: list[int] = field(repr=False)
    presidents: list[str] = field(repr=False)
    parties: list[str] = field(repr=False)

    def __len__(self) -> int:
        return len(self.documents)


def state_of_the_union(passage_length: int = 1200) -> Passages:
    """All 233 addresses, cut between sentences into passages.

    Parameters
    ----------
    passage_length : int
        Characters that a passage holds at most, unless one sentence alone is longer. A whole address speaks of
        everything; a topic model wants documents about a paragraph long.

    Examples
    --------
    >>> from odeco.datasets import state_of_the_union
    >>> union = state_of_the_union()
    >>> len(union), union.years[0], union.presidents[-1]
    (10089, 1790, 'Joseph R. Biden')
    """
    if isinstance(passage_length, bool) or not isinstance(passage_length, int) or passage_length < 1:
        raise ValueError(f"passage_length must be a whole number of at least 1; found {passage_length!r}.")
    passages = Passages([], [], [], [])
    for year, president, party, text in _addresses():
        for passage in _cut(text, passage_length):
            passages.documents.append(passage)
            passages.years.append(year)
            passages.presidents.append(president)
            passages.parties.append(party)
    return passages


def _addresses() -> Iterator[tuple[int, str, str, str]]:
    for line in lzma.decompress((files("odeco.datasets") / FILE).read_bytes()).decode("utf-8").splitlines():
        year, president, party, text = line.split("\t")
        yield int(year), president, party, text


def _cut(text: str, length: int) -> Iterator[str]:
    """Fill passages with whole sentences up to ``length`` characters."""
    passage = ""
    for sentence in _BETWEEN_SENTENCES.split(text):
        if passage and len(passage) + 1 + len(sentence) > length:
            yield passage
            passage = sentence
        else:
            passage = f"{passage} {sentence}" if passage else sentence
    yield passage
