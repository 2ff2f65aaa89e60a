"""Atomic file writes: a kill at any moment leaves the old file or the new one."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sim.base import process
from sim.base.interrupt import delete_on_interrupt

_NUMBERS = itertools.count()
_CHECKSUM = "sha256"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TEMPORARY = re.compile(r"\.tmp-(?P<machine>[0-9a-f]{16})-(?P<pid>\d+)-(?P<start>\d+)-\d+")
ABANDONED_S = 86_400.0
"""Age at which a half-written file is abandoned, by the clock of its own file system."""


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a temporary file in the same folder, of a unique name; delete it afterwards."""
    name = path.with_name(f".tmp-{process.current()}-{next(_NUMBERS)}")
    try:
        try:
            file = name.open("xb")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = name.open("xb")
        with file, delete_on_interrupt(str(name)):
            yield name, file
    except OSError as error:
        # an error of writing names no file; other files written meanwhile name their own
        if error.errno is not None and error.filename in (None, str(name)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            name.unlink()


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces the one at `path` in one step, once complete.

    Until then it has a temporary name in the same folder; it is deleted if writing fails.
    """
    with temporary_file(path) as (name, file):
        yield file
        file.close()
        name.replace(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path` in one step."""
    with atomic_write(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Replace a UTF-8 text file in one step."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> Any:
    """Replace a JSON file in one step; return the content as it will be read back.

    The same content gives the same bytes in any order of its keys.
    """
    text = json_text(content)
    write_text(path, text)
    return json.loads(text)


def json_text(content: Any) -> str:
    """Serialize as JSON with sorted keys; half of a surrogate pair, no UTF-8, is escaped."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_checked_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step by an object with its checksum, for `read_checked_json`."""
    write_json(path, {**content, _CHECKSUM: _checksum(content)})


def read_checked_json(path: Path) -> dict[str, Any] | None:
    """Read an object of `write_checked_json`; None if the file is missing or damaged."""
    content = read_json(path)
    if not isinstance(content, dict) or content.pop(_CHECKSUM, None) != _checksum(content):
        return None
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(content).encode()).hexdigest()


def read_json(path: Path) -> Any | None:
    """Read a JSON file; None if it is missing or invalid."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def delete_stale_temporaries(folder: Path) -> None:
    """Delete the half-written files of ended processes under `folder`.

    A process of this machine and namespace can be looked up; a file of any other process is judged
    by its age.
    """
    temporaries = [*folder.rglob(".tmp-*")]
    if not temporaries:
        return
    with temporary_file(folder / "now") as (name, _):
        now_s = name.stat().st_mtime
    for path in temporaries:
        match = _TEMPORARY.fullmatch(path.name)
        with contextlib.suppress(OSError):
            ended = match and process.has_ended(
                process.Process(match["machine"], int(match["pid"]), int(match["start"]))
            )
            if ended or (ended is None and now_s - path.stat().st_mtime > ABANDONED_S):
                path.unlink()
