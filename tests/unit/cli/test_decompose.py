"""``odeco decompose``: answers on stdout, one readable line on stderr, exit codes that scripts can rely on."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import odeco
from odeco.cli import main


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.fixture
def sample() -> odeco.simulate.OdecoSample:
    return odeco.simulate.odeco_tensor(6, eigenvalues=[3.0, 2.0, 1.0], random_state=0)


@pytest.fixture
def tensor_file(tmp_path: Path, sample: odeco.simulate.OdecoSample) -> Path:
    path = tmp_path / "tensor.npy"
    np.save(path, sample.tensor)
    return path


def test_version_from_a_shell() -> None:
    done = subprocess.run([sys.executable, "-m", "odeco", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"odeco {odeco.__version__}"


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "decompose", "--help")
    assert code == 0
    assert "odeco decompose tensor.npy --rank 3" in out


def test_decompose_prints_the_summary(
    capsys: pytest.CaptureFixture[str], tensor_file: Path, sample: odeco.simulate.OdecoSample
) -> None:
    code, out, err = run(capsys, "decompose", tensor_file, "--rank", 3, "--seed", 0)
    assert (code, err) == (0, "")
    assert out.strip() == str(odeco.decompose(sample.tensor, 3, random_state=0))


def test_decompose_as_json_is_the_whole_result(
    capsys: pytest.CaptureFixture[str], tensor_file: Path, sample: odeco.simulate.OdecoSample
) -> None:
    code, out, _ = run(capsys, "decompose", tensor_file, "--rank", 3, "--seed", 0, "--json")
    answer, expected = json.loads(out), odeco.decompose(sample.tensor, 3, random_state=0)
    assert code == 0
    # JSON keeps every digit of a double, and the same seed gives the same result.
    np.testing.assert_array_equal(answer["eigenvalues"], expected.eigenvalues)
    np.testing.assert_array_equal(answer["eigenvectors"], expected.eigenvectors)
    assert answer["residual"] == expected.residual
    assert answer["status"]["code"] == str(expected.status.code)


def write_text(path: Path) -> None:
    path.write_text("1 2 3\n")


def write_objects(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def write_matrix(path: Path) -> None:
    np.save(path, np.eye(3))


def write_not_a_number(path: Path) -> None:
    np.save(path, np.full((2, 2, 2), np.nan))


@pytest.mark.parametrize("write", [write_text, write_objects, write_matrix, write_not_a_number])
def test_bad_data_is_one_line_and_exit_1(capsys: pytest.CaptureFixture[str], tmp_path: Path, write) -> None:
    write(tmp_path / "bad.npy")
    code, out, err = run(capsys, "decompose", tmp_path / "bad.npy")
    assert (code, out) == (1, "")
    assert err.startswith("odeco: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["decompos"], "decompos"),
        (["decompose"], "TENSOR.npy"),
        (["decompose", "absent.npy"], "absent.npy"),
        (["decompose", "FILE", "--rank", "many"], "--rank"),
        (["decompose", "FILE", "--rank", "0"], "--rank"),
        (["decompose", "FILE", "--seed", "-1"], "--seed"),
        (["decompose", "FILE", "--method", "magic"], "power-stopping"),
        (["decompose", "FILE", "--frobnicate"], "--frobnicate"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], tensor_file: Path, args: list[str], said: str
) -> None:
    code, out, err = run(capsys, *[str(tensor_file) if arg == "FILE" else arg for arg in args])
    assert (code, out) == (2, "")
    assert err.startswith("odeco: error: ")
    assert said in err
    assert err.count("\n") == 1


def test_debug_keeps_the_traceback(tmp_path: Path) -> None:
    write_matrix(tmp_path / "bad.npy")
    with pytest.raises(ValueError):
        main(["decompose", str(tmp_path / "bad.npy"), "--debug"])
