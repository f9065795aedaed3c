"""Every report in light, dark and on a phone: nothing sticks out, nothing is complained about, nothing is fetched."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from odeco.report import write_report
from tests.docs_scripts import load
from tests.fitted_models import FITTED, fitted_model, made_up_intervals

pictures = load("pictures")

LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}


@pytest.mark.parametrize("name", FITTED)
def test_every_report_opens_cleanly_in_every_look(visit, name, tmp_path):
    kept = os.environ.get("ODECO_SCREENSHOTS")  # a folder, to look at whole pages
    visited, grounds = visit(name), {}
    page = visited.page
    for look, (scheme, width) in LOOKS.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("h1").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{look} scrolls sideways"
        grounds[look] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        picture = pictures.screenshot(page, Path(kept or tmp_path) / f"{name}-{look}.png", whole=bool(kept))
        assert len(picture) > 10_000  # more than an empty page
    assert grounds["dark"] != grounds["light"] == grounds["phone"]
    assert_accessible(page)
    assert visited.clean(), (visited.messages, visited.requests)


@pytest.mark.parametrize("name", FITTED)
def test_intervals_do_not_stick_out(visit, name, tmp_path):
    model, inputs = fitted_model(name)
    path = write_report(model, tmp_path / "sure.html", intervals=made_up_intervals(model), **inputs)
    visited = visit(path, width=380, dark=True)
    assert visited.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visited.page.get_by_text("did not replicate").first.is_visible()
    assert_accessible(visited.page)
    assert visited.clean()


def assert_accessible(page):
    """What can be used has a name, headings skip no level, no name of an element comes twice."""
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, summary, svg[role]")]
        .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length)))
        .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), levels
    identifiers = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(identifiers) == len(set(identifiers))


def test_annotators_can_be_filtered(visit):
    visited = visit("dawid_skene")
    page = visited.page
    assert page.locator(".filtered tbody tr:visible").count() == 7
    page.locator("#filter").fill("3")
    assert page.locator(".filtered tbody tr:visible").count() == 1
    assert page.locator("#found").inner_text() == "1 of 7 annotators"
    assert visited.clean()
