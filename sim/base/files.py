"""Writing files such that a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_HOST = socket.gethostname()
_NUMBERS = itertools.count()
_TEMPORARY = re.compile(r"\.tmp-(?P<host>.+)-(?P<pid>\d+)-\d+")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that replaces the one at `path` in one step, once it is whole.

    It has a temporary name in the same folder until then, and is gone if writing fails.
    """
    temporary = path.with_name(f".tmp-{_HOST}-{os.getpid()}-{next(_NUMBERS)}")
    try:
        file = temporary.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = temporary.open("xb")
    try:
        with file:
            yield file
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:  # writing names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path` in one step."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Replace a UTF-8 text file in one step."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> Any:
    """Replace a JSON file in one step; return the content as it will be read back.

    The same content gives the same bytes, whatever the order of its keys.
    """
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, text + "\n")
    return json.loads(text)


def read_json(path: Path) -> Any | None:
    """Content of a JSON file; None if it is missing or broken."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def sweep_temporaries(folder: Path) -> None:
    """Delete what processes of this machine that are gone left half-written under `folder`."""
    for path in folder.rglob(".tmp-*"):
        match = _TEMPORARY.fullmatch(path.name)
        if match and match["host"] == _HOST and not _is_alive(int(match["pid"])):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
