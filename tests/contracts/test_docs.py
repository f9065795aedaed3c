"""The documentation builds without broken links, loads nothing from elsewhere, and says what is stored."""

from __future__ import annotations

import io
import logging
import re
from importlib import import_module

import pytest

from benchmarks.harness import FIGURES, ROOT, read_between
from examples.paper import gallery

# What a browser would fetch without being asked. Plain links to the paper or to peers are fine.
FETCHED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^"']*""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    config = pytest.importorskip("mkdocs.config", reason="mkdocs is not installed: pip install '.[docs]'")
    build = import_module("mkdocs.commands.build").build
    folder = tmp_path_factory.mktemp("site")
    warnings: list[str] = []
    handler = logging.StreamHandler(io.StringIO())
    handler.setLevel(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mkdocs")
    logger.addHandler(handler)
    try:
        build(config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=False))
    finally:
        logger.removeHandler(handler)
    return folder, warnings


@pytest.mark.filterwarnings("ignore")  # of the tools
def test_every_link_and_every_page_is_found(site):
    assert site[1] == []


@pytest.mark.filterwarnings("ignore")
def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site[0].rglob("*.html"))
    assert len(pages) > 20
    found = {page.name: FETCHED.findall(page.read_text()) for page in pages}
    assert {name: fetched for name, fetched in found.items() if fetched} == {}
    styles = [
        path for path in site[0].rglob("*.css") if re.search(r"@import|url\((['\"]?)(https?:)?//", path.read_text())
    ]
    assert styles == []


@pytest.mark.filterwarnings("ignore")
def test_theory_pages_show_the_source(site):
    for page in (site[0] / "theory").glob("*.html"):
        if page.name != "index.html":
            assert "Source code in" in page.read_text(), page.name


def test_the_pattern_finds_what_it_should():
    assert FETCHED.search('<script src="https://unpkg.com/x.js"></script>')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.googleapis.com/css">')
    assert not FETCHED.search('<a href="https://jmlr.org">paper</a> <img src="figures/a.png">')


@pytest.mark.parametrize("name", gallery.NAMES)
def test_the_gallery_is_made_from_the_stored_measurements(name):
    assert read_between(gallery.PAGE, f"figure:{name}") == gallery.section(name, gallery.load(name))
    assert (FIGURES / gallery.file_name(name)).exists()


@pytest.mark.parametrize("name", ["skewness", "quadratic_convergence", "stopping", "repeated_eigenvalues"])
def test_a_figure_can_be_made_anew(name, tmp_path):
    """The quick ones; all are made by `make figures`."""
    module = import_module(f"examples.paper.{name}")
    result = module.measure(quick=True)
    gallery.picture(name, result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "nan" not in module.caption(result)


def test_every_example_is_shown():
    page = (ROOT / "docs" / "examples.md").read_text()
    files = {path.name for path in (ROOT / "examples").glob("*.py")} - {"__init__.py"}
    assert {name for name in files if f"python examples/{name}" not in page} == set()


def test_the_gallery_lists_every_figure_of_the_folder():
    files = {path.stem for path in gallery.FOLDER.glob("*.py")} - {"__init__", "__main__", "gallery"}
    assert files == set(gallery.NAMES)
