"""The wheel holds what the package reads at run time: compiled loops, templates of the report, a corpus, types."""

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Not optimised: what is inside of a wheel does not depend on it.
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"build-dir": sys.argv[1] + "/build", "cmake.define.ODECO_QUICK": "ON"})
"""


def test_the_wheel_holds_every_file_that_is_not_code(tmp_path):
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed: pip install scikit-build-core")
    pytest.importorskip("nanobind", reason="nanobind is not installed: pip install nanobind")
    subprocess.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT, check=True, capture_output=True)
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
    assert f"odeco/kernels/_native{sysconfig.get_config_var('EXT_SUFFIX')}" in inside
    assert not [name for name in inside if name.endswith((".cpp", ".hpp", "CMakeLists.txt"))]


def test_the_source_distribution_can_be_built_from_and_holds_no_machinery(tmp_path):
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed: pip install scikit-build-core")
    code = BUILD.replace("build_wheel", "build_sdist")
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.split("/", 1)[-1] for name in opened.getnames()}
    assert {
        "CMakeLists.txt",
        "src/native/module.cpp",
        "src/native/kernels.hpp",
        "src/odeco/kernels/_native.pyi",
    } <= inside
    assert not [name for name in inside if name.startswith(".ci") or name.endswith(".so")]
