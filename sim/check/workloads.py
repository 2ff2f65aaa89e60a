"""Rules of everything that gives a workload: its type, and its way through a folder of files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from sim.base.plugins import check_names
from sim.base.plugins import options as options_of
from sim.check.broken import BrokenRuleError
from sim.workload.workload import Workload


def workload_of(value: object) -> Workload:
    """Return a plug-in's return value if it is a workload.

    Raises
    ------
    BrokenRuleError
        If it is none.
    """
    if not isinstance(value, Workload):
        raise BrokenRuleError(
            f"returns a {type(value).__name__}, not a sim.Workload: build one with "
            "sim.Workload.from_jobs or from_tables"
        )
    return value


def folder_rules(workload: Workload) -> Iterator[str]:
    """Yield a sentence if a workload is another one after it was written and read."""
    if workload.n_jobs == 0:
        yield "gives a workload without jobs"
        return
    with tempfile.TemporaryDirectory(prefix="check-") as folder:
        workload.write(folder)
        if Workload.read(folder).digest != workload.digest:
            yield "gives a workload that differs after it was written to a folder and read again"


def chosen_options(
    kind: str, function: Any, values: Mapping[str, Any], n_fixed: int
) -> dict[str, Any]:
    """Return the options given for a function.

    Raises
    ------
    InputError
        If one is unknown.
    """
    check_names(f"option of the {kind}", values, options_of(function, n_fixed))
    return dict(values)
