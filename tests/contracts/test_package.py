"""What the package promises as a whole: it is light to import, layered, typed and of one version."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import odeco

ROOT = Path(__file__).resolve().parents[2]
HEAVY = [
    "numba",
    "odeco.kernels._native",
    "sklearn",
    "matplotlib",
    "pandas",
    "pyarrow",
    "dask",
    "pyspark",
    "typer",
    "rich",
]


def modules_loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(json.loads(out))


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import odeco", HEAVY),
        ("import odeco.cli", [name for name in HEAVY if name not in {"typer", "rich"}]),
    ],
)
def test_import_is_light(statement: str, heavy: list[str]) -> None:
    assert not modules_loaded_by(statement) & set(heavy)


def test_public_names_exist() -> None:
    assert {"decompose", "Decomposition", "simulate", "metrics"} <= set(odeco.__all__)
    missing = [name for name in odeco.__all__ if not hasattr(odeco, name)]
    assert not missing
    assert set(odeco.__all__) <= set(dir(odeco))


def test_one_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert odeco.__version__ == declared == importlib.metadata.version("odeco")


def test_typed() -> None:
    assert (Path(odeco.__file__).parent / "py.typed").exists()


def test_design_document_lists_the_layers_that_are_checked() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    checked = re.findall(r"\w+", " ".join(contract["layers"]))
    table = (ROOT / "docs" / "design.md").read_text().split("| layer |")[1].split("\n\n")[0]
    listed = [name for row in table.splitlines() if row.startswith("| `") for name in layer_names(row)]
    assert ["__main__", *listed] == checked


def layer_names(row: str) -> list[str]:
    return re.findall(r"`(\w+)`", row.split("|")[1])
