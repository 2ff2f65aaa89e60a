"""Cluster configuration: demands rescaled to other machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import InputError, unknown
from sim.knobs.parts import check_positive, rebuilt, replaced
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def fit_machines(
    workload: Workload, machine: Mapping[str, float], of: Mapping[str, float] | None = None
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
    for name, amount in [*machine.items(), *(of or {}).items()]:
        check_positive(f"the machine's {name}", amount)
        if name not in workload.resources:
            raise InputError(unknown("resource", name, workload.resources), rule="unknown resource")
    for name, amount in machine.items():
        column = DEMAND_PREFIX + name
        demand = values(stages, column)
        source = (of or {}).get(name) or max(float(demand.max()), amount)
        stages = replaced(stages, column, np.minimum(demand * (amount / source), amount))
    return rebuilt(workload, stages=stages, knob={"machine": dict(machine)})
