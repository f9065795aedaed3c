"""Archives: what is written comes back, and what was not written by us is refused."""

import contextlib
import io
import json
import os
import pickle
import signal
import stat
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from odeco import archive
from odeco.atomic import replacing
from odeco.exceptions import ModelFileError
from tests.command_line import heed_ctrl_c

ARRAYS = {
    "double": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "single": np.float32([[np.nan, np.inf, -0.0]]),
    "whole": np.arange(3, dtype=">i4"),
    "flags": np.array([True, False]),
    "text": np.array(["a", "straße", "😀"]),
    "bytes": np.array([b"ab", b""]),
    "empty": np.empty((0, 3)),
    "one": np.array(5),
    "days": np.array(["2020-01-01"], dtype="M8[D]"),
    "strided": np.arange(20.0)[::2],
}
DOCUMENT = {"a": [1, 2.5, None, True, "ü\ud800"], "b": {"c": -0.0}}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    archive.write(tmp_path / "good", "test", 2, DOCUMENT, ARRAYS)
    return tmp_path / "good"


def test_what_is_written_comes_back(good):
    version, document, arrays = archive.read(good, "test", 3)
    assert (version, document) == (2, DOCUMENT)
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype.newbyteorder("=")
        assert arrays[name].flags.writeable
    assert arrays["fortran"].flags.f_contiguous


def test_any_tool_can_open_it(good):
    with zipfile.ZipFile(good) as file:
        assert file.testzip() is None
        np.testing.assert_array_equal(np.load(io.BytesIO(file.read("arrays/double.npy"))), ARRAYS["double"])
        assert json.loads(file.read("odeco.json"))["kind"] == "test"


@given(
    hnp.arrays(
        hnp.floating_dtypes() | hnp.integer_dtypes() | hnp.unicode_string_dtypes(max_len=4) | hnp.boolean_dtypes(),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
)  # fmt: skip
def test_any_plain_array(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("any") / "a"
    archive.write(path, "test", 1, None, {"x": array})
    found = archive.read(path, "test", 1)[2]["x"]
    assert found.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
    assert (found.shape, found.dtype) == (array.shape, array.dtype.newbyteorder("="))


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/b", "", "a\\b", ".hidden", "x" * 200])
def test_names_of_arrays(name, tmp_path):
    with pytest.raises(ValueError, match="array names"):
        archive.write(tmp_path / "a", "test", 1, None, {name: np.zeros(1)})
    assert not list(tmp_path.iterdir())


def test_objects_are_not_written(tmp_path):
    for array in (np.array([object()]), np.array([(1, 2.0)], dtype="i4,f8")):
        with pytest.raises(ValueError, match="only numbers"):
            archive.write(tmp_path / "a", "test", 1, None, {"x": array})
    assert not list(tmp_path.iterdir())


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def rewrite(path: Path, parts: dict[str, bytes], **options) -> Path:
    """A zip of these members, as another program would write it."""
    target = path.with_name("bad")
    with zipfile.ZipFile(target, "w", **options) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return target


def refuse(path: Path, match: str, newest: int = 2) -> None:
    before = sorted(os.listdir(path.parent))
    with pytest.raises(ModelFileError, match=match):
        archive.read(path, "test", newest)
    assert sorted(os.listdir(path.parent)) == before


def header_changed(path: Path, change) -> Path:
    parts = members(path)
    header = json.loads(parts["odeco.json"])
    change(header)
    return rewrite(path, {**parts, "odeco.json": json.dumps(header).encode()})


_ONLY_THE_START = b'{"format": "odeco archive", "kind": "test", "version": 1}'


class TestHostile:
    def test_other_files(self, tmp_path):
        for name, content in {
            "empty": b"",
            "text": b"hello",
            "pickle": pickle.dumps(print),
            "npy": b"\x93NUMPY\x01\x00",
        }.items():
            (tmp_path / name).write_bytes(content)
            refuse(tmp_path / name, "not an odeco file")
        np.savez(tmp_path / "other.npz", x=np.zeros(2))
        refuse(tmp_path / "other.npz", "a zip of something else")

    def test_other_kind(self, good):
        with pytest.raises(ModelFileError, match="holds 'test', not 'model'"):
            archive.read(good, "model", 2)

    def test_newer_version_says_upgrade(self, good):
        refuse(good, "newer odeco.*Upgrade", newest=1)
        # ... whatever else is new in it
        refuse(header_changed(good, lambda h: h.update(version=9, arrays="elsewhere")), "newer odeco")

    @pytest.mark.parametrize("version", [0, -1, None, "1", 1.5, True])
    def test_versions_that_are_none(self, good, version):
        refuse(header_changed(good, lambda h: h.update(version=version)), "its version is")

    @pytest.mark.parametrize(
        "name", ["../../evil.npy", "/tmp/evil.npy", "C:\\evil", "arrays/evil.npy", "arrays/../x.npy"]
    )
    def test_members_that_do_not_belong(self, good, name):
        refuse(rewrite(good, {**members(good), name: b"x"}), "does not belong")

    def test_declared_names_that_lead_elsewhere(self, good):
        def change(header):
            header["arrays"]["../../evil"] = header["arrays"]["double"]

        refuse(header_changed(good, change), "would not write")

    def test_symbolic_links(self, good):
        parts = members(good)
        target = good.with_name("bad")
        with zipfile.ZipFile(target, "w") as file:
            for name, content in parts.items():
                file.writestr(name, content)
            link = zipfile.ZipInfo("arrays/link.npy")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(link, "/etc/passwd")
        refuse(target, "does not belong")

    def test_members_twice(self, good):
        target = rewrite(good, members(good))
        with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(target, "a") as file:
            file.writestr("odeco.json", b"{}")
        refuse(target, "twice")

    def test_compressed_members(self, good):
        parts = {**members(good), "arrays/double.npy": b"\0" * 10_000_000}
        refuse(rewrite(good, parts, compression=zipfile.ZIP_DEFLATED), "is compressed")

    def test_encrypted_members(self, good):
        content = bytearray(good.read_bytes())
        for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(signature) + offset] |= 1
        good.write_bytes(content)
        refuse(good, "encrypted")

    def test_sizes_that_the_file_does_not_have(self, good):
        content = bytearray(good.read_bytes())
        at = content.index(b"PK\x01\x02")
        content[at + 20 : at + 28] = struct.pack("<LL", 0xFFFFFF00, 0xFFFFFF00)
        good.write_bytes(content)
        refuse(good, "claim more")

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ([2**40], "is not <f8"),
            ([3, 2], "is not <f8"),
            ([-1], "has the shape"),
            ([6.0], "has the shape"),
            ("6", "has the shape"),
            ([1] * 40, "has the shape"),
        ],
    )
    def test_shapes_that_disagree(self, good, shape, message):
        refuse(header_changed(good, lambda h: h["arrays"]["double"].update(shape=shape)), message)

    def test_a_huge_shape_that_both_headers_claim(self, good):
        parts = members(good)
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**40,)})
        header = json.loads(parts["odeco.json"])
        header["arrays"]["double"]["shape"] = [2**40]
        parts |= {"odeco.json": json.dumps(header).encode(), "arrays/double.npy": buffer.getvalue() + bytes(48)}
        refuse(rewrite(good, parts), "does not fit")

    @pytest.mark.parametrize("dtype", ["|O", "O", "<f16", ">f8", "<f8,<f8", "|V8", "<i9", "", "<x8", "<U9999999999"])
    def test_dtypes_that_are_not_plain(self, good, dtype):
        refuse(header_changed(good, lambda h: h["arrays"]["double"].update(dtype=dtype)), "double|damaged")

    def test_pickled_objects_are_never_opened(self, good, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "executed"),))

        buffer = io.BytesIO()
        np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
        parts = {**members(good), "arrays/double.npy": buffer.getvalue()}
        refuse(rewrite(good, parts), "is not <f8")

        def change(header):
            header["arrays"]["double"].update(dtype="|O", shape=[1])

        refuse(header_changed(rewrite(good, parts), change), "does not read")
        assert not (tmp_path / "executed").exists()

    def test_other_values_under_a_true_crc(self, good):
        parts = members(good)
        content = parts["arrays/double.npy"]
        parts["arrays/double.npy"] = content[:-1] + bytes([content[-1] ^ 1])
        refuse(rewrite(good, parts), "SHA-256")

    def test_bytes_behind_an_array(self, good):
        parts = members(good)
        parts["arrays/double.npy"] += b"more"
        refuse(rewrite(good, parts), "more bytes")

    def test_missing_members(self, good):
        parts = members(good)
        del parts["arrays/double.npy"]
        refuse(rewrite(good, parts), "is missing")

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", _ONLY_THE_START, b"[" * 100_000])
    def test_documents_that_are_none(self, good, text):
        refuse(rewrite(good, {**members(good), "odeco.json": text}), "damaged|not an odeco file")

    def test_limits(self, good):
        for limits in (archive.Limits(arrays=2), archive.Limits(document_bytes=10)):
            with pytest.raises(ModelFileError, match="allowed"):
                archive.read(good, "test", 2, limits=limits)

    def test_every_truncation(self, good):
        content = good.read_bytes()
        for length in range(0, len(content), 7):
            good.write_bytes(content[:length])
            with pytest.raises(ModelFileError):
                archive.read(good, "test", 2)

    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_flipped_bytes_are_found_or_do_not_matter(self, good, data):
        content = bytearray(good.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        damaged = good.with_name("damaged")
        damaged.write_bytes(content)
        try:
            _, document, arrays = archive.read(damaged, "test", 2)
        except ModelFileError:
            return
        assert document == DOCUMENT
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)

    @settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_pieces_moved_about(self, good, data):
        content = good.read_bytes()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), min_size=3, max_size=3)))
        a, b, c = cuts
        pieces = data.draw(st.permutations([content[:a], content[a:b], content[b:c], content[c:]]))
        damaged = good.with_name("damaged")
        damaged.write_bytes(b"".join(pieces))
        with contextlib.suppress(ModelFileError):
            assert archive.read(damaged, "test", 2)[1] == DOCUMENT


class TestAtomic:
    def test_an_error_leaves_the_old_file_and_nothing_else(self, good, monkeypatch):
        before = good.read_bytes()

        def fail(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(archive.npy, "write_array", fail)
        with pytest.raises(OSError, match="No space left on device.*good"):
            archive.write(good, "test", 1, None, {"x": np.zeros(3)})
        assert good.read_bytes() == before
        assert os.listdir(good.parent) == ["good"]

    def test_documents_that_json_cannot_hold(self, good):
        before = good.read_bytes()
        with pytest.raises(TypeError):
            archive.write(good, "test", 1, {"x": object()}, {})
        with pytest.raises(ValueError):
            archive.write(good, "test", 1, float("nan"), {})
        assert (good.read_bytes(), os.listdir(good.parent)) == (before, ["good"])

    @pytest.mark.skipif(not Path("/dev/full").exists() or os.name != "posix", reason="needs a file limit")
    def test_a_full_disk(self, good):
        """A limit on the size of files stands for the disk: the write fails in the middle."""
        before = good.read_bytes()
        program = (
            "import resource, signal, sys, numpy as np; from odeco import archive\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))\n"
            "archive.write(sys.argv[1], 'test', 1, None, {'x': np.zeros(100_000)})"
        )
        done = subprocess.run([sys.executable, "-c", program, good], capture_output=True, text=True, check=False)
        assert "File too large" in done.stderr
        assert str(good) in done.stderr.splitlines()[-1]
        assert (good.read_bytes(), os.listdir(good.parent)) == (before, ["good"])

    @pytest.mark.skipif(
        not hasattr(os, "O_TMPFILE"), reason="a killed process can clean up only where files need no name"
    )
    @pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
    def test_killed_in_the_middle(self, good, how):
        before = good.read_bytes()
        program = (
            "import sys, time; from odeco.atomic import replacing\n"
            "with replacing(sys.argv[1]) as file:\n"
            "    file.write(b'half'); file.flush(); print('writing', flush=True); time.sleep(60)"
        )
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "preexec_fn": heed_ctrl_c}
        with subprocess.Popen([sys.executable, "-c", program, good], **pipes) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"writing\n"
            process.send_signal(getattr(signal, how))
            assert process.wait(30) != 0
        assert (good.read_bytes(), os.listdir(good.parent)) == (before, ["good"])

    def test_without_files_that_have_no_name(self, good, monkeypatch):
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        with pytest.raises(KeyError), replacing(good) as file:
            file.write(b"half")
            raise KeyError
        assert os.listdir(good.parent) == ["good"]
        with replacing(good) as file:
            file.write(b"new")
        assert (good.read_bytes(), os.listdir(good.parent)) == (b"new", ["good"])

    def test_permissions_are_those_of_any_file(self, tmp_path):
        (tmp_path / "plain").write_bytes(b"")
        archive.write(tmp_path / "a", "test", 1, None, {})
        assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
        (tmp_path / "a").chmod(0o640)
        archive.write(tmp_path / "a", "test", 1, None, {})
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, good):
        link = good.with_name("link")
        link.symlink_to(good)
        archive.write(link, "test", 1, "new", {})
        assert link.is_symlink()
        assert archive.read(good, "test", 1)[1] == "new"

    def test_folders_are_not_replaced(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            archive.write(tmp_path, "test", 1, None, {})
        with pytest.raises(FileNotFoundError, match="nowhere/a"):
            archive.write(tmp_path / "nowhere" / "a", "test", 1, None, {})
