"""Writing files such that a kill at any moment leaves the old one or the new one."""

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
_TEMPORARY = re.compile(r"\.tmp-(?P<machine>[0-9a-f]{16})-(?P<pid>\d+)-(?P<start>\d+)-\d+")
OLD_S = 86_400.0
"""From when on a half-written file is nobody's, by the clock of its own file system."""


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a file in the same folder, of a name that no other process takes; it is gone after."""
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
        # writing names no file; what else is written meanwhile names its own
        if error.errno is not None and error.filename in (None, str(name)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            name.unlink()


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that replaces the one at `path` in one step, once it is whole.

    It has a temporary name in the same folder until then, and is gone if writing fails.
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

    The same content gives the same bytes, whatever the order of its keys.
    """
    text = json_text(content)
    write_text(path, text)
    return json.loads(text)


def json_text(content: Any) -> str:
    """Write a content as JSON: the same text whatever the order of its keys."""
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_checked_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file by an object and its checksum, for `read_checked_json`."""
    write_json(path, {**content, _CHECKSUM: _checksum(content)})


def read_checked_json(path: Path) -> dict[str, Any] | None:
    """Return the object that was written; None if the file is missing or now holds another."""
    content = read_json(path)
    if not isinstance(content, dict) or content.pop(_CHECKSUM, None) != _checksum(content):
        return None
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(content).encode()).hexdigest()


def read_json(path: Path) -> Any | None:
    """Content of a JSON file; None if it is missing or broken."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def delete_stale_temporaries(folder: Path) -> None:
    """Delete what processes that are gone left half-written under `folder`.

    Those of this machine and namespace are looked for; of others nothing is known but the age of
    what they left.
    """
    left = [*folder.rglob(".tmp-*")]
    if not left:
        return
    with temporary_file(folder / "now") as (name, _):
        now_s = name.stat().st_mtime
    for path in left:
        match = _TEMPORARY.fullmatch(path.name)
        with contextlib.suppress(OSError):
            gone = match and process.has_ended(
                process.Process(match["machine"], int(match["pid"]), int(match["start"]))
            )
            if gone or (gone is None and now_s - path.stat().st_mtime > OLD_S):
                path.unlink()
