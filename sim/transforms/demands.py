"""What tasks ask for and how they differ: the heterogeneity amplifier, and other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sim.base.arrays import F8
from sim.base.parameters import Positive, checked
from sim.base.plugins import check_names
from sim.transforms.parts import rebuilt
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload


@checked
def amplify(workload: Workload, ratio: Positive, metrics: Iterable[str] | None = None) -> Workload:
    """Make stages differ more: what is above the average grows, what is below shrinks.

    As in the paper's published generator, values above their metric's average are multiplied by
    `ratio`, the others divided by it, so that the extreme ones are that much further from it.

    Parameters
    ----------
    workload : Workload
        Real or synthesized.
    ratio : float
        The heterogeneity amplifier, positive; 1 changes nothing, less makes stages more alike.
    metrics : iterable of str, optional
        Of ``duration_s`` and ``demand_<resource>``; left out, all of them. A demand may grow
        beyond a machine: `fit_machines` cuts it.

    Raises
    ------
    InputError
        If `ratio` is not positive and finite, or there is no such metric.
    """
    known = ("duration_s", *(DEMAND_PREFIX + name for name in workload.resources))
    wanted = known if metrics is None else tuple(metrics)
    check_names("metric", wanted, known, "unknown metric")
    stages, tasks, uniform = workload.stages, None, workload.stage_duration_s
    for name in wanted:
        if name != "duration_s":
            stages = with_column(stages, name, _apart(values(stages, name), ratio))
    if "duration_s" in wanted:
        if uniform is None:
            tasks = workload.tasks
            tasks = with_column(tasks, "duration_s", _apart(values(tasks, "duration_s"), ratio))
        else:
            uniform = _apart(uniform, ratio)
    transform = {"heterogeneity": float(ratio), "of": list(wanted)}
    return rebuilt(workload, transform, uniform, stages=stages, tasks=tasks)


def _apart(numbers: F8, ratio: float) -> F8:
    return np.where(numbers > numbers.mean(), numbers * ratio, numbers / ratio)


@checked
def fit_machines(
    workload: Workload, machine: Mapping[str, Positive], of: Mapping[str, Positive] | None = None
) -> Workload:
    """Rescale demands so that they fit other machines (the paper's *cluster configuration*).

    A demand keeps the share of a machine that it had; what would still not fit is cut to the
    machine. Where it is not known what a machine had, demands shrink by as much as the largest
    one needs, or not at all.

    Parameters
    ----------
    workload : Workload
        Real or synthesized.
    machine : dict of str to float
        What one machine of the target has of each resource, positive.
    of : dict of str to float, optional
        What one machine had that the demands come from, e.g. 96 cores and 100 units of memory at
        Alibaba; resources may be left out.

    Raises
    ------
    InputError
        If a number is not positive and finite, or the workload does not demand a resource.
    """
    stages = workload.stages
    named = [*machine, *(of or {})]
    check_names("resource", named, workload.resources, "unknown resource")
    for name, amount in machine.items():
        column = DEMAND_PREFIX + name
        demand = values(stages, column)
        source = (of or {}).get(name) or max(float(demand.max()), amount)
        stages = with_column(stages, column, np.minimum(demand * (amount / source), amount))
    return rebuilt(workload, {"machine": dict(machine)}, stages=stages)
