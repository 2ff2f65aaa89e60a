"""Readers of real traces: one module a format, each with ``read(path, **options) -> Workload``.

Each module or package here is a format; adding one is adding it, made of `sim.base.reading`. Every
reader keeps in ``Workload.meta["report"]`` what it dropped, filled in and noticed, counted by rule.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from typing import Any

from sim.base.errors import InputError, unknown
from sim.workload.workload import Workload

__all__ = ["names", "options", "read_trace"]


def names() -> list[str]:
    """Names of all formats, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def options(name: str) -> dict[str, Any]:
    """Options of a format's reader and their defaults."""
    parameters = inspect.signature(_reader(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def read_trace(name: str, path: str | os.PathLike[str], **chosen: Any) -> Workload:
    """Read a trace of a known format."""
    known = options(name)
    for option in chosen:
        if option not in known:
            raise InputError(
                unknown(f"option of trace {name}", option, known), rule="unknown option"
            )
    try:
        workload: Workload = _reader(name)(path, **chosen)
    except InputError as error:
        if error.file is not None or error.rule == "wrong option":
            raise
        # found in the columns, where nobody knows any more which file they came from
        raise InputError(error.message, file=path, line=error.line, rule=error.rule) from error
    return workload


def _reader(name: str) -> Any:
    if name not in names():
        raise InputError(unknown("trace", name, names()), rule="unknown trace")
    return importlib.import_module(f"sim.traces.{name}").read
