"""Zip files: the same content gives the same bytes; a foreign one is unpacked as data."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from sim.base.errors import InputError

Entry = tuple[str, Path | bytes]
"""Name in the zip file, and a file or its content."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
MAX_ENTRIES = 20_000
MAX_DIRECTORY_BYTES = 600 * MAX_ENTRIES
"""An entry takes 46 bytes of the directory, and its name."""
MAX_RATIO, FREE_RATIO_BYTES = 200, 2**24
"""An entry may unpack to so many times its compressed size; below so many bytes to any size."""
_BLOCK_BYTES = 2**20
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_END_BYTES = 2**16 + 22 + 76
"""The end of the directory, with the longest comment, and the parts of ZIP64 before it."""
_PART = re.compile(r"(?!\.{1,2}$)[^\0-\x1f\x7f/\\:]{1,200}")
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)
_OTHERS = (NotImplementedError, RuntimeError, ValueError, OverflowError)
"""Raised for compression methods, encryption and sizes that no file of `write` has."""


def write(target: BinaryIO | Path, entries: Iterable[Entry], level: int = 6) -> None:
    """Write a zip file: entries by name, without times, owners and modes of files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as out:
        for name, content in sorted(entries, key=lambda entry: entry[0]):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = _MODE
            if isinstance(content, bytes):
                out.writestr(info, content)
                continue
            info.file_size = content.stat().st_size
            with content.open("rb") as source, out.open(info, "w") as sink:
                shutil.copyfileobj(source, sink, _BLOCK_BYTES)


def unpack(file: Path, folder: Path, rooms: Iterable[str]) -> dict[str, Path]:
    """Unpack a foreign zip file below an empty folder; return the files by their names.

    Only plain files are made, whatever an entry says that it is. `rooms` are the names at its top.

    Raises
    ------
    InputError
        If it is no zip file, or damaged; if a name leaves the folder or is there twice; if entries
        overlap, or unpack to far more than they take, or to more than the disk has room for.
    """
    tops = {*rooms}
    unpacked: dict[str, Path] = {}
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_sizes(file, infos, folder)
            for info in infos:
                target = _target(file, info.filename, folder, tops)
                if info.filename in unpacked:
                    raise _refused(file, f"{info.filename!r} is there twice")
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as source, target.open("xb") as sink:
                    _copy(source, sink, info.file_size)
                unpacked[info.filename] = target
    except InputError:
        raise
    except (*_UNREADABLE, *_OTHERS) as error:
        raise _refused(file, f"it can't be read: {error}") from error
    return unpacked


def _check_directory(file: Path) -> None:
    """Refuse a directory of entries that takes long to read, before it is read."""
    with file.open("rb") as source:
        source.seek(-min(file.stat().st_size, _END_BYTES), os.SEEK_END)
        end = source.read()
    position = end.rfind(_END)
    if position < 0 or len(end) < position + 22:
        return  # `ZipFile` gives the reason
    (size,) = struct.unpack_from("<I", end, position + 12)
    if end[position - 20 : position - 16] == _LOCATOR64:
        if end[position - 76 : position - 72] != _END64:
            raise _refused(file, "it can't be read: the end of its directory is damaged")
        (size,) = struct.unpack_from("<Q", end, position - 36)
    if size > MAX_DIRECTORY_BYTES:
        raise _refused(
            file,
            f"its directory takes {size:,} bytes, of at most {MAX_DIRECTORY_BYTES:,} for "
            f"{MAX_ENTRIES:,} entries",
        )


def _check_sizes(file: Path, infos: list[zipfile.ZipInfo], folder: Path) -> None:
    if len(infos) > MAX_ENTRIES:
        raise _refused(file, f"it has {len(infos):,} entries, of at most {MAX_ENTRIES:,}")
    packed, size = sum(info.compress_size for info in infos), file.stat().st_size
    if packed > size:
        raise _refused(file, f"its entries take {packed:,} bytes of {size:,}: they overlap")
    for info in infos:
        if info.file_size > max(FREE_RATIO_BYTES, MAX_RATIO * info.compress_size):
            raise _refused(
                file,
                f"{info.filename!r} would unpack to {info.file_size:,} bytes from "
                f"{info.compress_size:,}",
            )
    whole, free = sum(info.file_size for info in infos), shutil.disk_usage(folder).free
    if whole > max(4 * FREE_RATIO_BYTES, MAX_RATIO * size):
        raise _refused(file, f"it would unpack to {whole:,} bytes from {size:,}")
    if whole > free:
        raise _refused(
            file, f"it unpacks to {whole / 1e9:.1f} GB; {free / 1e9:.1f} GB are free in {folder}"
        )


def _target(file: Path, name: str, folder: Path, tops: set[str]) -> Path:
    """Return where an entry goes, which is inside the folder."""
    parts = name.split("/")
    if parts[0] not in tops or not all(_PART.fullmatch(part) for part in parts):
        raise _refused(file, f"{name!r} is no name of an entry of such an archive")
    return folder.joinpath(*parts)


def check_name(file: Path, name: str, subject: str) -> None:
    """Refuse a foreign name that is not one part of a path."""
    if not _PART.fullmatch(name):
        raise _refused(file, f"{name!r} is no name of {subject}")


def _copy(source: object, sink: BinaryIO, size: int) -> None:
    read = source.read  # type: ignore[attr-defined]
    n_bytes = 0
    while block := read(_BLOCK_BYTES):
        n_bytes += len(block)
        if n_bytes > size:
            raise zipfile.BadZipFile("an entry is larger than it says")
        sink.write(block)


def _refused(file: Path, reason: str) -> InputError:
    return InputError(reason, file=file, rule="archive")
