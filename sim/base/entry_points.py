"""Plug-ins of installed packages: entry points in the groups ``cluster_sweep.<kind>``.

An entry names a module: ``edf = "my_package.edf"`` in the group ``cluster_sweep.policies`` is the
module that registers the policy ``edf``. The systems and questions of this project are entries like
those of any other package: in a checkout `pyproject.toml` lists them, elsewhere the package's
metadata, and code that was sent to another machine brings a table of its own.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import Distribution

KINDS = (
    *("policies", "readers", "generators", "transforms", "evaluators", "metrics"),
    *("strategies", "sections", "studies", "changes", "verbs", "workload_verbs", "options"),
    *("published", "functions"),
)
"""Kinds of plug-ins that packages may install."""
PREFIX = "cluster_sweep."
"""Prefix of the groups of entry points."""
PROJECT = "cluster-sweep"
"""Distribution of this project."""
MODULES_FOUND = ()  # entries are named where a kind is used (`sim.base.sources.meaning`)

_ROOT = Path(__file__).resolve().parents[2]
SENT = Path(__file__).with_name("entry_points.json")
"""Table of code that was sent to another machine, without its metadata."""
_UNUSED: dict[str, bool] = {}
"""A line for each entry that is not used, and True once it was printed."""


class Entry(NamedTuple):
    """An entry: the name of a plug-in, its module, and the package that installed it."""

    name: str
    module: str
    package: str
    version: str

    @property
    def origin(self) -> str:
        """Package and version."""
        return f"{self.package} {self.version}".strip()


def installed(kind: str) -> Mapping[str, Entry]:
    """Return the entries of a kind by name; of two of one name the project's, else the first."""
    return _by_kind().get(kind, {})


def load(kind: str, name: str) -> ModuleType:
    """Import the module of an entry.

    Raises
    ------
    InputError
        If it can't be imported; names the package.
    """
    entry = installed(kind)[name]
    report_unused()
    try:
        return importlib.import_module(entry.module)
    except Exception as error:
        raise InputError(
            f"{kind}: {name!r} of {entry.origin} can't be imported: {type(error).__name__}: "
            f"{error}; mend or remove that package",
            rule="broken plug-in",
        ) from error


def unused() -> list[str]:
    """Return a line for each entry of an unknown kind, or with the name of another of its kind."""
    _by_kind()
    return [*_UNUSED]


def report_unused() -> None:
    """Print the lines of `unused`, each once in a process."""
    for line in unused():
        if not _UNUSED[line]:
            _UNUSED[line] = True
            print(f"warning: {line}", file=sys.stderr, flush=True)


def check_shadowed(kind: str, own: Collection[str]) -> None:
    """Note the entries of a kind that have names of the core's own plug-ins, which are used."""
    for name, entry in installed(kind).items():
        if name in own:
            _note_shadowed(kind, entry, "the core")


def _note_shadowed(kind: str, entry: Entry, used: str) -> None:
    line = f"{kind}: {entry.name!r} of {entry.origin} is not used, but that of {used}"
    _UNUSED.setdefault(line, False)


def top_levels() -> set[str]:
    """Return the top-level packages that have plug-ins."""
    modules = (entry.module for kind in _by_kind().values() for entry in kind.values())
    return {module.partition(".")[0] for module in modules}


def table() -> dict[str, list[list[str]]]:
    """Return all entries by kind as JSON has them, for code that is sent to another machine."""
    return {
        kind: [list(entry) for entry in entries.values()] for kind, entries in _by_kind().items()
    }


@cache
def _by_kind() -> dict[str, dict[str, Entry]]:
    by_kind: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    for kind, entry in _entries():
        if kind not in by_kind:
            hint = f"{did_you_mean(kind, KINDS)}kinds: {', '.join(KINDS)}"
            line = f"unknown group {PREFIX}{kind} of {entry.origin} ({entry.name}); {hint}"
            _UNUSED.setdefault(line, False)
        elif (used := by_kind[kind].setdefault(entry.name, entry)) != entry:
            _note_shadowed(kind, entry, used.origin)
    return by_kind


def _entries() -> Iterator[tuple[str, Entry]]:
    """Yield kinds and entries, the project's first, the others by package and name."""
    if SENT.is_file():
        for kind, rows in json.loads(SENT.read_text(encoding="utf-8")).items():
            yield from ((kind, Entry(*row)) for row in rows)
        return
    own = list(_checkout_entries())
    yield from own
    yield from _package_entries(without=PROJECT if own else "")


def _checkout_entries() -> Iterator[tuple[str, Entry]]:
    """Yield the entries of the checkout's `pyproject.toml`: its metadata may be of an older one."""
    file = _ROOT / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"] if file.is_file() else {}
    if project.get("name") == PROJECT:
        for group, entries in project.get("entry-points", {}).items():
            for name, module in entries.items():
                entry = Entry(name, module, PROJECT, project["version"])
                yield group.removeprefix(PREFIX), entry


def _package_entries(without: str) -> Iterator[tuple[str, Entry]]:
    from importlib.metadata import entry_points  # takes 20 ms

    rows = []
    points = entry_points()
    for group in points.groups:
        for point in points.select(group=group) if group.startswith(PREFIX) else ():
            package, version = _origin(point.dist)
            if package != without:
                entry = Entry(point.name, point.module, package, version)
                rows.append((package != PROJECT, group.removeprefix(PREFIX), entry))
    yield from ((kind, entry) for _, kind, entry in sorted(rows))


@cache
def _origin(distribution: Distribution | None) -> tuple[str, str]:
    """Return name and version of a package; reading its metadata takes 1 ms."""
    if distribution is None:
        return "", ""
    return re.sub(r"[-_.]+", "-", distribution.name).lower(), distribution.version
