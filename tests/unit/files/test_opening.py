"""Finding, opening and decompressing; every failure is one line that names the file."""

import gzip
import io
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from odeco.exceptions import InputFileError
from odeco.files import opening
from odeco.files.opening import one_line, open_input
from odeco.files.prefetch import prefetched
from tests.file_cases import write


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InputFileError, match=r"none\.csv: no such file\.$"):
        open_input(tmp_path / "none.csv")


def test_an_empty_file_says_so(tmp_path):
    with pytest.raises(InputFileError, match=r"empty\.txt: is empty\.$"):
        open_input(write(tmp_path / "empty.txt", ""))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputFileError, match="is a folder, a file is expected"):
        open_input(tmp_path)


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(InputFileError, match="null"):
        open_input("a\0b")


def test_a_file_or_a_folder_without_permission_says_so():
    """Root may read anything: the test reads as nobody where it runs as root."""
    script = (
        "import os\n"
        "from odeco.files import read_counts\n"
        "os.geteuid() or os.setuid(65534)\n"
        "for name in ('secret.txt', 'folder'):\n"
        "    try:\n        read_counts(name)\n"
        "    except ValueError as error:\n        print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:  # not tmp_path, which is its owner's alone
        folder = Path(name)
        folder.chmod(0o755)
        write(folder / "secret.txt", "a\n").chmod(0)
        (folder / "folder").mkdir(0)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, check=True)
    expected = "permission denied: it cannot be read.\n"
    assert done.stdout == f"secret.txt: {expected}folder: {expected}"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_blocks_of_lines_do_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch, size):
    content = b"one\ntwo two\n\nthree\r\nfour"
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    for path in (write(tmp_path / "a", content), write(tmp_path / "a.gz", gzip.compress(content))):
        blocks = list(open_input(path).line_blocks())
        assert b"".join(block for _, block in blocks) == content
        assert all(block.endswith(b"\n") for _, block in blocks[:-1])
        assert [line for line, _ in blocks] == [
            1 + content[: sum(len(b) for _, b in blocks[:i])].count(b"\n") for i in range(len(blocks))
        ]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_texts_do_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch, size, encoding):
    monkeypatch.setattr(opening, "BLOCK_BYTES", size)
    path = write(tmp_path / "a", "é\r\nüü\n\nlast".encode(encoding))
    blocks = list(open_input(path).text_blocks(encoding))
    assert [text for _, lines in blocks for text in lines] == ["é", "üü", "", "last"]


def test_a_byte_order_mark_is_dropped(tmp_path):
    path = write(tmp_path / "a", b"\xef\xbb\xbfword\n")
    assert list(open_input(path).text_blocks()) == [(1, ["word"])]


def test_a_wrong_encoding_names_the_byte(tmp_path):
    file = open_input(write(tmp_path / "a.txt", "café\n".encode("latin-1")))
    with pytest.raises(InputFileError, match=r"a\.txt: near line 1: byte 0xe9 is not utf-8: give the encoding"):
        list(file.text_blocks())


@pytest.mark.parametrize("encoding", ["klingon", "hex"])
def test_an_unknown_encoding_is_refused(tmp_path, encoding):
    file = open_input(write(tmp_path / "a.txt", "a\n"))
    with pytest.raises(ValueError, match="is not known"):
        list(file.text_blocks(encoding))


def test_a_truncated_gzip_says_so(tmp_path):
    path = write(tmp_path / "a.gz", gzip.compress(os.urandom(5000))[:3000])
    with pytest.raises(InputFileError, match="damaged or cut short"):
        open_input(path).head()


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK_BYTES", 2**10)
    monkeypatch.setenv("ODECO_MAX_LINE_BYTES", str(2**12))
    file = open_input(write(tmp_path / "a.gz", gzip.compress(b"a" * 2**16)))
    for read in (file.line_blocks, file.text_blocks):
        with pytest.raises(InputFileError, match="a line is too long .*, the limit is 4096: set ODECO_MAX_LINE_BYTES"):
            list(read())


def test_stdin_can_be_read_twice(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"one\ntwo\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    file = open_input("-")
    assert file.name == "<stdin>"
    assert [list(file.line_blocks()) for _ in range(2)] == [[(1, b"one\ntwo\n")]] * 2
    path = file.path
    del file
    assert not path.exists()


def test_a_named_pipe_can_be_read_twice(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"one\n",))
    writer.start()
    file = open_input(path)
    writer.join()
    assert [list(file.line_blocks()) for _ in range(2)] == [[(1, b"one\n")]] * 2


def test_messages_are_one_short_line():
    assert one_line("a\n b\0\t c") == "a b? c"
    assert len(one_line("x" * 10_000)) <= 300


def test_prefetching_keeps_the_order_and_the_errors():
    def items():
        yield from range(5)
        raise InputFileError("the end")

    seen = []
    with pytest.raises(InputFileError, match="the end"):
        seen.extend(prefetched(items()))
    found = prefetched(items())
    assert [next(found) for _ in range(5)] == list(range(5))


def test_prefetching_reads_one_ahead_and_stops_when_left():
    read = []

    def items():
        for i in range(100):
            read.append(i)
            yield i

    before = set(threading.enumerate())
    ahead = prefetched(items())
    assert next(ahead) == 0
    ahead.close()
    assert read in ([0, 1], [0])
    assert set(threading.enumerate()) <= before
