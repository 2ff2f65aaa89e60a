"""Transforms of demands and durations: the heterogeneity amplifier; fit to other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sim.base.arrays import F8
from sim.base.parameters import Positive, checked
from sim.base.plugins import check_names
from sim.transforms.parts import rebuild
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values, with_column
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
            stages = with_column(stages, name, _amplified(values(stages, name), ratio))
    if "duration_s" in selected:
        if uniform is None:
            tasks = workload.tasks
            tasks = with_column(tasks, "duration_s", _amplified(values(tasks, "duration_s"), ratio))
        else:
            uniform = _amplified(uniform, ratio)
    transform = {"heterogeneity": float(ratio), "metrics": list(selected)}
    return rebuild(workload, transform, uniform, stages=stages, tasks=tasks)


def _amplified(numbers: F8, ratio: float) -> F8:
    return np.where(numbers > numbers.mean(), numbers * ratio, numbers / ratio)


@checked
def fit_machines(
    workload: Workload,
    machine: Mapping[str, Positive],
    source_machine: Mapping[str, Positive] | None = None,
) -> Workload:
    """Rescale demands so that they fit other machines (the paper's *cluster configuration*).

    A demand keeps its share of a machine, and is cut to the machine if it still does not fit. If
    the capacity of the original machine is unknown, all demands are divided by the factor that
    makes the largest one fit; if it fits already, they do not change.

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
    for name, amount in machine.items():
        column = DEMAND_PREFIX + name
        demand = values(stages, column)
        source = (source_machine or {}).get(name) or max(float(demand.max()), amount)
        stages = with_column(stages, column, np.minimum(demand * (amount / source), amount))
    return rebuild(workload, {"machine": dict(machine)}, stages=stages)
