"""Archive of the sweep's own sources, for nodes that have another version or none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sim.base import entry_points
from sim.base.sources import modules
from sweep.execution.on_ray.environment import JOB_CONFIG
from sweep.store import zip_files

_ENTRY_POINTS = "sim/base/entry_points.json"
"""Table of plug-ins: a node may have no metadata of the packages (`sim.base.entry_points`)."""
_SENT_WITH = "sent_with"
"""Entry with the digest of the workers' environment."""


def is_sent_by_job() -> bool:
    """Tell whether this driver is a submitted job whose code Ray sends along."""
    try:
        job = json.loads(os.environ.get(JOB_CONFIG, "{}"))
    except ValueError:
        return False
    return "working_dir" in (job.get("runtime_env") or {})


def pack(archive: Path, modules_used: Iterable[str], environment: Mapping[str, str]) -> None:
    """Write the project's packages, and those of the modules that are the user's.

    The same sources and environment of workers give the same bytes, so that a cluster is sent them
    once. Another environment gives another archive, because of a fault of Ray 2.60: a node unpacks
    an archive once for each environment that needs it at the same time, deletes the first copy, and
    if the second fails, takes the archive for unpacked from then on.
    """
    files: dict[str, Path | bytes] = {**dict(_project_files()), **dict(_user_files(modules_used))}
    files[_ENTRY_POINTS] = json.dumps(entry_points.table()).encode()
    text = json.dumps(dict(environment), sort_keys=True)
    files[_SENT_WITH] = hashlib.sha256(text.encode()).hexdigest().encode()
    zip_files.write(archive, files.items(), level=1)


def _project_files() -> Iterator[tuple[str, Path]]:
    for package in modules.PROJECT:
        module = modules.find(package)
        if module is None:
            continue
        folder = module.file.parent
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(folder.parent).as_posix(), file


def _user_files(modules_used: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of modules that are not the project's, with archive names."""
    for name in modules_used:
        module = modules.find(name)
        if module is not None and name.partition(".")[0] not in modules.PROJECT:
            suffix = "/__init__.py" if module.is_package else ".py"
            yield name.replace(".", "/") + suffix, module.file
