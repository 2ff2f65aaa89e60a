"""Plug-ins of a kind: modules with an entry function of a fixed name, found by their names.

Those of the core are the modules of a package; others are entry points (`sim.base.entry_points`).
"""

from __future__ import annotations

import importlib
import importlib.util
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

from sim.base import entry_points
from sim.base.errors import InputError, unknown

MODULES_FOUND = ()
"""Packages whose modules are imported by name here: none, as each user of `Plugins` declares its
own."""


@dataclass(frozen=True)
class Plugins:
    """Plug-ins of a kind: the modules of a package, and those that packages install.

    A new file in the package is a new plug-in. A module whose name begins with an underscore, and a
    module in `helpers`, is shared code and not a plug-in.
    """

    kind: str  # noun for messages: trace, generator, evaluator
    package: str
    entry: str  # "": the function has the plug-in's name
    installed: str  # kind of `sim.base.entry_points`
    helpers: tuple[str, ...] = ()
    arguments: str = "..."  # of the entry function, for messages

    def names(self) -> list[str]:
        """List the names of all plug-ins, sorted."""
        own = self._own()
        entry_points.check_shadowed(self.installed, own)
        return sorted({*own, *entry_points.installed(self.installed)})

    def _own(self) -> list[str]:
        return [name for name in module_names(self.package) if name not in self.helpers]

    def module(self, name: str, own: str | None = None) -> ModuleType:
        """Import the module of a plug-in: `own`, a user's in any folder, or the one of the name.

        Raises
        ------
        InputError
            If the name is unknown (suggests the closest), an installed module is broken, or the
            user's can't be imported or has no entry function.
        """
        if own is not None:
            module = import_user_module(self.kind, own)
            if not callable(getattr(module, self.entry or name, None)):
                function = f"{self.entry or name}({self.arguments})"
                message = f"{module.__file__} has no function {function}"
                raise InputError(f"{message}{same_name_hint(module)}")
            return module
        if name in self._own():
            return importlib.import_module(f"{self.package}.{name}")
        if name in entry_points.installed(self.installed):
            return entry_points.load(self.installed, name)
        raise InputError(unknown(self.kind, name, self.names()), rule=f"unknown {self.kind}")

    def working(self) -> dict[str, ModuleType]:
        """Import all plug-ins; a broken one that a package installed is named, and left out."""
        modules = {}
        for name in self.names():
            try:
                modules[name] = self.module(name)
            except InputError as error:
                print(f"warning: {error}", file=sys.stderr)
        return modules

    def part(self, name: str, part: str) -> ModuleType | None:
        """Import a module of that name inside a plug-in's package; None if it has none."""
        place = f"{self.module(name).__name__}.{part}"
        is_package = hasattr(self.module(name), "__path__")
        has_part = is_package and importlib.util.find_spec(place) is not None
        return importlib.import_module(place) if has_part else None

    def function(self, name: str, own: str | None = None) -> Any:
        """Return the entry function of a plug-in; raise as `module` does."""
        return getattr(self.module(name, own), self.entry or name)


@cache
def module_names(package: str) -> list[str]:
    """List the names of a package's modules without a leading underscore, sorted."""
    path = importlib.import_module(package).__path__
    return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))


def options(function: Any, n_fixed: int = 0) -> dict[str, Any]:
    """Return the options of a plug-in's function: its parameters with their defaults.

    The first `n_fixed` parameters are no options: the caller passes them.
    """
    parameters = list(inspect.signature(function).parameters.values())[n_fixed:]
    return {parameter.name: parameter.default for parameter in parameters}


def check_names(
    kind: str, chosen: Iterable[str], known: Collection[str], rule: str | None = "unknown option"
) -> None:
    """Refuse a name that is not among `known`; suggest the closest.

    Raises
    ------
    InputError
        ``unknown option of trace swf 'qeue'; did you mean 'queue'?``
    """
    for name in chosen:
        if name not in known:
            raise InputError(unknown(kind, name, known), rule=rule)


def import_user_module(kind: str, module: str) -> ModuleType:
    """Import a user's module.

    Raises
    ------
    InputError
        If it can't be found, or has the name of a module of Python's standard library, which would
        be imported instead. An exception inside the module is raised unchanged.
    """
    if module.partition(".")[0] in sys.stdlib_module_names:
        files = [str(file) for file in module_files(module) if not _is_in_stdlib(file)]
        instead = f"not {files[0]}" if files else "not one of your own"
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


def check_single(kind: str, module: str) -> None:
    """Refuse a user's module of which two files differ: the first would count silently."""
    packages = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
    own = [f for f in module_files(module) if not any(f.is_relative_to(p) for p in packages)]
    contents = {file.read_bytes(): file for file in reversed(own)}
    if len(contents) > 1:
        listed = " and ".join(map(str, reversed(contents.values())))
        raise InputError(
            f"{kind} module {module!r} is in two files that differ, {listed}: rename one, or take "
            "its folder off PYTHONPATH",
            rule="ambiguous module",
        )


def module_files(module: str) -> list[Path]:
    """List the files on the module search path that a module name could refer to."""
    parts = module.split(".")
    candidates = []
    for folder in dict.fromkeys(sys.path):
        path = Path(folder or ".").joinpath(*parts)
        candidates += [path.with_name(f"{parts[-1]}.py"), path / "__init__.py"]
    return [file for file in dict.fromkeys(map(Path.absolute, candidates)) if file.is_file()]


def same_name_hint(module: ModuleType) -> str:
    """Return a hint for a message if a later file on the search path has a module's name."""
    imported = Path(module.__file__ or "").absolute().resolve()
    shadowed = [file for file in module_files(module.__name__) if file.resolve() != imported]
    if not shadowed:
        return ""
    return f"; {shadowed[0]} has the same name, and comes later on the search path"


def _is_in_stdlib(file: Path) -> bool:
    folders = (sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))
    return any(
        file.is_relative_to(folder) and not file.is_relative_to(Path(folder) / "site-packages")
        for folder in folders
    )
