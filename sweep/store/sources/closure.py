"""What a module's numbers come from: all that it imports, to the end, and the data beside it.

An import counts wherever it stands. What is found by name counts as imported by who finds it:
``policies.build("fifo")`` means the module of that policy, and a name that only the run knows means
every module that could be meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import policies
from sim.base import plugins
from sim.base.errors import InputError
from sim.base.sources import meaning, modules
from sim.base.sources.meaning import Meaning
from sim.base.sources.modules import Module

Table = dict[str, str]
"""Digests by module, and by file of data."""


class _Ask(NamedTuple):
    """A dotted name that is asked for: imported, or used by the code of a module."""

    name: str
    by: str | None = None  # None: only imported
    text: str | None = None  # what it is called with first


def _listed_or_below(registry: str, name: str) -> Iterable[str]:
    """Name an option's module: that of the registry's table, if it has one, else one below it."""
    module = modules.find(registry)
    homes = {} if module is None else known(module).homes
    return (homes.get(name, f"{registry}.{name}"),)


def _of_policy(registry: str, name: str) -> Iterable[str]:
    """Name the modules of a policy's class and of those that it is made from."""
    try:
        return {cls.__module__ for cls in policies.spec(name).__mro__}
    except InputError:  # not known yet: it may be a module to load, or a policy of one
        return (name, *modules.below(policies.__name__))


KNOBS, MEASURES, GENERATORS, READERS = "sim.knobs", "sim.measures", "sim.synth", "sim.traces"
POLICIES = policies.spec.__module__
LOADS_ALL = ("sim.metrics",)
"""Packages that load all their modules by name when they are imported."""
FINDERS = (plugins.__name__, str(modules.__package__), modules.__name__)
"""What registries find modules with (which, they say), and what looks at sources alone."""

REGISTRIES: dict[str, Callable[[str, str], Iterable[str]]] = {
    **dict.fromkeys((KNOBS, MEASURES, GENERATORS, READERS), _listed_or_below),
    POLICIES: _of_policy,
}
"""Modules whose functions find others by name, and how to tell which ones a name means."""


def option(registry: str, name: str) -> Iterable[str]:
    """Name the modules that a registry finds by a name."""
    return REGISTRIES[registry](registry, name)


def of(roots: Iterable[str], told: Collection[tuple[str, str]] = ()) -> Table:
    """Digest the modules reached from `roots`, and the data that their packages carry.

    `told` are modules, each with a registry that it hands the name that it was told: what that
    means is among the roots.
    """
    waiting = [_Ask(root) for root in roots]
    seen, found = set(waiting), Table()
    while waiting:
        for ask in _answer(waiting.pop(), found, told):
            if ask not in seen:
                seen.add(ask)
                waiting.append(ask)
    return found


def _answer(ask: _Ask, found: Table, told: Collection[tuple[str, str]]) -> Iterator[_Ask]:
    """Enter the modules on the way of a dotted name; give what they and the name ask for."""
    module, rest = _split(ask.name)
    if module is None:
        return
    for package in _on_the_way(module):
        if package.name not in found:
            digests, asks = _entered(package)
            found.update(digests)
            yield from asks
    means = known(module)
    if rest and rest[0] in means.homes and means.is_lazy:
        yield ask._replace(name=".".join((means.homes[rest[0]], *rest)))
    elif ask.by is None:
        return
    elif not rest:  # whoever has the module may do anything with it
        names = (*means.binds, *means.finders, *(means.homes if means.is_lazy else ()))
        yield from (ask._replace(name=f"{module.name}.{name}", text=None) for name in names)
    elif rest[0] in means.binds:  # handed on from elsewhere
        for home in means.binds[rest[0]]:
            yield ask._replace(name=".".join((home, *rest[1:])))
    elif module.name in REGISTRIES and rest[0] in means.finders:
        if ask.text is not None:
            yield from (_Ask(name) for name in option(module.name, ask.text))
        elif (ask.by, module.name) not in told:
            yield from (_Ask(name) for name in modules.below(module.package))


@cache
def _entered(module: Module) -> tuple[Table, tuple[_Ask, ...]]:
    """Digest a module and the data it carries, and find what its code asks for."""
    means = known(module)
    digests = {module.name: means.digest}
    for file in modules.data_of(module):
        place = file.relative_to(module.file.parent).as_posix()
        digests[f"{module.name}/{place}"] = _digest(file)
    asks = [_Ask(name) for name in means.imports]
    asks += [_Ask(name, module.name, text) for name, text in means.uses]
    if module.name in LOADS_ALL:
        asks += [_Ask(name) for name in modules.below(module.name)]
    says_where = module.name in (*REGISTRIES, *FINDERS, *LOADS_ALL) or (
        means.is_lazy and means.homes
    )
    if means.by_name and not says_where:
        for top in _within_reach(module.name.partition(".")[0]):
            asks += [_Ask(name) for name in modules.below(top)]
    return digests, tuple(ask for ask in asks if modules.is_own(ask.name))


@cache
def known(module: Module) -> Meaning:
    """Return what the text of a module means, as it was when it was first asked for."""
    return meaning.known(module, modules.read(module.file))


@cache
def _digest(file: Path) -> str:
    return hashlib.sha256(modules.read(file)).hexdigest()


def search_again() -> None:
    """Forget where modules lie, but not what was read: that is what this process runs."""
    for remembered in (_entered, _split, _on_the_way, *modules.REMEMBERED):
        remembered.cache_clear()


def forget() -> None:
    """Forget what was read, too."""
    search_again()
    known.cache_clear()
    _digest.cache_clear()


@cache
def _split(name: str) -> tuple[Module | None, tuple[str, ...]]:
    """Split a dotted name into the innermost module on its way, and the rest."""
    parts = name.split(".")
    for at in range(len(parts), 0, -1):
        module = modules.find(".".join(parts[:at]))
        if module is not None:
            return module, tuple(parts[at:])
    return None, ()


@cache
def _on_the_way(module: Module) -> tuple[Module, ...]:
    """Name the packages that are imported before a module, and the module."""
    parts = module.name.split(".")
    names = (".".join(parts[:at]) for at in range(1, len(parts) + 1))
    return tuple(found for name in names if (found := modules.find(name)) is not None)


def _within_reach(top: str) -> tuple[str, ...]:
    """Name the top-level packages that one may import from: arrows run one way."""
    if top in modules.PROJECT:
        return modules.PROJECT[: modules.PROJECT.index(top) + 1]
    return (top, "sim", "policies")
