"""The wheel holds what the package reads at run time: templates of the report, the corpus of the demo, types."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_every_file_that_is_not_code(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    (metadata,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
    needs = [line for line in zipfile.ZipFile(wheel).read(metadata).decode().splitlines() if "Requires-Dist" in line]
    assert "Requires-Dist: pyarrow>=15" in needs  # no extra: the plain command reads CSV
    source = ROOT / "src"
    files = [path.relative_to(source) for path in (source / "odeco").rglob("*") if path.is_file()]
    caches = ("__pycache__", ".mypy_cache", ".ruff_cache")
    assert {path.as_posix() for path in files if not set(path.parts) & set(caches)} <= inside
    for name in ("base.html.jinja", "topics.html.jinja", "report.css", "report.js"):
        assert f"odeco/report/templates/{name}" in inside
