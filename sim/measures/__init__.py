"""What a run measures: one module a measure, found by name.

A measure is a module of this package with a function ``measure(run, workload, cluster, policy,
seed, **options) -> (metrics, table)``: numbers by name, and a table of whatever they were computed
from. ``run(workload, cluster, policy, seed=seed)`` simulates (`sim.simulate`). Its other arguments
are the options, so adding a measure is adding a file. A measure that looks at the workload alone
says ``USES_POLICY = False`` and is given None for a policy. A measure of somebody's own is any
importable module with such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.plugins import Plugins, check_known, import_own
from sim.base.plugins import options as options_of

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.result import Result
    from sim.workload.workload import Workload

NO_POLICY = "none"
"""In place of a policy's name where what is measured needs none."""
Simulate = Callable[..., "Result"]
Measured = tuple[dict[str, float], "pa.Table"]

MEASURES = Plugins("measure", __name__, "measure")

_N_GIVEN = 5


def names() -> list[str]:
    """Names of every measure, sorted."""
    return MEASURES.names()


def options(name: str, module: str | None = None) -> dict[str, Any]:
    """Return the options of a measure with their defaults."""
    return options_of(_module(name, module).measure, _N_GIVEN)


def uses_policy(name: str, module: str | None = None) -> bool:
    """Tell whether a measure needs a policy."""
    return bool(getattr(_module(name, module), "USES_POLICY", True))


def measure(
    name: str,
    run: Simulate,
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler | None,
    seed: int,
    *,
    module: str | None = None,
    **chosen: Any,
) -> Measured:
    """Measure.

    Parameters
    ----------
    name : str
        One of `names`, or any with a `module`.
    run : callable
        `sim.simulate`, or what stands in for it.
    workload, cluster, policy, seed
        Of the run.
    module : str, optional
        The importable module that holds a measure of somebody's own.
    **chosen
        The measure's own options.

    Raises
    ------
    InputError
        On an unknown measure or option, naming the nearest.
    """
    check_known(f"option of {name}", chosen, options(name, module))
    measured: Measured = _module(name, module).measure(
        run, workload, cluster, policy, seed, **chosen
    )
    return measured


def _module(name: str, own: str | None) -> Any:
    if own is None:
        return MEASURES.module(name)
    module = import_own("measure's", own)
    if not callable(getattr(module, MEASURES.entry, None)):
        raise InputError(f"{module.__file__} has no function measure(run, workload, cluster, ...)")
    return module
