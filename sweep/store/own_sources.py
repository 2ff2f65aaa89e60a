"""Sources of a user's own: modules and options that a sweep uses and that are not the project's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim.base import sources as digests
from sim.base.sources import modules
from sweep.grid.options import Options
from sweep.store import sources
from sweep.store.provenance import git_output

OPTION_GROUPS = ("policy", "trace", "cluster", "evaluator", "experiment")
"""Groups whose options determine numbers; a launcher or a tracking server is somebody's own."""

Named = Mapping[str, Any]


class OwnFile(NamedTuple):
    """A file of the user's, by the name that it has in an archive."""

    name: str
    path: Path
    module: str | None = None  # full name of the module; None for an option


def own_files(
    cells: Iterable[tuple[Named, Named]], study: Named | None, options: Options
) -> list[OwnFile]:
    """List the user's files behind a sweep, sorted by name.

    Parameters
    ----------
    cells : iterable of (policy, evaluator)
        As configured. The user's modules that they import, directly or not, are listed.
    study : mapping, optional
        The experiment's.
    options : Options
        All options in the user's own folders are listed: one may build on another.
    """
    tables = [sources.cell_table(policy, evaluator) for policy, evaluator in cells]
    if study is not None and study.get("module") is not None:
        tables.append(digests.closure([study["module"]]))
    names = {name for table in tables for name in table if name.partition(".")[0] not in _PROJECT}
    own = {}
    for module in filter(None, map(modules.find, names)):
        suffix = "/__init__.py" if module.is_package else ".py"
        file = module.name.replace(".", "/") + suffix
        own[file] = OwnFile(file, module.file, module.name)
    for folder, name in zip(options.user_dirs, option_dirs(options), strict=True):
        for group in OPTION_GROUPS:
            for path in (folder / group).rglob("*.yaml"):
                file = f"{name}/{path.relative_to(folder).as_posix()}"
                own.setdefault(file, OwnFile(file, path))
    return [own[name] for name in sorted(own)]


_PROJECT = modules.PROJECT


def option_dirs(options: Options) -> list[str]:
    """Name each of the user's option folders, without the folders that contain it."""
    names: list[str] = []
    for folder in options.user_dirs:
        name = folder.name or "options"
        taken = sum(other.rpartition("-")[0] == name or other == name for other in names)
        names.append(f"{name}-{taken + 1}" if taken else name)
    return names


def records(files: Iterable[OwnFile]) -> list[dict[str, Any]]:
    """Describe files: name, SHA-256, commit of their repository, and whether it has this content.

    ``commit`` is None, and ``dirty`` True, for a file that is not under version control.
    """
    by_folder: dict[Path, list[OwnFile]] = {}
    for file in files:
        by_folder.setdefault(file.path.parent, []).append(file)
    results = {}
    for folder, members in by_folder.items():
        names = [file.path.name for file in members]
        commit = (git_output(folder, "rev-parse", "HEAD") or "").strip() or None
        tracked = _names(folder, "ls-files", names) if commit else set()
        changed = _names(folder, "diff --name-only --relative HEAD", names) if tracked else set()
        for file, name in zip(members, names, strict=True):
            is_clean = name in tracked and name not in changed
            results[file.name] = {
                "file": file.name,
                "sha256": hashlib.sha256(file.path.read_bytes()).hexdigest(),
                "commit": commit if is_clean else None,
                "dirty": not is_clean,
            }
    return [results[name] for name in sorted(results)]


def _names(folder: Path, command: str, names: Sequence[str]) -> set[str]:
    """Return the files of a folder that a git command lists."""
    return {*(git_output(folder, *command.split(), "-z", "--", *names) or "").split("\0")}
