"""Demands of jobs that take whole nodes: at least the smallest node on which they may run.

Source: https://slurm.schedmd.com/sbatch.html, ``--exclusive``: such a job is allocated all CPUs and
GPUs of its nodes, and limits and fair share count these. How many depends on the nodes that it
gets, so that the least is taken. Memory that it asks for by CPU it needs for all CPUs of a node, so
that it runs only where these have as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sim.base.arrays import Mask
from sim.traces.slurm_site.machines import Node
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values, with_column


def with_memory_of_all_cpus(
    stages: pa.Table, is_whole: Mask, runs_on: Sequence[str], nodes: Sequence[Node]
) -> list[str]:
    """Return the classes of nodes of each job, separated by ``|``, "" for all.

    Of jobs that are marked only those whose CPUs have the memory of one of the job's CPUs each, if
    there are any.
    """
    fitting, columns = list(runs_on), [DEMAND_PREFIX + name for name in ("cpu", "mem")]
    if not {*columns} <= {*stages.column_names}:
        return fitting
    cpus, mem_gib = (values(stages, column) for column in columns)
    classes = dict.fromkeys(node.machine_class for node in nodes)
    for row, j in enumerate(values(stages, "job").tolist()):
        if not is_whole[j] or not cpus[row] > 0:
            continue
        a_cpu_gib = mem_gib[row] / cpus[row]
        too_small = {
            n.machine_class for n in nodes if n.cpus * a_cpu_gib > n.mem_gib * (1 + ROUNDING)
        }
        own = [name for name in classes if not runs_on[j] or name in runs_on[j].split("|")]
        left = [name for name in own if name not in too_small]
        if left and len(left) < len(own):
            fitting[j] = "|".join(left)
    return fitting


ROUNDING = 1e-9
"""Part by which a sum of memory may exceed a node's, as numbers are rounded."""


def demand_whole_nodes(
    stages: pa.Table,
    is_exclusive: Mask,
    partition: Sequence[str],
    runs_on: Sequence[str],
    nodes: Sequence[Node],
) -> pa.Table:
    """Return the stages with the demands of exclusive jobs, given by job, raised."""
    smallest: dict[tuple[str, str], tuple[int, int]] = {}
    for j in np.flatnonzero(is_exclusive).tolist():
        key = partition[j], runs_on[j]
        if key not in smallest:
            own, classes = set(key[0].split("|")), set(key[1].split("|")) - {""}
            usable = [
                node
                for node in nodes
                if (own & {*node.partitions} or own == {""})
                and (not classes or node.machine_class in classes)
            ]
            cpus = [node.cpus for node in usable]
            smallest[key] = min(cpus, default=0), min((n.gpus for n in usable), default=0)
    job = values(stages, "job")
    for row, resource in enumerate(("cpu", "gpu")):
        column = DEMAND_PREFIX + resource
        if column not in stages.column_names:
            continue
        lowest = np.zeros(len(is_exclusive))
        for j in np.flatnonzero(is_exclusive).tolist():
            lowest[j] = smallest[partition[j], runs_on[j]][row]
        demand = np.maximum(values(stages, column), lowest[job])
        stages = with_column(stages, column, demand)
    return stages
