"""What the package promises as a whole: it is light to import, layered, typed and of one version."""

import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import odeco

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["rich", "pygments", "markdown_it", "pydantic"]  # what typer loads for pages and values, were it asked to
HEAVY = [
    *PAGES,
    "numba",
    "numpy",
    "odeco.kernels._native",
    "odeco.moments",
    "odeco.sources",
    "odeco.refinement",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "joblib",
    "matplotlib",
    "pandas",
    "pyarrow",
    "jinja2",
    "dask",
    "pyspark",
]
HELP = """
import os, sys
os.environ.update({place})
from odeco.cli import main
sys.argv = ["odeco", *{words}]
try:
    main()
except SystemExit as done:
    assert not done.code
"""


def modules_loaded_by(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after the statement; the statement may print."""
    loaded = "[name for name, module in sys.modules.items() if module is not None]"  # None: kept from being loaded
    code = f"{statement}\nimport json, sys\nprint()\nprint(json.dumps({loaded}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(json.loads(out.splitlines()[-1]))


def typed(*words: str, **place: str) -> str:
    """The statement that is ``odeco words``, in an environment with more in it."""
    return HELP.format(words=list(words), place=place)


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import odeco", [*HEAVY, "typer", "importlib.metadata", "odeco.decomposition", "odeco.tensors"]),
        ("import odeco.cli", HEAVY),
        (typed("--help"), HEAVY),
        (typed("--version"), HEAVY),
        (typed("show", "--help"), HEAVY),
        (typed("fit", "--help"), HEAVY),
        (typed("fit", "gaussian-mixture", "--help"), HEAVY),
        (typed(_ODECO_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="odeco fit lda --"), HEAVY),
        ("import odeco; odeco.decompose; odeco.theory; odeco.simulate; odeco.metrics", ["scipy", "sklearn"]),
    ],
)
def test_import_is_light(statement: str, heavy: list[str]) -> None:
    assert not modules_loaded_by(statement) & set(heavy)


def test_public_names_exist() -> None:
    assert {"decompose", "Decomposition", "simulate", "metrics"} <= set(odeco.__all__)
    missing = [name for name in odeco.__all__ if not hasattr(odeco, name)]
    assert not missing
    assert set(odeco.__all__) <= set(dir(odeco))


@pytest.mark.parametrize("name", ["moments", "reduction"])
def test_the_engine_is_public_and_every_function_of_it_has_an_example(name: str) -> None:
    module = getattr(odeco, name)
    assert sorted(module.__all__) == module.__all__
    functions = [getattr(module, member) for member in module.__all__ if inspect.isfunction(getattr(module, member))]
    assert len(functions) >= 5
    assert [function.__name__ for function in functions if ">>> " not in (function.__doc__ or "")] == []


def test_the_reference_lists_the_engine() -> None:
    for name in ("moments", "reduction"):
        page = (ROOT / "docs" / "api" / f"{name}.md").read_text()
        listed = re.findall(rf"^::: odeco\.{name}\.\w+\.(\w+)$", page, re.MULTILINE)
        assert sorted(listed) == sorted(getattr(odeco, name).__all__)


def test_the_reduction_is_loaded_on_demand() -> None:
    assert "odeco.reduction" not in modules_loaded_by("import odeco")
    assert "odeco.reduction" in modules_loaded_by("import odeco; odeco.decompose_moments")


def test_one_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert declared["dynamic"] == ["version"]  # read from the package itself
    assert odeco.__version__ == importlib.metadata.version("odeco")


def test_dependencies_that_make_installs_are_those_of_the_package_and_of_extras_within_extras() -> None:
    def listed(*extras: str) -> set[str]:
        command = [sys.executable, ROOT / "tools" / "dependencies.py", *extras]
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert listed() == set(declared["dependencies"])
    own = [needed for needed in extras["dev"] if not needed.startswith("odeco[")]
    inner = [needed for name in ("plots", "dask", "spark", "docs") for needed in extras[name]]
    assert listed("dev") == {*declared["dependencies"], *own, *inner}


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
