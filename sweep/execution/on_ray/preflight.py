"""Node preflight: Python, package and source versions, disk space.

`check_node` runs on nodes that may not have the project: its code is sent by value, uses the
standard library, and imports the rest only if it exists.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("llvmlite", "networkx", "numba", "numpy", "pandas", "pyarrow", "ray", "scipy")
"""Packages that the numbers of cells depend on."""
RUN_TASKS = (
    "sweep.execution.task",
    "sweep.execution.watch",
    "sweep.execution.working_folder",
    "sweep.store.cell",
)
"""Further modules of the platform that run on a node."""
PROBE_MIB = 16
MAX_NAMED = 3

_Named = tuple[str, str | None]
"""A policy or an evaluator: its name, and the module if it is the user's own."""

Environment = dict[str, Any]
"""The driver's ``python``, ``packages`` and ``python_path``; ``cells``, modules of ``traces``,
``table`` of digests."""


def driver_environment(
    cells: Iterable[Any], python_path: Sequence[str], trace_modules: Sequence[str] = ()
) -> Environment:
    """Describe the environment that `cells` (their specs) have on this machine.

    `trace_modules` are the user's own that read or draw the cells' traces. The caller adds
    ``sent`` if the sources were sent to the node, and ``again`` on a second check.
    """
    names = (
        (configured.get("name"), configured.get("module"))
        for spec in cells
        for configured in (spec.policy, spec.evaluator)
    )
    distinct = sorted(set(zip(names, names, strict=True)), key=str)
    return {
        "python": _python_version(),
        "packages": {name: installed_version(name) for name in PACKAGES},
        "python_path": list(python_path),
        "cells": distinct,
        "traces": [*trace_modules],
        "table": _module_digests(distinct, trace_modules),
    }


def check_node(expected: Environment) -> list[str]:
    """Return the faults of this node, each with a way out; empty if there are none."""
    if (python := _python_version()) != expected["python"]:
        way_out = "start Ray there with that version"
        return [f"it runs Python {python}, the sweep {expected['python']}: {way_out}"]
    faults = [*_check_packages(expected["packages"]), *_check_sources(expected)]
    return faults or _check_disk()


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _check_packages(packages: Mapping[str, str | None]) -> list[str]:
    installed = {name: installed_version(name) for name in packages}
    differences = [
        f"{name} {installed[name] or 'is missing'} ({version or 'none'} here)"
        for name, version in packages.items()
        if installed[name] != version and version is not None
    ]
    way_out = "install the packages of requirements.lock there"
    return [f"{_shortened(differences)}: {way_out}"] if differences else []


def _check_sources(expected: Environment) -> list[str]:
    sys.path.extend(folder for folder in expected["python_path"] if folder not in sys.path)
    way_out = _SENT if expected.get("sent") else _SEND
    try:
        _leave_deleted_folder()
        if expected.get("again"):
            _forget()
        table = _module_digests(expected["cells"], expected.get("traces", ()))
    except ImportError as error:
        return [f"the project is not installed ({error}): {way_out}"]
    except Exception as error:
        return [f"its sources can't be read ({type(error).__name__}: {error}): {way_out}"]
    driver_table = expected["table"]
    differences = sorted(
        name for name in {*driver_table, *table} if driver_table.get(name) != table.get(name)
    )
    return [f"other versions of {_shortened(differences)}: {way_out}"] if differences else []


_SENT = "the sent code did not arrive whole; make room on its disk, and restart Ray there"
_SEND = "launcher.send_code=true sends the sweep's code, or install the same version there"


def _leave_deleted_folder() -> None:
    """Leave the working folder if it was deleted."""
    with contextlib.suppress(ImportError):  # `_module_digests` reports it
        # on a node, as in `_module_digests`
        from sweep.execution.working_folder import leave_if_gone

        leave_if_gone()


def _forget() -> None:
    """Clear the cached digests, so that files are read again."""
    # on a node, as in `_module_digests`
    from sweep.store import sources

    sources.forget()


def _named(configured: Mapping[str, Any]) -> _Named:
    return configured["name"], configured.get("module")


def _module_digests(
    cells: Iterable[tuple[_Named, _Named]], trace_modules: Iterable[str] = ()
) -> dict[str, str]:
    """Digests of all modules that these cells come from, and of the modules that run them."""
    # on a node the project may be missing, which `check_node` reports
    import policies
    import policies.registry
    from sim.base.sources import closure, module_meaning, modules
    from sweep.store import sources

    runners = {name: modules.find(name) for name in RUN_TASKS}
    table = {name: module_meaning(module).digest for name, module in runners.items() if module}
    table.update(closure(trace_modules))
    for (policy, policy_module), (evaluator, evaluator_module) in cells:
        if policy_module is not None:
            policies.registry.load(policy_module)
        policy_config = {"name": policy, "module": policy_module}
        table.update(
            sources.cell_table(policy_config, {"name": evaluator, "module": evaluator_module})
        )
    return table


def _check_disk() -> list[str]:
    """Write a test file where compiled kernels are cached; return the fault if it fails."""
    # on a node, in its own folder
    from sim.base.kernel_cache import cache_dir

    folder: Path | str = "the folder of compiled kernels"
    try:
        folder = cache_dir()
        probe = folder / f"room-{platform.node()}-{os.getpid()}"
        try:
            probe.write_bytes(bytes(PROBE_MIB << 20))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        return [f"kernels can't be cached in {folder} ({reason}): make room, or make it writable"]
    return []


def _shortened(names: Sequence[str]) -> str:
    rest = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    return ", ".join([*names[:MAX_NAMED], *rest])
