"""What goes wrong at a terminal: one clear line on stderr, an exit code for scripts, no half-written file."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.command_line import call, heed_ctrl_c, run, write_rows, written


def check_fault(done: object, *said: str, code: int = 1) -> None:
    assert done.returncode == code, done.stderr  # type: ignore[attr-defined]
    lines = done.stderr.splitlines()  # type: ignore[attr-defined]
    assert lines[-1].startswith("odeco: error: ")
    assert all(line.startswith(("odeco: read ", "odeco: warning: ")) for line in lines[:-1])
    assert "Traceback" not in done.stderr  # type: ignore[attr-defined]
    for words in said:
        assert words in lines[-1]


def _missing(folder: Path) -> Path:
    return folder / "absent.csv"


def _binary(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_bytes(bytes(range(256)) * 20)
    return path


def _wrong_encoding(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_bytes("a,b\n1,2\nnaïve,3\n".encode("latin-1"))
    return path


def _ragged(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text("a,b\n1,2\n3\n4,5,6\n")
    return path


def _empty(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text("")
    return path


def _header_only(folder: Path) -> Path:
    return write_rows(folder / "data.csv", ["a", "b"], [])


def _mixed_types(folder: Path) -> Path:
    return write_rows(folder / "data.csv", ["a", "b"], [[i, i / 3 if i != 70 else "n/a?"] for i in range(100)])


def _missing_value(folder: Path) -> Path:
    return write_rows(folder / "data.csv", ["a", "b"], [[i, i / 3 if i != 70 else ""] for i in range(100)])


def _folder(folder: Path) -> Path:
    path = folder / "data"
    path.mkdir()
    return path


def _damaged(folder: Path) -> Path:
    path = folder / "data.npy"
    np.save(path, np.eye(50))
    path.write_bytes(path.read_bytes()[:1000])
    return path


BAD_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (_missing, "no such file"),
    "binary": (_binary, "binary"),
    "wrong encoding": (_wrong_encoding, "utf-8"),
    "ragged": (_ragged, "line"),
    "empty": (_empty, "empty"),
    "header only": (_header_only, "row"),
    "mixed types": (_mixed_types, "b"),
    "missing value": (_missing_value, "row 71 has no number in the column 'b'"),
    "folder": (_folder, "folder"),
    "damaged": (_damaged, "data.npy"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_a_bad_file_costs_one_line(tmp_path: Path, fault: str) -> None:
    write, said = BAD_FILES[fault]
    path, out = write(tmp_path), tmp_path / "model.odeco"
    done = (run if fault == "missing" else call)("fit", "gaussian-mixture", path, "-k", "2", "--out", out)
    check_fault(done, str(path), said)
    assert not out.exists()


@pytest.mark.parametrize("fault", ["missing", "binary", "wrong encoding", "empty"])
def test_bad_text_costs_one_line(tmp_path: Path, fault: str) -> None:
    path = BAD_FILES[fault][0](tmp_path)
    text = path.with_suffix(".txt")
    if path.exists():
        path.rename(text)
    check_fault(call("fit", "lda", text, "-k", "2", "--out", tmp_path / "model.odeco"), str(text))
    assert not (tmp_path / "model.odeco").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine can reach; pytest's own are closed to others."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_a_folder_that_may_not_be_read(open_folder: Path) -> None:
    closed, out = open_folder / "closed", open_folder / "model.odeco"
    closed.mkdir()
    (closed / "a.txt").write_text("some words\n")
    arguments = ("fit", "lda", closed, "-k", "1", "--out", out)
    call(*arguments)  # everything is imported: an ordinary user may not be able to read the library's own files
    out.unlink(missing_ok=True)
    closed.chmod(0)
    root = os.geteuid() == 0  # to whom nothing is closed
    if root:
        os.seteuid(65534)
    try:
        done = call(*arguments)
    finally:
        if root:
            os.seteuid(0)
        closed.chmod(0o755)
    check_fault(done, str(closed), "permission denied")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gaussian-mixture", "FILE", "-k", "2", "--columns", "a,z"], "'z'"),
        (["gaussian-mixture", "FILE", "-k", "500", "--columns", "a,b"], "-k 500 is more than the 200 rows"),
        (["gaussian-hmm", "FILE", "-k", "500", "--columns", "a,b"], "-k 500 is more than the 200 steps"),
        (["gaussian-mixture", "FILE", "-k", "2"], "--columns a,b,c"),  # text among the numbers
        (["lda", "FILE", "-k", "2", "--column", "z"], "'z'"),
        (["lda", "FILE", "-k", "2", "--column", "a"], "text"),
        (["multiview", "FILE", "-k", "2", "--view", "a", "--view", "b"], "three"),
        (["poisson-hmm", "FILE", "-k", "2", "--columns", "a"], "counts"),
        (["gaussian-mixture", "FILE", "-k", "2", "--format", "parquet"], "groups.csv"),
    ],
)
def test_data_that_do_not_fit_the_model(tmp_path: Path, arguments: list[str], said: str) -> None:
    path = written("gaussian-mixture", tmp_path)
    done = call("fit", *[path if each == "FILE" else each for each in arguments], "--out", tmp_path / "model.odeco")
    check_fault(done, said)
    assert not (tmp_path / "model.odeco").exists()


def test_options_of_text_are_not_for_counts(tmp_path: Path) -> None:
    np.save(tmp_path / "counts.npy", np.ones((20, 5), dtype=int))
    done = call("fit", "lda", tmp_path / "counts.npy", "-k", "2", "--max-words", "3", "--out", tmp_path / "m.odeco")
    check_fault(done, "--max-words", "counts")


def test_more_topics_than_words(tmp_path: Path) -> None:
    path = written("lda", tmp_path)
    check_fault(call("fit", "lda", path, "-k", "400", "--out", tmp_path / "m.odeco"), "-k 400")
    assert not (tmp_path / "m.odeco").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "lad", "FILE", "-k", "2", "--out", "OUT"], "lad"),
        (["fit", "lda", "FILE", "--out", "OUT"], "-k"),
        (["fit", "lda", "FILE", "-k", "2"], "--out"),
        (["fit", "lda", "FILE", "-k", "0", "--out", "OUT"], "-k"),
        (["fit", "lda", "FILE", "-k", "2", "--covariance", "full", "--out", "OUT"], "--covariance"),
        (["fit", "gaussian-mixture", "FILE", "-k", "2", "--alpha0", "1", "--out", "OUT"], "--alpha0"),
        (["fit", "gaussian-mixture", "FILE", "-k", "2", "--covariance", "round", "--out", "OUT"], "spherical"),
        (["fit", "lda", "FILE", "-k", "2", "--min-df", "few", "--out", "OUT"], "few"),
        (["fit", "lda", "FILE", "-k", "2", "--refine", "magic", "--out", "OUT"], "cvb0"),
        (["fit", "lda", "FILE", "-k", "2", "--out", "-"], "stdout"),
        (["convert", "FILE", "--as", "table", "--min-df", "2", "--out", "OUT"], "--min-df"),
        (["transform", "FILE"], "INPUT"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_a_misspelt_command_exits_with_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    path, out = written("gaussian-mixture", tmp_path), tmp_path / "out.odeco"
    done = call(*[{"FILE": path, "OUT": out}.get(each, each) for each in arguments])
    check_fault(done, said, "--help", code=2)
    assert not out.exists()


def test_outputs_that_cannot_be_are_known_before_the_work(tmp_path: Path) -> None:
    path = written("lda", tmp_path)
    for out, said in (
        (tmp_path, "folder"),
        (tmp_path / "absent" / "m.odeco", "mkdir"),
        (Path("/dev/full"), "/dev/full"),
        (Path("~nobody-of-that-name/m.odeco"), "mkdir"),
    ):
        done = call("fit", "lda", path, "-k", "2", "--out", out)
        check_fault(done, said)


@pytest.mark.parametrize("command", ["show", "report", "transform"])
def test_what_is_not_a_model(tmp_path: Path, command: str) -> None:
    path, page = written("lda", tmp_path), tmp_path / "page.html"
    more = {"show": [], "report": ["--out", page], "transform": [path, "--out", page]}[command]
    check_fault(call(command, path, *more), str(path))
    check_fault(call(command, tmp_path / "absent.odeco", *more), "absent.odeco")
    assert not page.exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absent"):
        call("fit", "lda", tmp_path / "absent.txt", "-k", "2", "--out", tmp_path / "m.odeco", "--debug")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    out = folder / "model.odeco"
    assert call("fit", "lda", written("lda", folder), "-k", "2", "--out", out).returncode == 0
    return out


def test_no_space_left_for_the_output(model: Path, tmp_path: Path) -> None:
    """A limit on the size of files is a disk that fills up: the old file stays, and nothing new is left."""
    out = tmp_path / "answers.csv"
    assert call("transform", model, model.with_name("documents.txt"), "--out", out).returncode == 0  # all is compiled
    out.write_text("of yesterday")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = run("transform", model, model.with_name("documents.txt"), "--out", out, "-q", preexec_fn=limit)
    check_fault(done, str(out))
    assert out.read_text() == "of yesterday"
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    """``odeco`` between pipes and redirections. Output is buffered, as it is for users: what fails may fail late."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    shell = ["bash", "-o", "pipefail", "-c", command.replace("odeco", f"{sys.executable} -m odeco", 1)]
    return subprocess.run(shell, capture_output=True, text=True, timeout=300, check=False, env=env)


@pytest.mark.parametrize(("place", "said"), [("/dev/full", "no space left"), ("&-", "stdout is closed")])
@pytest.mark.parametrize("command", ["show {0}", "transform {0} {1} -q --out -", "--help"])
def test_what_cannot_be_written_to_stdout_is_one_line(model: Path, command: str, place: str, said: str) -> None:
    if place == "/dev/full" and not Path(place).exists():
        pytest.skip("there is no /dev/full here")
    done = in_shell(f"odeco {command} >{place}".format(model, model.with_name("documents.txt")))
    check_fault(done, said)
    assert done.stderr.count("\n") == 1


def test_closed_streams_that_are_not_needed_are_no_fault(model: Path, tmp_path: Path) -> None:
    documents, out = model.with_name("documents.txt"), tmp_path / "answers.csv"
    done = in_shell(f"odeco transform {model} {documents} --out {out} <&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(out.read_text().splitlines()) == 121


@pytest.mark.parametrize("command", ["show {0} --json | :", "transform {0} {1} -q --out - | head -c 10"])
def test_a_reader_that_has_enough_is_no_fault(model: Path, tmp_path: Path, command: str) -> None:
    """One that leaves before anything is written, and one that leaves before a pipe of 64 KiB is empty."""
    many = tmp_path / "documents.txt"
    many.write_text(model.with_name("documents.txt").read_text() * 50)
    done = in_shell(f"odeco {command}".format(model, many))
    assert (done.returncode, done.stderr, len(done.stdout)) == (0, "", 10 if "head" in command else 0)


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "symbols.npy", rng.integers(200, size=3_000_000))
    out = tmp_path / "model.odeco"
    options = ["-k", "12", "--max-iter", "1000", "--tol", "0", "--out", str(out)]
    command = [sys.executable, "-m", "odeco", "fit", "hmm", str(tmp_path / "symbols.npy"), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("odeco: read ")  # the fit has begun, and would take minutes
        process.send_signal(signal.SIGINT)
        out_text, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out_text == ""
    assert err.splitlines() == ["odeco: error: interrupted; no half-written file is left"]
    assert [path.name for path in tmp_path.iterdir()] == ["symbols.npy"]


def link(folder: Path, path: Path, how: str) -> Path:
    """Another name of a file."""
    other = folder / "other name"
    if how == "symlink":
        other.symlink_to(path)
    elif how == "hard link":
        other.hardlink_to(path)
    return {"same": path, "spelling": path.parent / "." / ".." / path.parent.name / path.name}.get(how, other)


def refused(path: Path, *arguments: object) -> None:
    """The command is an error that names the file, and the file is as it was."""
    before = path.read_bytes()
    check_fault(call(*arguments), "belongs to the input", "would be written over", "--out")
    assert path.read_bytes() == before


@pytest.mark.parametrize("how", ["same", "symlink", "hard link", "spelling"])
def test_an_input_is_not_written_over(tmp_path: Path, model: Path, how: str) -> None:
    text = written("lda", tmp_path)
    out = link(tmp_path, text, how)
    refused(text, "fit", "lda", text, "-k", "2", "--out", out)
    refused(text, "transform", model, text, "--out", out)
    refused(text, "report", model, text, "--out", out)
    refused(text, "convert", text, "--to", "mtx", "--out", out)
    refused(text, "moments", "basis", "lda", text, "-k", "2", "--out", out)


def test_a_model_is_not_written_over_by_what_it_says(tmp_path: Path, model: Path) -> None:
    text = model.with_name("documents.txt")
    for command in (["transform", model, text], ["report", model]):
        refused(model, *command, "--out", model)


def test_moments_are_not_written_over(tmp_path: Path) -> None:
    text, basis, part = written("lda", tmp_path), tmp_path / "basis", tmp_path / "part"
    assert call("moments", "basis", "lda", text, "-k", "2", "--out", basis).returncode == 0
    refused(text, "moments", "compute", basis, text, "--out", text)
    refused(basis, "moments", "compute", basis, text, "--out", basis)
    assert call("moments", "compute", basis, text, "--out", part).returncode == 0
    for command in ("merge", "fit"):
        refused(part, "moments", command, part, part, "--out", part)


def test_the_other_files_of_an_input_are_not_written_over(tmp_path: Path) -> None:
    """Any of several inputs, lists of words that are named or lie beside, files of a folder, the file behind stdin."""
    views = [tmp_path / f"{name}.npy" for name in "abc"]
    for i, view in enumerate(views):
        np.save(view, np.random.default_rng(i).standard_normal((30, 2)))
    refused(views[2], "fit", "multiview", *views, "-k", "2", "--out", views[2])
    stop, counts, words = tmp_path / "stop.txt", tmp_path / "docword.a.txt", tmp_path / "vocab.a.txt"
    stop.write_text("sea\n")
    words.write_text("sea\nsalt\n")
    counts.write_text("2\n2\n3\n1 1 3\n1 2 1\n2 2 2\n")
    text = written("lda", tmp_path)
    refused(stop, "fit", "lda", text, "-k", "2", "--stop-words", stop, "--out", stop)
    refused(words, "fit", "lda", counts, "-k", "2", "--out", words)
    refused(words, "convert", counts, "--vocabulary", words, "--out", words, "--to", "ldac")
    refused(text, "fit", "lda", tmp_path, "-k", "2", "--out", text)
    before = text.read_bytes()
    with text.open() as stdin:
        command = [sys.executable, "-m", "odeco", "fit", "lda", "-", "-k", "2", "--out", str(text)]
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, timeout=300, check=False)
    check_fault(done, "belongs to the input - and would be written over")
    assert text.read_bytes() == before


def test_words_beside_an_output_are_not_replaced_unasked(tmp_path: Path) -> None:
    text, out, words = written("lda", tmp_path), tmp_path / "corpus.ldac", tmp_path / "corpus.vocab.txt"
    words.write_text("my own notes\n")
    check_fault(call("convert", text, "--out", out), str(words), "--replace-vocabulary")
    assert words.read_text() == "my own notes\n"
    assert not out.exists()
    for more in (["--replace-vocabulary"], []):  # and once more: the very same words are no loss
        assert call("convert", text, "--out", out, *more).returncode == 0
        assert "bread\n" in words.read_text()
    refused(words, "convert", words, "--out", out, "--replace-vocabulary")


def test_an_output_without_a_format_is_known_before_the_work(model: Path, tmp_path: Path) -> None:
    done = call("transform", model, model.with_name("documents.txt"), "--out", tmp_path / "answers.xyz")
    check_fault(done, "answers.xyz", "csv")
    assert done.stderr.count("\n") == 1  # nothing was read


@pytest.mark.parametrize("name", ["~nobody-of-that-name/a", "", "absent/../a"])
def test_inputs_that_are_not_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["show", name], ["fit", "lda", name, "-k", "2", "--out", "m.odeco"], ["decompose", name]):
        done = call(*command)
        check_fault(done, code=done.returncode or -1)
        assert "unexpected" not in done.stderr
        assert "Path(" not in done.stderr


def test_the_folder_at_hand_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for i, line in enumerate(written("lda", tmp_path).read_text().splitlines()):
        (tmp_path / f"{i:03}.txt").write_text(line)
    (tmp_path / "documents.txt").unlink()
    assert call("fit", "lda", ".", "-k", "2", "--out", "m.odeco").returncode == 0
    refused(tmp_path / "m.odeco", "fit", "lda", ".", "-k", "2", "--out", "m.odeco")
