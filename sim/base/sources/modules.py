"""Source and data files of modules, located without importing them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim.base import entry_points

MODULES_FOUND = ()
"""Packages whose modules are imported by name here: none, as modules are located, not imported."""

PROJECT = ("sim", "policies", "sweep")
"""Packages of the project. Of others those count that have plug-ins, or are not installed."""

WITH_NUMBERS = ("sim", "policies")
"""Packages of the project whose code, and data files beside it, determine results."""

_NO_DATA = (".py", ".pyc", ".nbc", ".typed", ".j2", ".html", ".css", ".js", ".md")
"""Suffixes of code, and of files that only affect how reports look, or that people read."""
OPTIONS = "conf"
"""Folder of a package's options; what a cell takes of them is in its configuration."""

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Module:
    """Module of the project or of the user: its full name and its file."""

    name: str
    file: Path

    @property
    def is_package(self) -> bool:
        """True for a package, which can contain other modules."""
        return self.file.name == "__init__.py"

    @property
    def package(self) -> str:
        """Base of its relative imports."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read(file: Path) -> bytes:
    """Read a source file."""
    return file.read_bytes()


@cache
def find(name: str) -> Module | None:
    """Find a module of the project or of the user by its full name; None for anything else."""
    top, *below = name.split(".")
    for path in _top_paths(top):
        folder = path.joinpath(*below)
        for file in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if file.is_file():
                return Module(name, file)
    return None


def is_own(name: str) -> bool:
    """Check that a dotted name starts with a module of the project or of the user."""
    return bool(_top_paths(name.partition(".")[0]))


@cache
def below(name: str) -> tuple[str, ...]:
    """List a package and all modules below it; for a plain module, the modules beside it too."""
    top, *inner = name.split(".")
    names = []
    for path in _top_paths(top):
        folder = path.joinpath(*inner)
        if not folder.is_dir():
            names += [name, *sorted(file.stem for file in folder.parent.glob("*.py"))]
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            names.append(".".join((name, *(part for part in parts if part != "__init__"))))
    return tuple(names)


def data_files(module: Module) -> Iterator[Path]:
    """List the data files of a package of the project: all but code, compiled or not, and pages."""
    if module.is_package and module.name.partition(".")[0] in WITH_NUMBERS:
        yield from _data_in(module.file.parent)


def _data_in(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__pycache__")):
            continue
        if entry.is_dir():
            is_package = (entry / "__init__.py").exists()  # with data files of its own
            if not is_package and entry.name != OPTIONS:
                yield from _data_in(entry)
        # the table of entry points is on nodes alone, and determines no number
        elif entry.suffix not in _NO_DATA and entry != entry_points.SENT:
            yield entry


@cache
def _top_paths(top: str) -> tuple[Path, ...]:
    """List the paths, without suffix, of a top-level module or package."""
    if top in sys.stdlib_module_names:
        return ()
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    paths = [Path(path) for path in spec.submodule_search_locations or ()]
    if not paths and spec.origin is not None:
        paths = [Path(spec.origin).with_suffix("")]
    if top not in PROJECT and top not in entry_points.top_levels():
        paths = [path for path in paths if not {*_INSTALLED} & {*path.parts}]
    return tuple(path.resolve() for path in paths)


CACHED = (find, below, _top_paths)
"""Functions whose results are cached until `sys.path` changes."""
