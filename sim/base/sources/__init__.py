"""Digest of sources: a module, its transitive imports, and their data files.

An import counts anywhere in a module, also inside a function. A name of a lazy package counts as
the module that defines it. A module found by name counts as an import of the caller:
``policies.build("fifo")`` depends on the module of that policy, and a name known only at run time
depends on every candidate module. The modules that import by name declare their candidates
(`sim.base.sources.meaning`). A kernel that is imported late, for plans in which an attribute is
set, counts where a module sets it. Comments, docstrings and the project's folder don't change a
digest.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sim.base import entry_points
from sim.base.entry_points import Entry
from sim.base.sources import meaning, modules
from sim.base.sources.meaning import ANY, FOUND, INSTALLED, LOADED, REGISTERED, Bound, Meaning
from sim.base.sources.modules import Module

Table = dict[str, str]
"""Digests by module, and by file of data."""


class _Reference(NamedTuple):
    """A dotted name that a module imports or uses."""

    name: str
    module: str | None = None  # the module that uses it; None if it is only imported
    text: str | None = None  # first argument of the call, if a literal string


@cache
def digest(module: str) -> str:
    """Digest a module and its imports, without the enclosing packages: 64 digits.

    The packages' ``__init__`` run when it is imported, but its results don't depend on them.

    Raises
    ------
    ModuleNotFoundError
        If it has no file, or belongs to an installed library: its changes would go unnoticed.
    """
    table = closure([module], packages=False, all_late=True)
    if module not in table:
        raise ModuleNotFoundError(f"the sources of {module} are not found")
    return digest_table(table)


def digest_table(table: Mapping[str, str]) -> str:
    """Digest a table, 64 digits."""
    lines = (f"{name}\0{table[name]}\0" for name in sorted(table))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def closure(
    roots: Iterable[str],
    dispatcher: str | None = None,
    packages: bool = True,
    all_late: bool = False,
) -> Table:
    """Digest the modules reached from `roots`, and the data files of their packages.

    Parameters
    ----------
    roots : iterable of str
        Full names of modules.
    dispatcher : str, optional
        A module that passes configured names on to registries: the modules that they name are among
        `roots`.
    packages : bool
        True if a module depends on the packages that are imported before it, too.
    all_late : bool
        True if all kernels that may be imported late count, whatever attributes are set.
    """
    _refresh()
    queue = [_Reference(root) for root in roots]
    seen, table = set(queue), Table()
    while queue:
        new = {*_visit(queue.pop(), table, dispatcher, packages)}
        if not queue:
            new |= {*_late(table, all_late)}
        queue += new - seen
        seen |= new
    return table


def _late(table: Table, every: bool) -> Iterator[_Reference]:
    """Yield the kernels imported late: `every` one, or those for attributes that modules set."""
    for name in table:
        kernels, by_attribute, _ = _late_parts(name)
        if every:
            yield from map(_Reference, kernels)
        elif by_attribute:
            outside = [other for other in table if _room(other) != _room(name)]
            assigned = {attribute for other in outside for attribute in _late_parts(other)[2]}
            for attribute, homes in by_attribute.items():
                if assigned & {attribute, ANY}:
                    yield from map(_Reference, homes)


def _room(name: str) -> list[str]:
    return name.split(".")[:2]


@cache
def _late_parts(name: str) -> tuple[list[str], Bound, frozenset[str]]:
    """Return the kernels that a module imports late, those that it declares, what it sets.

    Where code of the project computes an attribute's name it is none of a plan's: a test has the
    list.
    """
    module = modules.find(name)
    if module is None:  # data
        return [], {}, frozenset()
    parsed, is_own = module_meaning(module), name.partition(".")[0] in modules.PROJECT
    return parsed.late, parsed.by_attribute, frozenset(parsed.sets) - ({ANY} if is_own else set())


def _visit(
    reference: _Reference, table: Table, dispatcher: str | None, packages: bool
) -> Iterator[_Reference]:
    """Add the modules of a dotted name to the table; yield the references that follow from it."""
    path, rest = _split(reference.name)
    if not path:
        return
    module = path[-1]
    for parent in path if packages else (module,):
        if parent.name not in table:
            digests, references = _digest_module(parent)
            table.update(digests)
            yield from references
    parsed = module_meaning(module)
    if not rest:
        if reference.module is not None:  # code that has a module can use every name of it
            for name in (*parsed.binds, *parsed.finders):
                yield reference._replace(name=f"{module.name}.{name}", text=None)
    elif rest[0] in parsed.binds:  # a name imported from another module
        for home in parsed.binds[rest[0]]:
            yield reference._replace(name=".".join((home, *rest[1:])))
    elif rest[0] in (installed := _installed(parsed)):  # a lazy name of an installed plug-in
        yield _Reference(installed[rest[0]].module)
    elif rest[0] in parsed.finders and (
        reference.text is not None or reference.module not in (None, dispatcher)
    ):
        yield from map(_Reference, registry_modules(module.name, reference.text))


@cache
def _digest_module(module: Module) -> tuple[Table, tuple[_Reference, ...]]:
    """Digest a module and its data files; return the digests and the references of its code."""
    parsed = module_meaning(module)
    digests = {module.name: parsed.digest}
    for file in modules.data_files(module):
        path = file.relative_to(module.file.parent).as_posix()
        digests[f"{module.name}/{path}"] = _digest(file)
    references = [_Reference(name) for name in parsed.imports]
    references += [_Reference(name, module.name, text) for name, text in parsed.uses]
    loaded = {*parsed.declares.get(LOADED, ())}
    if parsed.by_name:  # without a declaration of packages
        loaded = {module.name.partition(".")[0], *modules.WITH_NUMBERS}
    references += [_Reference(name) for package in loaded for name in modules.below(package)]
    if loaded:
        entries = {entry.module for entry in _installed(parsed).values()}
        references += [_Reference(name) for e in entries for name in (e, *modules.below(e))]
    return digests, tuple(item for item in references if modules.is_own(item.name))


@cache
def registry_modules(registry: str, name: str | None) -> set[str]:
    """Return the modules that a registry can import for a name; all candidates if it is unknown."""
    module = modules.find(registry)
    if module is None:
        return set()
    parsed = module_meaning(module)
    found_in, registered_in = parsed.declares.get(FOUND, []), parsed.declares.get(REGISTERED, [])
    packages = (*found_in, *registered_in)
    candidates = {member for package in packages for member in modules.below(package)}
    installed = _installed(parsed)
    if name is None:
        entries = {entry.module for entry in installed.values()}
        return candidates.union(entries, *parsed.binds.values())
    named = {f"{package}.{name}" for package in found_in} & candidates
    if name in installed and not named:
        return {installed[name].module, *parsed.binds.get(name, ())}
    registering = {member for member in candidates if registered_in and _registers(member, name)}
    matches = named | registering | {*parsed.binds.get(name, ())}
    return matches or {name, *registry_modules(registry, None)}


def _installed(parsed: Meaning) -> dict[str, Entry]:
    """Return the entry points that a module imports by name."""
    kinds = parsed.declares.get(INSTALLED, ())
    return {name: entry for kind in kinds for name, entry in entry_points.installed(kind).items()}


def _registers(name: str, text: str) -> bool:
    """Check that a module calls a function ``register`` with `text` as its first argument."""
    module = modules.find(name)
    uses = [] if module is None else module_meaning(module).uses
    return any(used.endswith(".register") and first == text for used, first in uses)


@cache
def module_meaning(module: Module) -> Meaning:
    """Return the meaning of a module, as of its first use in this process."""
    return meaning.load_meaning(module, modules.read(module.file))


@cache
def _digest(file: Path) -> str:
    return hashlib.sha256(modules.read(file)).hexdigest()


@cache
def _split(name: str) -> tuple[tuple[Module, ...], tuple[str, ...]]:
    """Split a dotted name into its modules, outermost package first, and the remaining parts."""
    parts = name.split(".")
    candidates = [modules.find(".".join(parts[:n])) for n in range(1, len(parts) + 1)]
    path = tuple(module for module in candidates if module is not None)
    depth = path[-1].name.count(".") + 1 if path else 0
    return path, tuple(parts[depth:])


@cache
def _search_path() -> list[str]:
    """Return the module search path of the first look-up."""
    return [*sys.path]


def _refresh() -> None:
    """Locate modules again if the search path has changed: it may now contain a user's modules.

    Modules already read are not read again: this process runs the code that was read.
    """
    if _search_path() != sys.path:
        _clear_locations()


def _clear_locations() -> None:
    for function in (
        _search_path,
        registry_modules,
        _digest_module,
        _split,
        _late_parts,
        *modules.CACHED,
    ):
        function.cache_clear()


def clear_caches() -> None:
    """Clear all caches of this package, but not the digests of this process's kernels."""
    _clear_locations()
    module_meaning.cache_clear()
    _digest.cache_clear()
