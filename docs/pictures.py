"""Pictures of what people see first: `python docs/pictures.py` takes them, in a real browser, into docs/figures.

The first screens of the README (as a page of a hosting site shows it) and of the documentation, and the report of the
demo in light, in dark and on a phone. `tests/browser/test_first_screens.py` takes them too, and looks at them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import markdown

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
HEIGHT = 1000  # what people see without scrolling
LOOKS = {"light": ("light", 1280, 600), "dark": ("dark", 1280, 600), "phone": ("light", 390, 844)}
# Nothing of these goes to the network by itself; the sandbox does not work for root in a container.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The column, sizes and spaces that hosting sites give a README.
STYLE = """
body { margin: 0 auto; padding: 32px; max-width: 832px; font: 16px/1.5 sans-serif; color: #1f2328; }
h1, h2 { margin: 24px 0 16px; padding-bottom: .3em; border-bottom: 1px solid #d1d9e0; line-height: 1.25; }
h1 { margin-top: 0; }
p, pre, table, ul { margin: 0 0 16px; }
pre { padding: 16px; background: #f6f8fa; border-radius: 6px; font-size: 85%; line-height: 1.45; overflow: auto; }
code { font-size: 85%; background: #f6f8fa; } pre code { font-size: 100%; }
table { border-collapse: collapse; font-size: 14px; } th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
img { max-width: 100%; }
"""


def find_chromium() -> str | None:
    """The path of a browser that is installed, None where there is none."""
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)


def readme_page(folder: Path) -> Path:
    """README.md as a page of HTML; pictures are taken from where they lie."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "sane_lists"])
    page = folder / "readme.html"
    page.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>odeco</title><base href="{ROOT.as_uri()}/">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>",
        encoding="utf-8",
    )
    return page


def demo_report(folder: Path) -> Path:
    """The page that `odeco demo` writes."""
    command = [sys.executable, "-m", "odeco", "demo", "--quiet", "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "report.html"


def documentation(folder: Path) -> Path:
    """The home page of the documentation, built into a folder."""
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder / "index.html"


def open_page(browser: Any, page: Path, *, width: int = 1280, height: int = HEIGHT, scheme: str = "light") -> Any:
    """A page in a window of this size."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.goto(page.as_uri())
    return opened


def show_topic(report: Any) -> None:
    """Scroll the report to its map, with a topic open that everybody knows."""
    report.locator(".topic-list tr", has_text="gold, currency").first.locator(".summary").click()
    report.evaluate("scrollTo(0, document.querySelector('.map').getBoundingClientRect().top + scrollY - 110)")


def take_reports(browser: Any, folder: Path) -> list[Path]:
    """The report of the demo in every look."""
    with tempfile.TemporaryDirectory() as scratch:
        report = demo_report(Path(scratch))
        pages = {}
        for look, (scheme, width, height) in LOOKS.items():
            pages[look] = open_page(browser, report, width=width, height=height, scheme=scheme)
            show_topic(pages[look])
        return [keep(page, folder / f"report-{look}.png") for look, page in pages.items()]


def take_first_screens(browser: Any, folder: Path) -> list[Path]:
    """README and documentation, which show a picture of the report."""
    with tempfile.TemporaryDirectory() as scratch:
        pages = {"readme": readme_page(Path(scratch)), "docs": documentation(Path(scratch) / "site")}
        return [keep(open_page(browser, page), folder / f"first-screen-{name}.png") for name, page in pages.items()]


def keep(page: Any, path: Path) -> Path:
    """A picture of what the window shows; the page is closed."""
    screenshot(page, path)
    page.context.close()
    return path


def screenshot(page: Any, path: Path, *, whole: bool = False) -> bytes:
    """A picture of a window or of the whole page; a busy browser has none at times, and is asked again."""
    from playwright.sync_api import Error

    for _ in range(2):
        with suppress(Error):
            return bytes(page.screenshot(path=path, full_page=whole))
    return bytes(page.screenshot(path=path, full_page=whole))


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    found = find_chromium()
    if found is None:
        sys.exit("no Chromium is installed (on Debian: apt install chromium).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        for path in [*take_reports(browser, FIGURES), *take_first_screens(browser, FIGURES)]:
            print(path.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
