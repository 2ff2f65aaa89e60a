"""What a run measures: one module a measure, found by name.

A measure is a module of this package with a function ``measure(run, workload, cluster, policy,
seed, **options) -> (metrics, table)``: numbers by name, and a table of whatever they were computed
from. ``run(workload, cluster, policy, seed=seed)`` simulates (`sim.simulate`). Its other arguments
are the options, so adding a measure is adding a file. A measure that looks at the workload alone
says ``USES_POLICY = False`` and is given None for a policy. A measure of somebody's own is any
importable module with such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import pyarrow as pa

from sim.base.errors import InputError, MeasureError
from sim.base.plugins import Plugins, check_known, import_own, named_alike
from sim.base.plugins import options as options_of
from sim.base.text import is_utf8
from sim.metrics import METRICS, UTILIZATION

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.result import Result
    from sim.workload.workload import Workload

NO_POLICY = "none"
"""In place of a policy's name where what is measured needs none."""
Simulate = Callable[..., "Result"]
Measured = tuple[dict[str, float], pa.Table]

MODULES_FOUND = ("sim.measures",)  # so that sim.base.sources knows
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
    MeasureError
        If a measure returns something else than numbers by name and a table, or names a number
        after the share in use of a resource that there is not.
    """
    check_known(f"option of {name}", chosen, options(name, module))
    found = _module(name, module)
    measured = _checked(name, found.measure(run, workload, cluster, policy, seed, **chosen))
    if module is not None:
        _check_shares(name, measured[0], (*cluster.resources, *workload.resources))
    return measured


def _check_shares(name: str, metrics: Mapping[str, float], resources: Sequence[str]) -> None:
    """Refuse ``utilization_users``, which would be shown as the share in use of a resource."""
    known = [*METRICS, *(UTILIZATION + resource for resource in resources)]
    there = ", ".join(dict.fromkeys(resources))
    for key in metrics:
        if key.startswith(UTILIZATION) and key not in known:
            raise MeasureError(
                f"measure {name} returned {key!r}, which is the share in use of a resource "
                f"{key.removeprefix(UTILIZATION)!r}; there are {there}: give it another name"
            )


def _checked(name: str, measured: Any) -> Measured:
    """Hold what a measure returned to what its caller counts on."""
    wanted = "it must return numbers by name and a pyarrow.Table of what they were computed from"
    if not isinstance(measured, tuple) or len(measured) != 2:
        raise MeasureError(f"measure {name} returned {_kind(measured)}; {wanted}")
    metrics, table = measured
    if not isinstance(metrics, Mapping):
        raise MeasureError(f"measure {name} returned {_kind(metrics)} for its numbers; {wanted}")
    if not isinstance(table, pa.Table):
        raise MeasureError(f"measure {name} returned {_kind(table)} for its table; {wanted}")
    for key, value in metrics.items():
        if not isinstance(key, str) or not isinstance(value, SupportsFloat):
            raise MeasureError(
                f"measure {name} returned {_kind(value)} as {key!r}; {wanted}, NaN for none"
            )
        if not key.strip() or not is_utf8(key):
            raise MeasureError(
                f"measure {name} returned a number called {key!r}; a name is UTF-8, and not blank"
            )
    return {key: _number(name, key, value) for key, value in metrics.items()}, table


def _number(name: str, key: str, value: Any) -> float:
    """Convert a number that a measure returned, once for all that follows."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise MeasureError(
            f"measure {name} returned {key!r}, which is no float64: {error}"
        ) from None


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _module(name: str, own: str | None) -> Any:
    if own is None:
        return MEASURES.module(name)
    module = import_own("measure's", own)
    if not callable(getattr(module, MEASURES.entry, None)):
        what = f"{module.__file__} has no function measure(run, workload, cluster, ...)"
        raise InputError(f"{what}{named_alike(module)}")
    return module
