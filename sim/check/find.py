"""Finding the plug-ins of a module: by functions of fixed names, and by classes that say how.

A kind that `sim` does not know is found by a class that names the module of its checks in
``checked_by``, as `policies.Policy` does: that module has ``subjects(module)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

from sim.base.errors import InputError
from sim.base.plugins import import_user_module
from sim.check import generators, metrics, readers, transforms
from sim.check.subject import Options, Subject

FINDERS = (readers, generators, transforms, metrics)
"""Modules with ``subjects(module, options)``, one for each group of kinds."""
KINDS = (
    "a class registered with @policies.register, read(path), synthesize(jobs, seed), "
    "METRICS and compute(run, bounds), evaluate(run, workload, cluster, policy, seed), or a "
    "function of the module's name (a transform)"
)
MODULES_LOADED = ()
"""Packages whose modules are imported by name here: none, as a class of the user's names it."""


def subjects(name: str, options: Options) -> list[Subject]:
    """Import a user's module; return all plug-ins that it has.

    Raises
    ------
    InputError
        If the module can't be imported, or has none.
    """
    module = import_user_module("plug-in", name)
    plug_ins = [subject for finder in FINDERS for subject in finder.subjects(module, options)]
    for checks in sorted(set(_named_checks(module))):
        plug_ins += importlib.import_module(checks).subjects(module, options)
    if not plug_ins:
        raise InputError(f"module {name!r} has nothing to check; a plug-in is {KINDS}")
    return plug_ins


def _named_checks(module: ModuleType) -> Iterator[str]:
    """Yield the modules of checks that the classes defined in a module name."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            checks = getattr(value, "checked_by", None)
            if isinstance(checks, str):
                yield checks
