from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.store import zip_files

ROOMS = ("sweep", "own")


def zipped(folder: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    file = folder / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "in" / "deep"
    folder.mkdir(parents=True)
    return folder


def test_the_same_content_gives_the_same_bytes(tmp_path: Path, target: Path) -> None:
    (tmp_path / "b").write_bytes(b"b" * 10_000)
    entries = [("sweep/b", tmp_path / "b"), ("own/a.py", b"a = 1\n")]
    first, second = io.BytesIO(), io.BytesIO()
    zip_files.write(first, entries)
    (tmp_path / "b").touch()
    (tmp_path / "b").chmod(0o600)
    zip_files.write(second, reversed(entries))
    assert first.getvalue() == second.getvalue()
    (tmp_path / "a.zip").write_bytes(first.getvalue())
    unpacked = zip_files.unpack(tmp_path / "a.zip", target, ROOMS)
    assert {name: path.read_bytes() for name, path in unpacked.items()} == {
        "own/a.py": b"a = 1\n",
        "sweep/b": b"b" * 10_000,
    }


@pytest.mark.parametrize(
    "name",
    [
        *("../out", "sweep/../../out", "/sweep/out", "sweep/./out", "sweep//out", "other/out"),
        *("sweep/a\\..\\out", "sweep/C:out", "sweep/", "sweep/\x1b[2J", "sweep/" + "a" * 300),
    ],
)
def test_names_that_leave_the_folder(tmp_path: Path, target: Path, name: str) -> None:
    file = zipped(tmp_path, (name, b"out"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is no name of an entry") as refused:
        zip_files.unpack(file, target, ROOMS)
    assert refused.value.file == str(file)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_becomes_a_plain_file(tmp_path: Path, target: Path) -> None:
    link = zipfile.ZipInfo("own/link")
    link.external_attr = 0o120777 << 16
    unpacked = zip_files.unpack(zipped(tmp_path, (link, b"/etc/passwd")), target, ROOMS)
    assert not unpacked["own/link"].is_symlink()
    assert unpacked["own/link"].read_bytes() == b"/etc/passwd"


def test_a_few_bytes_that_stand_for_very_many(tmp_path: Path, target: Path) -> None:
    with pytest.raises(InputError, match="would unpack to 33,554,432 bytes"):
        zip_files.unpack(zipped(tmp_path, ("own/a", bytes(2**25))), target, ROOMS)
    many = [(f"own/{n}", bytes(2**23)) for n in range(9)]
    with pytest.raises(InputError, match="would unpack to 75,497,472 bytes"):
        zip_files.unpack(zipped(tmp_path, *many), target, ROOMS)
    assert not [*target.rglob("*")]


def test_entries_that_overlap_or_lie_about_their_size(tmp_path: Path, target: Path) -> None:
    content = zipped(tmp_path, ("own/a", b"a" * 500)).read_bytes()
    position = content.index(b"PK\x01\x02")
    file = tmp_path / "b.zip"
    for offset, size in ((20, 2**30), (24, 3)):  # compressed and plain size in the directory
        damaged = bytearray(content)
        damaged[position + offset : position + offset + 4] = struct.pack("<I", size)
        file.write_bytes(damaged)
        with pytest.raises(InputError):
            zip_files.unpack(file, target, ROOMS)


def test_a_name_that_is_there_twice(tmp_path: Path, target: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        file = zipped(tmp_path, ("own/a", b"1"), ("own/a", b"2"))
    with pytest.raises(InputError, match="is there twice"):
        zip_files.unpack(file, target, ROOMS)


def test_no_zip_file(tmp_path: Path, target: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x05\x06")
    with pytest.raises(InputError, match="it can't be read"):
        zip_files.unpack(tmp_path / "a.zip", target, ROOMS)
