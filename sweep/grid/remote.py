"""Traces in an object store: fetched once, then read like any file.

A trace at ``s3://bucket/...`` (or ``gs://``, ``abfs://``, ``hdfs://``: the schemes of `pyarrow.fs`)
is copied by the driver to ``<results>/cache/traces/<digest>``. The digest is of the address and of
each file's size, modification time and, where the store has one, entity tag: while these stay the
same, nothing is fetched.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sweep.grid.config_tree import canonical

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
MAX_FILES = 10_000
_WAY_OUT = (
    "check the address, the credentials (in the environment, as for other tools of the store) "
    "and the network, or copy the trace to this machine and give trace.path=FILE"
)


def is_remote(path: Any) -> bool:
    """Tell whether a path is an address in an object store."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


def local_path(path: str) -> Path:
    """Convert a path or a ``file://`` address into a path of this machine."""
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    return Path(path).expanduser()


def with_address(error: InputError, uri: str, copy: Path) -> InputError:
    """Replace the path of the copy in an error by the trace's address."""
    if error.file is None or not Path(error.file).is_relative_to(copy):
        return error
    below = Path(error.file).relative_to(copy).as_posix()
    where = mask(uri if below == "." else f"{uri.rstrip('/')}/{below}")
    return InputError(error.message, file=where, line=error.line, rule=error.rule)


def check(
    uri: str,
    option: str = "trace.path",
    names: str = "file or folder",
    local: str = "a file's name",
    below: str = "PATH",
) -> None:
    """Refuse an address that can't be valid, without contacting its store."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"{option}={mask(uri)}: unknown scheme {parts.scheme!r}; valid: {local}, "
            f"file://, {', '.join(f'{scheme}://' for scheme in SCHEMES)}",
            rule="unknown scheme",
        )
    if not parts.netloc or not parts.path.strip("/"):
        raise InputError(
            f"{option}={mask(uri)} names no {names}: it must be {parts.scheme}://BUCKET/{below}",
            rule="missing path",
        )


def download(uri: str, folder: Path) -> Path:
    """Copy a file, or all files of a folder, unless they are here already; return the copy."""
    check(uri)
    try:
        system, root, infos = _listing(uri)
        entries = [
            [name, info.size, info.mtime_ns, _tag(system, info)] for name, info in infos.items()
        ]
        identity = canonical([mask(uri), entries])
        target = folder / hashlib.sha256(identity.encode()).hexdigest()
        for name, info in infos.items():
            copy = target / name
            if ".." in copy.parts or not copy.is_relative_to(target):
                raise InputError(f"trace.path={mask(uri)}: {name!r} is not a valid file name here")
            if not (copy.is_file() and copy.stat().st_size == info.size):
                with system.open_input_stream(info.path) as stream, files.atomic_write(copy) as out:
                    shutil.copyfileobj(stream, out, 2**20)
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        reason = mask(summary_line(error))
        raise InputError(
            f"trace.path={mask(uri)} can't be fetched: {reason}; {_WAY_OUT}", rule="fetching"
        ) from None
    return target / next(iter(infos)) if root in {info.path for info in infos.values()} else target


def _listing(uri: str) -> tuple[Any, str, dict[str, Any]]:
    """List the files at an address by their names below it, sorted."""
    from pyarrow import fs  # the clients of all stores: slow to load

    system, root = fs.FileSystem.from_uri(uri)
    root = root.rstrip("/")
    (info,) = system.get_file_info([root])
    if info.type == fs.FileType.NotFound:
        raise InputError(
            f"trace.path={mask(uri)}: no such file or folder; {_WAY_OUT}",
            rule="missing file",
        )
    if info.type == fs.FileType.File:
        return system, root, {info.base_name: info}
    inside = system.get_file_info(fs.FileSelector(root, recursive=True))
    entries = {
        entry.path[len(root) + 1 :]: entry for entry in inside if entry.type == fs.FileType.File
    }
    if not 0 < len(entries) <= MAX_FILES:
        raise InputError(
            f"trace.path={mask(uri)} has {len(entries)} files; a trace has 1 to {MAX_FILES}",
            rule="missing file",
        )
    return system, root, dict(sorted(entries.items()))


def _tag(system: Any, info: Any) -> str:
    """Return the entity tag of a file's content, empty if its store has none."""
    with system.open_input_file(info.path) as file:
        metadata = file.metadata() or {}
    return str({key.lower(): value for key, value in metadata.items()}.get("etag", ""))
