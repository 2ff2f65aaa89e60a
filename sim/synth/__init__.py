"""Synthetic workloads: one module per published workload's statistics, found by name.

A generator is a module of this package with a function ``synthesize(**options) -> Workload``;
its keyword arguments are the options, so adding one is adding a file.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def names() -> list[str]:
    """Names of every generator, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def options(name: str) -> dict[str, Any]:
    """Return the options of the generator `name` with their defaults.

    Raises
    ------
    InputError
        If there is no such generator, naming the nearest.
    """
    signature = inspect.signature(_function(name))
    return {key: parameter.default for key, parameter in signature.parameters.items()}


def synthesize(name: str, **options: Any) -> Workload:
    """Make a workload out of published statistics.

    Parameters
    ----------
    name : str
        One of `names`, e.g. ``"alibaba2018"``.
    **options
        The generator's own; all of them take ``jobs`` and ``seed``.

    Returns
    -------
    Workload
        The same bytes for the same name, options and version of the generator's tables.

    Raises
    ------
    InputError
        On an unknown name or option (the nearest valid one is named) or a value out of range.
    """
    function = _function(name)
    known = inspect.signature(function).parameters
    for key in options:
        if key not in known:
            raise InputError(unknown(f"option of {name}", key, known), rule="unknown option")
    workload: Workload = function(**options)
    return workload


def _function(name: str) -> Any:
    known = names()
    if name not in known:
        raise InputError(unknown("generator", name, known), rule="unknown generator")
    return importlib.import_module(f"{__name__}.{name}").synthesize
