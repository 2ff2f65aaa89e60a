"""The sweep's own sources as one archive, for nodes that have another version or none."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sim.base.sources import modules

_OF_A_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_SENT_WITH = "sent_with"
"""Entry with the digest of the workers' environment."""


def travels_already() -> bool:
    """Tell whether this driver is a submitted job whose code goes along with it."""
    try:
        job = json.loads(os.environ.get(_OF_A_JOB, "{}"))
    except ValueError:
        return False
    return "working_dir" in (job.get("runtime_env") or {})


def pack(archive: Path, own: Iterable[str], environment: Mapping[str, str]) -> None:
    """Write the project's packages, and the modules in `own` that are the user's.

    The same sources and environment of workers give the same bytes, so that a cluster is sent them
    once. With another environment the archive is another: a node unpacks an archive once for each
    environment that asks for it at the same time (Ray 2.60), deletes what it has unpacked before,
    and, if the second fails, takes the archive for unpacked from then on.
    """
    with zipfile.ZipFile(archive, "w", compresslevel=1) as out:
        for name, file in sorted({**dict(_project()), **dict(_of_user(own))}.items()):
            _write(out, name, file.read_bytes())
        text = json.dumps(dict(environment), sort_keys=True)
        _write(out, _SENT_WITH, hashlib.sha256(text.encode()).hexdigest().encode())


def _write(out: zipfile.ZipFile, name: str, content: bytes) -> None:
    out.writestr(zipfile.ZipInfo(name, _EARLIEST), content, zipfile.ZIP_DEFLATED)


def _project() -> Iterator[tuple[str, Path]]:
    for top in modules.PROJECT:
        found = modules.find(top)
        if found is None:
            continue
        folder = found.file.parent
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(folder.parent).as_posix(), file


def _of_user(own: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Give the files of modules that are not the project's, in place of their names."""
    for name in own:
        found = modules.find(name)
        if found is not None and name.partition(".")[0] not in modules.PROJECT:
            below = "/__init__.py" if found.is_package else ".py"
            yield name.replace(".", "/") + below, found.file
