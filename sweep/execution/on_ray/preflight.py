"""What a node is asked before it is given cells: whether they would come out there as they do here.

`look` runs where the project may not be: it is sent as it stands, knows the standard library, and
finds the rest only if that is there.
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
"""What cells compute with."""
RUN_TASKS = (
    "sweep.execution.task",
    "sweep.execution.watch",
    "sweep.execution.working_folder",
    "sweep.store.cell",
)
"""What else of the platform is at work on a node."""
ROOM_MIB = 16
MOST_NAMED = 3

_Named = tuple[str, str | None]
"""A policy or an evaluator: its name, and the module if it is the user's own."""

Expected = dict[str, Any]
"""What the driver has: ``python``, ``packages``, ``python_path``, ``cells`` and their ``table``."""


def wanted(cells: Iterable[Any], python_path: Sequence[str]) -> Expected:
    """Describe what `cells` (their specs) come from on this machine.

    Whoever asks adds whether that was ``sent``, and whether it is asked ``again``.
    """
    named = (
        (each.get("name"), each.get("module")) for s in cells for each in (s.policy, s.evaluator)
    )
    known = sorted(set(zip(named, named, strict=True)), key=str)
    return {
        "python": _python(),
        "packages": {name: installed_version(name) for name in PACKAGES},
        "python_path": list(python_path),
        "cells": known,
        "table": _table(known),
    }


def look(wanted: Expected) -> list[str]:
    """Return what is wrong with this node, each with the way out; nothing if all is well."""
    if (here := _python()) != wanted["python"]:
        return [f"it runs Python {here}, the sweep {wanted['python']}: start Ray there under that"]
    found = [*_other_packages(wanted["packages"]), *_other_sources(wanted)]
    return found or _without_room()


def installed_version(package: str) -> str | None:
    """Version of an installed package; None if it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _other_packages(packages: Mapping[str, str | None]) -> list[str]:
    there = {name: installed_version(name) for name in packages}
    other = [
        f"{name} {there[name] or 'is missing'} ({version or 'none'} here)"
        for name, version in packages.items()
        if there[name] != version and version is not None
    ]
    way_out = "install the packages of requirements.lock there"
    return [f"{_some(other)}: {way_out}"] if other else []


def _other_sources(wanted: Expected) -> list[str]:
    sys.path.extend(folder for folder in wanted["python_path"] if folder not in sys.path)
    way_out = _SENT if wanted.get("sent") else _SEND
    try:
        _stand_somewhere()
        if wanted.get("again"):
            _forget()
        table = _table(wanted["cells"])
    except ImportError as error:
        return [f"the project is not there ({error}): {way_out}"]
    except Exception as error:
        return [f"its sources can't be read ({type(error).__name__}: {error}): {way_out}"]
    ours = wanted["table"]
    other = sorted(name for name in {*ours, *table} if ours.get(name) != table.get(name))
    return [f"other sources of {_some(other)}: {way_out}"] if other else []


_SENT = "what was sent did not come whole; see that its disk has room, and start Ray there anew"
_SEND = "launcher.send_code=true sends the sweep's own, or install the same version there"


def _stand_somewhere() -> None:
    """Leave a working folder that was deleted."""
    with contextlib.suppress(ImportError):  # which `_table` says
        # on a node, as in `_table`
        from sweep.execution.working_folder import leave_if_gone

        leave_if_gone()


def _forget() -> None:
    """Look at the files once more."""
    # on a node, as in `_table`
    from sweep.store import sources

    sources.forget()


def _named(configured: Mapping[str, Any]) -> _Named:
    return configured["name"], configured.get("module")


def _table(cells: Iterable[tuple[_Named, _Named]]) -> dict[str, str]:
    """Digests of all modules that cells of these kinds come from, and of what runs them."""
    # where this runs on a node the project may be missing, which `look` says
    import policies
    from sim.base.sources import module_meaning, modules
    from sweep.store import sources

    found = {name: modules.find(name) for name in RUN_TASKS}
    table = {name: module_meaning(module).digest for name, module in found.items() if module}
    for (policy, policy_module), (evaluator, evaluator_module) in cells:
        if policy_module is not None:
            policies.registry.load(policy_module)
        ours = {"name": policy, "module": policy_module}
        table.update(sources.cell_table(ours, {"name": evaluator, "module": evaluator_module}))
    return table


def _without_room() -> list[str]:
    """Try to keep a file where compiled kernels are kept."""
    # on a node, whose own folder it is
    from sim.base.kernel_cache import cache_dir

    folder: Path | str = "the folder of compiled kernels"
    try:
        folder = cache_dir()
        probe = folder / f"room-{platform.node()}-{os.getpid()}"
        try:
            probe.write_bytes(bytes(ROOM_MIB << 20))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or error
        return [f"kernels can't be kept in {folder} ({why}): make room, or let it be written"]
    return []


def _some(words: Sequence[str]) -> str:
    more = [f"{len(words) - MOST_NAMED} more"] if len(words) > MOST_NAMED else []
    return ", ".join([*words[:MOST_NAMED], *more])
