"""Plug-ins found by name: a module of a package, each with a function of one name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import sysconfig
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sim.base.errors import InputError, unknown

MODULES_FOUND = ()
"""Packages whose modules are found here: none, as whoever has plug-ins says which ones."""


@dataclass(frozen=True)
class Plugins:
    """The modules of a package that have a function `entry`: adding one is adding a file.

    A module whose name begins with an underscore, and a package in it, are no plug-ins but what
    they share; so are those in `helpers`.
    """

    kind: str  # what one of them is, for messages: trace, generator, evaluator
    package: str
    entry: str
    helpers: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Names of all of them, sorted."""
        return [name for name in module_names(self.package) if name not in self.helpers]

    def module(self, name: str) -> ModuleType:
        """Import the module of one.

        Raises
        ------
        InputError
            If there is none of that name, naming the nearest.
        """
        if name not in self.names():
            raise InputError(unknown(self.kind, name, self.names()), rule=f"unknown {self.kind}")
        return importlib.import_module(f"{self.package}.{name}")

    def function(self, name: str) -> Any:
        """Return the function of one; raise as `module` does."""
        return getattr(self.module(name), self.entry)


@cache
def module_names(package: str) -> list[str]:
    """Names of the modules of a package that no underscore hides, sorted."""
    path = importlib.import_module(package).__path__
    return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))


def options(function: Any, n_fixed: int = 0) -> dict[str, Any]:
    """Return what may be chosen of a plug-in's function: parameters with their defaults.

    The first `n_given` are not chosen: whoever calls it gives them.
    """
    parameters = list(inspect.signature(function).parameters.values())[n_fixed:]
    return {parameter.name: parameter.default for parameter in parameters}


def check_names(
    kind: str, chosen: Iterable[str], known: Collection[str], rule: str | None = "unknown option"
) -> None:
    """Refuse a name that is none of `known`, naming the nearest.

    Raises
    ------
    InputError
        ``unknown option of trace swf 'qeue'; did you mean 'queue'?``
    """
    for name in chosen:
        if name not in known:
            raise InputError(unknown(kind, name, known), rule=rule)


def import_user_module(kind: str, module: str) -> ModuleType:
    """Import a module of somebody's own.

    Raises
    ------
    InputError
        If it can't be found, or is called as one of Python's standard library, which is then the
        one that is imported. What goes wrong inside it is raised as it is.
    """
    if module.partition(".")[0] in sys.stdlib_module_names:
        mine = [str(file) for file in module_files(module) if not _is_pythons(file)]
        instead = f"not {mine[0]}" if mine else "not one of your own"
        raise InputError(
            f"{kind} module {module!r} is that of Python's standard library, {instead}: give yours "
            "another name"
        )
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise InputError(
                f"{kind} module {module!r} can't be imported: {error}; put its folder on PYTHONPATH"
            ) from error
        raise


def module_files(module: str) -> list[Path]:
    """Return every file on the module search path that a module of this name may be."""
    parts = module.split(".")
    found = []
    for folder in dict.fromkeys(sys.path):
        whole = Path(folder or ".").joinpath(*parts)
        found += [whole.with_name(f"{parts[-1]}.py"), whole / "__init__.py"]
    return [file for file in dict.fromkeys(map(Path.absolute, found)) if file.is_file()]


def same_name_hint(module: ModuleType) -> str:
    """Word that another file was meant, perhaps: one of the same name that comes later."""
    mine = Path(module.__file__ or "").absolute()
    others = [file for file in module_files(module.__name__) if not _same(file, mine)]
    return f"; {others[0]} has the same name, and comes later on the search path" if others else ""


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _is_pythons(file: Path) -> bool:
    folders = (sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))
    return any(
        file.is_relative_to(folder) and not file.is_relative_to(Path(folder) / "site-packages")
        for folder in folders
    )
