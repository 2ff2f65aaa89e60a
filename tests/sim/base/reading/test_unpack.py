"""Files are read as they come: compressed, in an archive of one file, or as UTF-16."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest

import sim
from sim.base.reading import open_text, read_text

TEXT = "JobID|Name\n1|Zürich\n" * 5000


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        for name in names:
            members.writestr(name, TEXT)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        gzip.compress(TEXT[:4321].encode()) + gzip.compress(TEXT[4321:].encode()),
        bz2.compress(TEXT.encode()),
        lzma.compress(TEXT.encode()),
        archive("log.txt"),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-be"),
        TEXT.encode("utf-16-le"),
        gzip.compress(TEXT.encode("utf-16")),
    ],
    ids=["plain", "members", "bz2", "xz", "zip", "utf-16", "be", "le", "utf-16.gz"],
)
def test_any_form_gives_the_same_text(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "log"
    file.write_bytes(content)
    assert read_text(file).removeprefix("\ufeff") == TEXT


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, gzip.compress])
def test_a_truncated_file_is_an_error_with_its_line(tmp_path: Path, pack: object) -> None:
    file = tmp_path / "log"
    file.write_bytes(pack(TEXT.encode())[:-20])  # type: ignore[operator]
    with pytest.raises(sim.InputError, match="truncated or damaged") as caught:
        read_text(file)
    assert caught.value.line is not None


def test_an_archive_of_several_files_names_them(tmp_path: Path) -> None:
    file = tmp_path / "log.zip"
    file.write_bytes(archive("a.txt", "b.txt"))
    with pytest.raises(sim.InputError, match=r"2 files \(a.txt, b.txt\); unpack it"):
        open_text(file)
    file.write_bytes(archive("[Content_Types].xml", "xl/workbook.xml"))
    with pytest.raises(sim.InputError, match="a workbook of Excel; save its sheet as CSV"):
        open_text(file)


def test_utf_32_is_named(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(TEXT.encode("utf-32"))
    with pytest.raises(sim.InputError, match="UTF-32"):
        open_text(file)
