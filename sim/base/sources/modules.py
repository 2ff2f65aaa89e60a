"""Where the sources of a module lie, and the data beside them; nothing is imported to know it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MODULES_FOUND = ()
"""None is imported: they are looked for."""

PROJECT = ("sim", "policies", "sweep")
"""Packages that are the project's own; of others only what is no installed library counts."""

WITH_NUMBERS = ("sim", "policies")
"""Those of them that numbers come from, and from files that lie beside their code."""

_PAGES = (".j2", ".html", ".css", ".js")
"""Files that only pages for people are made of."""

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Module:
    """A module that is the project's or the user's: its full name, and its file."""

    name: str
    file: Path

    @property
    def is_package(self) -> bool:
        """Whether other modules can lie below it."""
        return self.file.name == "__init__.py"

    @property
    def package(self) -> str:
        """What its relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read(file: Path) -> bytes:
    """Content of a file of sources."""
    return file.read_bytes()


@cache
def find(name: str) -> Module | None:
    """Find a module of the project or of the user by its full name; None for anything else."""
    top, *below = name.split(".")
    for place in _places(top):
        folder = place.joinpath(*below)
        for file in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if file.is_file():
                return Module(name, file)
    return None


def is_own(name: str) -> bool:
    """Tell whether a dotted name starts with a module of the project or of the user."""
    return bool(_places(name.partition(".")[0]))


@cache
def below(name: str) -> tuple[str, ...]:
    """Name a module, and all modules below it; of a lone module all that lie beside it."""
    top, *inner = name.split(".")
    names = []
    for place in _places(top):
        folder = place.joinpath(*inner)
        if not folder.is_dir():
            names += [name, *sorted(file.stem for file in folder.parent.glob("*.py"))]
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            names.append(".".join((name, *(part for part in parts if part != "__init__"))))
    return tuple(names)


def data_of(module: Module) -> Iterator[Path]:
    """Find the data that a package of the project carries: all its files but code and pages."""
    if module.is_package and module.name.partition(".")[0] in WITH_NUMBERS:
        yield from _data_in(module.file.parent)


def _data_in(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__pycache__")):
            continue
        if entry.is_dir():
            if not (entry / "__init__.py").exists():  # else it answers for itself
                yield from _data_in(entry)
        elif entry.suffix not in (".py", ".pyc", ".typed", *_PAGES):
            yield entry


@cache
def _places(top: str) -> tuple[Path, ...]:
    """Name the paths, without suffix, where a top-level module or package may lie."""
    if top in sys.stdlib_module_names:
        return ()
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    found = [Path(place) for place in spec.submodule_search_locations or ()]
    if not found and spec.origin is not None:
        found = [Path(spec.origin).with_suffix("")]
    if top not in PROJECT:
        found = [place for place in found if not {*_INSTALLED} & {*place.parts}]
    return tuple(place.resolve() for place in found)


REMEMBERED = (find, below, _places)
"""What is found once; it stands as long as `sys.path` does."""
