"""Digest of sources: a module, all modules that it imports, transitively, and their data files.

An import counts wherever it stands, and a name of a lazy package as the module where it is found.
What is found by name counts as imported by who finds it: ``policies.build("fifo")`` means the
module of that policy, and a name that only the run knows means every module that could be meant.
Which these are is declared by the modules that find them (`sim.base.sources.meaning`). Comments and
docstrings mean nothing, and neither does it matter where the project lies.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sim.base.sources import meaning, modules
from sim.base.sources.meaning import FOUND, LOADED, REGISTERED, Meaning
from sim.base.sources.modules import Module

Table = dict[str, str]
"""Digests by module, and by file of data."""


class _Ask(NamedTuple):
    """A dotted name that is asked for: imported, or used by the code of a module."""

    name: str
    by: str | None = None  # None: only imported
    text: str | None = None  # what it is called with first


@cache
def digest(module: str) -> str:
    """Digest of a module and of all that it imports, but for packages on the way: 64 digits.

    These run when it is imported, and nothing of them is in what it computes.

    Raises
    ------
    ModuleNotFoundError
        If it has no file, or belongs to an installed library: no change in it would be seen.
    """
    table = closure([module], packages=False)
    if module not in table:
        raise ModuleNotFoundError(f"the sources of {module} are not found")
    return digest_table(table)


def digest_table(table: Mapping[str, str]) -> str:
    """Digest of a table, 64 digits."""
    lines = (f"{name}\0{table[name]}\0" for name in sorted(table))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def closure(roots: Iterable[str], dispatcher: str | None = None, packages: bool = True) -> Table:
    """Digest the modules reached from `roots`, and the data that their packages carry.

    Parameters
    ----------
    roots : iterable of str
        Full names of modules.
    told : str, optional
        The module that hands registries names which it was told: what they mean is among `roots`.
    packages : bool
        Whether a module means the packages that are imported before it, too.
    """
    _keep_up()
    waiting = [_Ask(root) for root in roots]
    seen, table = set(waiting), Table()
    while waiting:
        for ask in _answer(waiting.pop(), table, dispatcher, packages):
            if ask not in seen:
                seen.add(ask)
                waiting.append(ask)
    return table


def _answer(ask: _Ask, table: Table, told: str | None, packages: bool) -> Iterator[_Ask]:
    """Enter the modules on the way of a dotted name; give what they and the name ask for."""
    way, rest = _split(ask.name)
    if not way:
        return
    module = way[-1]
    for entered in way if packages else (module,):
        if entered.name not in table:
            digests, asks = _entered(entered)
            table.update(digests)
            yield from asks
    means = module_meaning(module)
    if not rest:
        if ask.by is not None:  # whoever has the module may do anything with it
            names = (*means.binds, *means.finders)
            yield from (ask._replace(name=f"{module.name}.{name}", text=None) for name in names)
    elif rest[0] in means.binds:  # handed on from elsewhere
        for home in means.binds[rest[0]]:
            yield ask._replace(name=".".join((home, *rest[1:])))
    elif rest[0] in means.finders and (ask.text is not None or ask.by not in (None, told)):
        yield from (_Ask(name) for name in registry_modules(module.name, ask.text))


@cache
def _entered(module: Module) -> tuple[Table, tuple[_Ask, ...]]:
    """Digest a module and the data it carries, and find what its code asks for."""
    means = module_meaning(module)
    digests = {module.name: means.digest}
    for file in modules.data_of(module):
        place = file.relative_to(module.file.parent).as_posix()
        digests[f"{module.name}/{place}"] = _digest(file)
    asks = [_Ask(name) for name in means.imports]
    asks += [_Ask(name, module.name, text) for name, text in means.uses]
    loaded = {*means.declares.get(LOADED, ())}
    if means.by_name:  # and does not say of which packages
        loaded = {module.name.partition(".")[0], *modules.WITH_NUMBERS}
    asks += [_Ask(name) for package in loaded for name in modules.below(package)]
    return digests, tuple(ask for ask in asks if modules.is_own(ask.name))


@cache
def registry_modules(registry: str, name: str | None) -> set[str]:
    """Name the modules that a registry finds by a name: all that there are if that tells none."""
    module = modules.find(registry)
    if module is None:
        return set()
    means = module_meaning(module)
    found, registered = means.declares.get(FOUND, []), means.declares.get(REGISTERED, [])
    every = {one for package in (*found, *registered) for one in modules.below(package)}
    if name is None:
        return every.union(*means.binds.values())
    called = {f"{package}.{name}" for package in found} & every
    registering = {one for one in every if registered and _registers(one, name)}
    return called | registering | {*means.binds.get(name, ())} or {
        name,
        *registry_modules(registry, None),
    }


def _registers(name: str, text: str) -> bool:
    """Tell whether a module calls something named ``register`` with a text first."""
    module = modules.find(name)
    uses = [] if module is None else module_meaning(module).uses
    return any(used.endswith(".register") and first == text for used, first in uses)


@cache
def module_meaning(module: Module) -> Meaning:
    """Return what the text of a module means, as it was when it was first asked for."""
    return meaning.load_meaning(module, modules.read(module.file))


@cache
def _digest(file: Path) -> str:
    return hashlib.sha256(modules.read(file)).hexdigest()


@cache
def _split(name: str) -> tuple[tuple[Module, ...], tuple[str, ...]]:
    """Split a dotted name into the modules on its way, from its package in, and the rest."""
    parts = name.split(".")
    way = [modules.find(".".join(parts[:at])) for at in range(1, len(parts) + 1)]
    there = tuple(module for module in way if module is not None)
    depth = there[-1].name.count(".") + 1 if there else 0
    return there, tuple(parts[depth:])


@cache
def _search_path() -> list[str]:
    """Folders in which modules were looked for when this was first asked."""
    return [*sys.path]


def _keep_up() -> None:
    """Look for modules again where the search path has changed: a user's may only be there now.

    What was read is not read again: that is what this process runs.
    """
    if _search_path() != sys.path:
        _search_again()


def _search_again() -> None:
    for remembered in (_search_path, registry_modules, _entered, _split, *modules.REMEMBERED):
        remembered.cache_clear()


def clear_caches() -> None:
    """Forget what was read, too; not which digests the kernels of this process have."""
    _search_again()
    module_meaning.cache_clear()
    _digest.cache_clear()
