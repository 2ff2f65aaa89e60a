"""Facades of packages: names that are imported on their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

MODULES_FOUND = ()
"""Packages whose modules are imported by name here: none, as a facade lists its own."""


def importer(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names are defined in `modules`, by name.

    The table is a literal of the package, so that `sim.base.sources` can read it.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
