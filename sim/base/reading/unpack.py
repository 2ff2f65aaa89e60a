"""Streams of plain bytes from compressed, archived or UTF-16 files, detected by their content."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sim.base.errors import InputError

MAGIC: Final = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip",
}  # fmt: skip
"""First bytes of compressed files."""
HEAD_BYTES: Final = 64
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DAMAGED = (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, UnicodeError)


def codec_name(head: bytes) -> str | None:
    """Return the compression of a file by its first bytes; None if it is plain."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def open_bytes(path: str | os.PathLike[str]) -> Any:
    """Open a file for the bytes of its content: unpacked, and UTF-16 as UTF-8.

    Raises
    ------
    InputError
        If an archive has not exactly one file, or the text is UTF-32.
    OSError
        While it is read, where it is truncated or damaged.
    """
    file = Path(path)
    with file.open("rb") as stream:
        codec = codec_name(stream.read(HEAD_BYTES))
    raw = _open(file, codec)
    try:
        head = raw.read(HEAD_BYTES)
    except OSError:  # told where the file is read
        head = b""
    raw.close()
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        text = "the text is UTF-32; save it as UTF-8 (iconv -f UTF-32 -t UTF-8)"
        raise InputError(text, file=path, line=1, rule="not UTF-8")
    encoding = utf_16(head)
    raw = _open(file, codec)
    return raw if encoding is None else _Transcoded(raw, encoding)


def utf_16(head: bytes) -> str | None:
    """Return the byte order of a UTF-16 text by its first bytes; None if it is none.

    Without a byte order mark it is taken for one if every second byte is 0 and no other.
    """
    marked = next((name for mark, name in _UTF_16.items() if head.startswith(mark)), None)
    if marked is not None or len(head) < 8:
        return marked
    even, odd = head[0 : len(head) & ~1 : 2], head[1::2]
    if not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if not any(even) and all(odd) else None


def _open(file: Path, codec: str | None) -> Any:
    if codec is None:
        return pa.OSFile(os.fspath(file))
    if codec == "xz":
        return _Unpacked(lzma.open(file))
    if codec == "zip":
        return _Unpacked(_only_member(file))
    return pa.CompressedInputStream(pa.OSFile(os.fspath(file)), codec)


def _only_member(file: Path) -> Any:
    try:
        archive = zipfile.ZipFile(file)
        members = [member for member in archive.infolist() if not member.is_dir()]
    except zipfile.BadZipFile as error:
        text = f"the archive is damaged ({error}); fetch the file again"
        raise InputError(text, file=file, rule="unreadable") from None
    if any(member.filename.startswith("xl/") for member in members):
        text = "the file is a workbook of Excel; save its sheet as CSV"
        raise InputError(text, file=file, rule="not text")
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5]) or "none"
        raise InputError(
            f"the archive has {len(members)} files ({names}); unpack it, and give the path of one",
            file=file,
            rule="not text",
        )
    try:
        return archive.open(members[0])
    except (NotImplementedError, RuntimeError) as error:  # another compression, or encrypted
        text = f"the archive can't be unpacked ({error}); unpack it first"
        raise InputError(text, file=file, rule="unreadable") from None


class _Unpacked(io.RawIOBase):
    """Stream whose errors are an OSError, as those of Arrow's streams are."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; empty at the end."""
        try:
            content: bytes = self._raw.read(size)
        except _DAMAGED as error:
            raise OSError(f"truncated or damaged: {error}") from error
        return content

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()


class _Transcoded(io.RawIOBase):
    """Stream of a UTF-16 text as UTF-8."""

    def __init__(self, raw: Any, encoding: str) -> None:
        super().__init__()
        self._raw = raw
        self._decode = codecs.getincrementaldecoder(encoding)().decode
        self._rest = b""
        self._is_over = False

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; empty at the end."""
        while not self._is_over and (size < 0 or len(self._rest) < size):
            piece = self._raw.read(max(size, 1 << 16))
            self._is_over = not piece
            try:
                text = self._decode(piece, final=self._is_over)
            except UnicodeError as error:
                raise OSError(f"truncated or damaged: {error}") from error
            self._rest += text.encode(errors="replace")
        end = len(self._rest) if size < 0 else size
        content, self._rest = self._rest[:end], self._rest[end:]
        return content

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()
