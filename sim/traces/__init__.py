"""Readers of real traces: one module a format, each with ``read(path, **options) -> Workload``.

Each module or package here is a format; adding one is adding it, made of `sim.base.reading`. Every
reader keeps in ``Workload.meta["report"]`` what it dropped, filled in and noticed, counted by rule.
"""

from __future__ import annotations

import os
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import check, type_hints
from sim.base.plugins import Plugins, check_names
from sim.base.plugins import options as options_of
from sim.workload.workload import Workload

__all__ = ["names", "options", "read_trace"]

MODULES_FOUND = ("sim.traces",)  # so that sim.base.sources knows
FORMATS = Plugins("trace", __name__, "read")


def names() -> list[str]:
    """Names of all formats, sorted."""
    return FORMATS.names()


def options(name: str) -> dict[str, Any]:
    """Options of a format's reader and their defaults.

    Raises
    ------
    InputError
        If there is no such format, naming the nearest.
    """
    return options_of(FORMATS.function(name), n_fixed=1)


def read_trace(name: str, path: str | os.PathLike[str], **chosen: Any) -> Workload:
    """Read a trace of a known format."""
    check_names(f"option of trace {name}", chosen, options(name))
    read = FORMATS.function(name)
    hints = type_hints(read)
    for option, value in chosen.items():
        check(option, value, hints[option])
    try:
        workload: Workload = read(path, **chosen)
    except InputError as error:
        if error.file is not None:
            raise
        # found in the columns, where nobody knows any more which file they came from
        raise InputError(error.message, file=path, line=error.line, rule=error.rule) from error
    return workload
