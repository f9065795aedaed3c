"""The text that comes with the package: whole, in order, cut where a reader would cut it."""

import re
from pathlib import Path

import pytest

from odeco.datasets import Passages, state_of_the_union, union

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def passages() -> Passages:
    return state_of_the_union()


def test_no_word_is_lost_between_passages(passages: Passages) -> None:
    whole = " ".join(text for *_, text in union._addresses())
    assert " ".join(passages.documents) == whole


def test_the_lists_are_parallel_and_in_the_order_of_time(passages: Passages) -> None:
    lists = [passages.documents, passages.years, passages.presidents, passages.parties]
    assert {len(items) for items in lists} == {len(passages)}
    assert passages.years == sorted(passages.years)
    assert (passages.years[0], passages.years[-1]) == (1790, 2021)
    spoken = dict(zip(passages.years, passages.presidents, strict=True))
    assert (spoken[1790], spoken[1863], spoken[2010]) == ("George Washington", "Abraham Lincoln", "Barack Obama")


def test_passages_are_whole_sentences_of_the_length_asked_for() -> None:
    short = state_of_the_union(passage_length=300)
    too_long = [text for text in short.documents if len(text) > 300]
    assert all(len(re.split(r"[.!?] [A-Z0-9]", text)) == 1 for text in too_long)  # one sentence alone
    assert sum(text.rstrip('"”)').endswith((".", "!", "?")) for text in short.documents) > 0.98 * len(short)


@pytest.mark.parametrize("length", [0, -5, 1.5, "long", True, None])
def test_a_length_that_is_none_is_refused(length: object) -> None:
    with pytest.raises(ValueError, match="passage_length"):
        state_of_the_union(passage_length=length)  # type: ignore[arg-type]


def test_the_text_is_small_enough_to_carry() -> None:
    """That it is in the wheel is tested where wheels are built, tests/contracts/test_wheel.py."""
    assert (ROOT / "src" / "odeco" / "datasets" / union.FILE).stat().st_size < 3_000_000
