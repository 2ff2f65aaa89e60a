"""Synthetic workloads: one module per generator, found by name.

A generator is a module of this package with a function ``synthesize(**options) -> Workload``; its
keyword arguments are the options. A new generator needs only a new file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.base.memory import check_memory
from sim.base.plugins import Plugins, check_names
from sim.base.plugins import options as options_of

if TYPE_CHECKING:
    from sim.workload.workload import Workload


FEW_JOBS, JOB_BYTES = 100_000, 1000
"""Number of jobs up to which memory is not checked, and the minimum memory per drawn job."""

MODULES_FOUND = ("sim.synth",)  # for sim.base.sources
MODULES_INSTALLED = ("generators",)
GENERATORS = Plugins("generator", __name__, "synthesize", "generators", helpers=("fitted",))


def names() -> list[str]:
    """Return the names of all generators, sorted."""
    return GENERATORS.names()


def options(name: str, module: str | None = None) -> dict[str, Any]:
    """Return the options of the generator `name`, or of a user's `module`, with their defaults.

    Raises
    ------
    InputError
        If there is no such generator; the message names the nearest.
    """
    return options_of(GENERATORS.function(name, module))


def synthesize(name: str, *, module: str | None = None, **chosen: Any) -> Workload:
    """Synthesize a workload from published or fitted statistics.

    Parameters
    ----------
    name : str
        One of `names`, e.g. ``"alibaba2018"``; any with a `module`.
    module : str, optional
        The importable module of a user's own generator.
    **chosen
        Options of the generator; all of them take ``jobs`` and ``seed``.

    Returns
    -------
    Workload
        The same bytes for the same name, options and version of the generator's tables.

    Raises
    ------
    InputError
        On an unknown name or option (the nearest valid one is named) or a value out of range.
    """
    check_names(f"option of {name}", chosen, options(name, module))
    jobs = chosen.get("jobs")
    if isinstance(jobs, int) and jobs > FEW_JOBS:
        check_memory(jobs * JOB_BYTES, f"{jobs:,} jobs of {name}", "take fewer jobs")
    workload: Workload = GENERATORS.function(name, module)(**chosen)
    return workload
