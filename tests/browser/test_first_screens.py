"""What people see first, without scrolling: what it is, why, how to get it, what it looks like. Pictures are kept."""

import contextlib
import io
import os
import re
import struct
from pathlib import Path

import pytest

from tests.docs_scripts import load

pytest.importorskip("markdown", reason="mkdocs is not installed: pip install '.[docs]'")
pictures = load("pictures")
KEPT = [*(f"report-{look}" for look in pictures.LOOKS), "first-screen-readme", "first-screen-docs"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return pictures.documentation(tmp_path_factory.mktemp("site"))


@pytest.fixture
def first_screen(browser, tmp_path):
    """Open a page as a newcomer does; close it after a picture, in ODECO_SCREENSHOTS or for nobody."""
    opened = []

    def show(path, name):
        page = pictures.open_page(browser, path)
        opened.append((page, Path(os.environ.get("ODECO_SCREENSHOTS", tmp_path)) / f"{name}.png"))
        return page

    yield show
    for page, path in opened:
        pictures.keep(page, path)


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


def shown_height(page, picture):
    """Pixels of a loaded picture above the fold."""
    image = page.locator(picture).first
    image.evaluate("image => image.decode()")  # an error where it is not there
    return min(bottom(image), pictures.HEIGHT) - image.bounding_box()["y"]


def test_the_readme_answers_without_scrolling(first_screen, tmp_path):
    page = first_screen(pictures.readme_page(tmp_path), "first-screen-readme")
    assert page.locator("p", has_text="hidden Markov models").first.bounding_box()["y"] < 200  # what it is
    assert bottom(page.locator("p", has_text="times as long").first) < 300  # why
    assert bottom(page.locator("pre", has_text="pip install").first) < 400  # how to get it
    assert bottom(page.locator("pre", has_text="LatentDirichletAllocation(").first) < 600  # how to use it
    assert shown_height(page, "img[src$='report-light.png']") > 250  # what it looks like
    widths = page.evaluate("[...document.querySelectorAll('pre')].slice(0, 3).map(e => e.scrollWidth - e.clientWidth)")
    assert widths == [0, 0, 0]  # nothing to scroll sideways


def test_the_documentation_answers_without_scrolling_and_its_search_works_from_disk(first_screen, home):
    page = first_screen(home, "first-screen-docs")
    assert bottom(page.locator("article p", has_text="hidden Markov models").first) < 300
    assert bottom(page.locator("pre", has_text="pip install").first) < 400
    assert shown_height(page, "img[src$='report-light.png']") > 250
    page.locator("input.md-search__input").click()
    page.keyboard.type("whitening")
    found = page.locator(".md-search-result__item a").first
    found.wait_for()
    assert found.get_attribute("href").endswith(
        ("reduction.html", "reduction.html#whitening")
    )  # where most is said of it


def test_the_readme_prints_what_it_says():
    text = (pictures.ROOT / "README.md").read_text()
    code, said = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    topics = [set(line.split()) for line in printed.getvalue().splitlines()]
    shown = [set(line.split()) for line in said.splitlines() if line != "..."]
    assert (len(topics), len(shown)) == (20, 4)
    # On another processor sums are rounded otherwise: topics and words of nearly equal weight change places.
    assert min(max(len(words & topic) for topic in topics) for words in shown) >= 6, printed.getvalue()


@pytest.mark.parametrize("name", KEPT)
def test_pictures_are_kept_and_of_the_size_that_the_script_takes(name):
    data = (pictures.FIGURES / f"{name}.png").read_bytes()
    sizes = {f"report-{look}": (width, height) for look, (_, width, height) in pictures.LOOKS.items()}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == sizes.get(name, (1280, pictures.HEIGHT))
    assert len(data) > 20_000  # more than an empty page


def test_the_report_of_the_demo_in_every_look(browser, tmp_path):
    taken = pictures.take_reports(browser, Path(os.environ.get("ODECO_SCREENSHOTS", tmp_path)))
    assert [path.stem for path in taken] == [name for name in KEPT if name.startswith("report")]
    assert all(path.stat().st_size > 20_000 for path in taken)
