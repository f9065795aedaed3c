"""A real browser: Chromium where it is installed, driven by playwright; without either the tests skip and say so."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from odeco.report import write_report
from tests.docs_scripts import load
from tests.fitted_models import fitted_model


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    pictures = load("pictures")
    found = pictures.find_chromium()
    if found is None:
        pytest.skip("Chromium is not installed (on Debian: apt install chromium): the report is not tried in a browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=pictures.ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """An open report, and all that went wrong in it."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def clean(self) -> bool:
        """Whether there was no message of the console, no error and no request but for the file itself."""
        return self.messages == [] and len(self.requests) == 1 and self.requests[0].startswith("file://")


@pytest.fixture(scope="session")
def report_of(tmp_path_factory) -> Any:
    """The file of a model's report, written once."""
    folder = tmp_path_factory.mktemp("reports")

    def write(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            model, inputs = fitted_model(name)
            write_report(model, path, **inputs, fitted={"command": f"odeco fit {name}"})
        return path

    return write


@pytest.fixture
def visit(browser, report_of) -> Iterator[Any]:
    """Open the report of a model: ``visit("lda", width=390, dark=True)``."""
    contexts = []

    def open_report(report: str | Path, *, width: int = 1280, dark: bool = False, script: bool = True) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 844 if width < 500 else 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        visited = Visit(page)
        page.on("console", lambda message: visited.messages.append(message.text))
        page.on("pageerror", lambda error: visited.messages.append(str(error)))
        page.on("request", lambda request: visited.requests.append(request.url))
        path = report if isinstance(report, Path) else report_of(report)
        page.goto(path.as_uri())
        return visited

    yield open_report
    for context in contexts:
        context.close()
