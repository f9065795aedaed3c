"""Every estimator has a report: complete, in one file, whatever was given to it."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from odeco.report import findings, write_report
from tests.fitted_models import FITTED, fitted_model


class Page(HTMLParser):
    """What a browser would fetch or run, and the elements of a page."""

    fetching = frozenset(
        {"src", "srcset", "href", "xlink:href", "action", "formaction", "data", "poster", "background"}
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.resources: list[str] = []
        self.handlers: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self._inside = tag
        self.resources += [v or "" for k, v in attrs if k in self.fetching and not (v or "").startswith("#")]
        self.resources += [v or "" for k, v in attrs if k == "style" and "url(" in (v or "")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        self.texts.setdefault(self._inside, []).append(data)

    def text(self, tag: str) -> str:
        return "".join(self.texts.get(tag, []))


def assert_self_contained(page: Page) -> None:
    assert page.resources == []
    assert page.handlers == []
    assert not re.search(r"url\(|@import|https?:", page.text("style"))
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(|eval\(|innerHTML", page.text("script"))
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == page.tags["base"] == 0


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("given", ["nothing", "data"])
def test_every_estimator_has_a_report(name, given, tmp_path):
    model, inputs = fitted_model(name)
    path = write_report(model, tmp_path / "report.html", **(inputs if given == "data" else {}))
    html = path.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert_self_contained(Page(html))
    for part in ('id="fit"', 'id="repeat"', "Spectrum", "Convergence", type(model).__name__):
        assert part in html
    for finding in findings(model):
        assert finding.name in html
    assert len(html) < 200_000
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
