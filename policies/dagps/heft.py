"""HEFT, a baseline of DAGPS (MSR-TR-2016-19, §8.3): its order online, its schedule offline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from policies.base import FitName
from policies.dagps.build_schedule import heft_schedule
from policies.dagps.dag import demand_quanta, one_job
from policies.list_scheduling import CriticalPath
from policies.registry import register
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload


@register("heft")
@dataclass(frozen=True)
class Heft(CriticalPath):
    """Heterogeneous earliest finish time: tasks by descending upward rank, with insertion.

    Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for
    heterogeneous computing*, IEEE TPDS 13(3), 2002. The upward rank is the longest path from a task
    to its job's end. Data transfer is free here, and machines differ only in their free resources,
    so that the earliest finish is the earliest start. HEFT builds its schedule offline and inserts
    tasks into idle slots left by tasks of higher rank; `built_s` is the makespan of that schedule
    for one job. An online run can't know the ends of idle slots and goes by rank, as `CriticalPath`
    does. Instead of insertion, tasks may pass others that wait for room: hence the default `fit`.
    """

    fit: FitName = "skip"

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return the makespan of HEFT's offline schedule for a single job, s.

        NaN unless the policy knows the true durations, of which the schedule is made.
        """
        if self.knowledge != "true":
            return math.nan
        columns = workload.columns
        demand, capacity = demand_quanta(columns, cluster)
        dag = one_job(columns, demand, 0, columns.task_duration)
        return heft_schedule(dag, capacity).span_s
