"""Readers of real traces: one module per format, each with ``read(path, **options) -> Workload``.

Each module or package here is a format; to add a format, add a module, built from
`sim.base.reading`. Every reader counts dropped, filled and noticed rows by rule in
``Workload.meta["report"]``.
"""

from __future__ import annotations

import os
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import check, type_hints
from sim.base.plugins import Plugins, check_names
from sim.base.plugins import options as options_of
from sim.workload.log_facts import with_log_facts
from sim.workload.workload import Workload

__all__ = ["cluster_of", "names", "options", "read_trace"]

MODULES_FOUND = ("sim.traces",)  # for sim.base.sources
MODULES_INSTALLED = ("readers",)
FORMATS = Plugins(
    "trace format", __name__, "read", "readers", helpers=("sites",), arguments="path, ..."
)


def names() -> list[str]:
    """Return the names of all formats, sorted."""
    return FORMATS.names()


def options(name: str, module: str | None = None) -> dict[str, Any]:
    """Return the options of a format's reader, or of a user's `module`, with their defaults.

    Raises
    ------
    InputError
        If there is no such format; the message names the most similar one.
    """
    return options_of(FORMATS.function(name, module), n_fixed=1)


def read_trace(
    name: str, path: str | os.PathLike[str], *, module: str | None = None, **chosen: Any
) -> Workload:
    """Read the trace at `path` in the format `name`; with `module`, by a user's own reader."""
    check_names(f"option of trace {name}", chosen, options(name, module))
    read = FORMATS.function(name, module)
    hints = type_hints(read)
    for option, value in chosen.items():
        check(option, value, hints[option])
    try:
        workload: Workload = read(path, **chosen)
    except InputError as error:
        if error.file is not None:
            raise
        # raised by checks of columns, which do not know the file
        raise InputError(error.message, file=path, line=error.line, rule=error.rule) from error
    return with_log_facts(workload)


def cluster_of(
    name: str, path: str | os.PathLike[str], *, module: str | None = None, **chosen: Any
) -> dict[str, Any] | None:
    """Return the cluster that the trace at `path` tells, as options; None if its format has none.

    A reader's module may have a function ``cluster(path, **options)``, with the options of ``read``
    and ``begin_s``, from which the cluster's times count.
    """
    read_cluster = getattr(FORMATS.module(name, module), "cluster", None)
    if read_cluster is None:
        return None
    cluster: dict[str, Any] = read_cluster(path, **chosen)
    return cluster
