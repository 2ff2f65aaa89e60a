"""Transforms of demands, requests and durations: amplifier, fit to other machines, over-request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.parameters import Factor, Positive, checked
from sim.base.plugins import check_names
from sim.transforms.parts import rebuild
from sim.workload.columns import stage_request
from sim.workload.schema import DEMAND_PREFIX, REQUEST_PREFIX, USED_PREFIX
from sim.workload.tables import column_or_nan, values, with_column
from sim.workload.workload import Workload


@checked
def amplify(workload: Workload, ratio: Positive, metrics: Iterable[str] | None = None) -> Workload:
    """Make stages more heterogeneous: increase values above the mean, decrease those below.

    As in the paper's published generator, values above their metric's mean are multiplied by
    `ratio` and the others divided by it, so that the extremes are farther from the mean.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    ratio : float
        Heterogeneity amplifier, positive; 1 changes nothing, less makes stages more similar.
    metrics : iterable of str, optional
        Some of ``duration_s`` and ``demand_<resource>``; by default all. A demand can become larger
        than a machine: `fit_machines` cuts it.

    Raises
    ------
    InputError
        If `ratio` is not positive and finite, or there is no such metric.
    """
    known = ("duration_s", *(DEMAND_PREFIX + name for name in workload.resources))
    selected = known if metrics is None else tuple(metrics)
    check_names("metric", selected, known, "unknown metric")
    stages, tasks, uniform = workload.stages, None, workload.stage_duration_s
    for name in selected:
        if name != "duration_s":
            demand = values(stages, name)
            stages = _with_demand(stages, name, demand, _amplified(demand, ratio))
    if "duration_s" in selected:
        if uniform is None:
            tasks = workload.tasks
            tasks = with_column(tasks, "duration_s", _amplified(values(tasks, "duration_s"), ratio))
        else:
            uniform = _amplified(uniform, ratio)
    transform = {"heterogeneity": float(ratio), "metrics": list(selected)}
    return rebuild(workload, transform, uniform, stages=stages, tasks=tasks)


def _with_demand(stages: pa.Table, column: str, old: F8, new: F8) -> pa.Table:
    """Return the stages with other demands, and requests for more in proportion."""
    requested = REQUEST_PREFIX + column.removeprefix(DEMAND_PREFIX)
    if requested in stages.column_names:
        factor = np.divide(new, old, out=np.ones_like(old), where=old > 0)
        request = np.fmax(column_or_nan(stages, requested) * factor, new)
        stages = with_column(stages, requested, request)
    return with_column(stages, column, new)


def _amplified(numbers: F8, ratio: float) -> F8:
    return np.where(numbers > numbers.mean(), numbers * ratio, numbers / ratio)


@checked
def fit_machines(
    workload: Workload,
    machine: Mapping[str, Positive],
    source_machine: Mapping[str, Positive] | None = None,
) -> Workload:
    """Rescale demands so that they fit other machines (the paper's *cluster configuration*).

    A demand keeps its share of a machine, as does a request for more, and is cut to the machine if
    it still does not fit. If the capacity of the original machine is unknown, all are divided by
    the factor that makes the largest one fit; if it fits already, they do not change.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    machine : dict of str to float
        Capacity of one machine of the target cluster by resource, positive.
    source_machine : dict of str to float, optional
        Capacity of one machine of the original cluster, e.g. 96 cores and 100 units of memory at
        Alibaba; not all resources are needed.

    Raises
    ------
    InputError
        If a number is not positive and finite, or the workload does not demand a resource.
    """
    stages = workload.stages
    named = [*machine, *(source_machine or {})]
    check_names("resource", named, workload.resources, "unknown resource")
    requests = stage_request(workload)[1]
    for name, amount in machine.items():
        column = DEMAND_PREFIX + name
        demand, request = values(stages, column), requests[:, workload.resources.index(name)]
        source = (source_machine or {}).get(name) or max(float(request.max()), amount)
        stages = with_column(stages, column, np.minimum(demand * (amount / source), amount))
        if REQUEST_PREFIX + name in stages.column_names:
            request = np.minimum(request * (amount / source), amount)
            stages = with_column(stages, REQUEST_PREFIX + name, request)
    return rebuild(workload, {"machine": dict(machine)}, stages=stages)


@checked
def requests(
    workload: Workload,
    factor: Factor | Mapping[str, Factor] = 1.0,
    used: bool = False,
) -> Workload:
    """Let tasks request more than they need (`sim.cluster.requests`).

    Requests that the workload has already are replaced.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    factor : float or mapping of str to float
        Request over demand, at least 1: of every resource, or by resource, as in {cpu: 1.35}.
    used : bool
        If True, demands become what tasks used, where a log tells it (``stages.used_<resource>``,
        `sim.workload.schema`), and what they demanded before is at least requested. More than
        they demanded they do not get.

    Raises
    ------
    InputError
        If a factor is below 1, the workload does not demand a resource, or tells no use.
    """
    stages = workload.stages
    factors = factor if isinstance(factor, Mapping) else dict.fromkeys(workload.resources, factor)
    check_names("resource", factors, workload.resources, "unknown resource")
    measured = [name for name in workload.resources if USED_PREFIX + name in stages.column_names]
    if used and not measured:
        columns = ", ".join(USED_PREFIX + name for name in workload.resources)
        raise InputError(
            f"the stages have no column {columns}, so that no use is known; give factors instead",
            rule="no use",
        )
    for name in dict.fromkeys([*(measured if used else ()), *factors]):
        demand = values(stages, DEMAND_PREFIX + name)
        request = demand * factors.get(name, 1.0)
        if used and name in measured:
            use = column_or_nan(stages, USED_PREFIX + name)
            need = np.where(use > 0, np.fmin(use, demand), demand)
            stages = with_column(stages, DEMAND_PREFIX + name, need)
        stages = with_column(stages, REQUEST_PREFIX + name, request)
    transform = {"requests": dict(factors), "used": used}
    return rebuild(workload, transform, stages=stages)
