"""Jobs that ask for tasks and leave their nodes to Slurm (``-n 16`` without ``-N``).

Slurm gives them CPUs on any nodes, as many on each as are free. So each of their tasks is one of
the simulated job, and not each node that they happened to have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.traces.sacct.columns import Log, numbers
from sim.workload.schema import N_NODES
from sim.workload.tables import column_or_default, with_column

NODES_USED = "NodesUsed"
"""Column of a log: the nodes that such a job had; "" for other jobs."""
_TASKS = r"(?:^|\s)(?:-n\s*|--ntasks[ =])(?P<n>\d+)(?:\s|$)"
_BY_NODE = (
    r"(?:^|\s)(?:-N|--nodes|--ntasks-per-|--exclusive|--gres|--gpus|-G|--mem[ =]|--cpus-per-gpu"
    r"|--contiguous|-w|--nodelist)"
)
"""Options by which a job asks for nodes, or for something of each node."""


def spread_tasks(log: Log) -> None:
    """Let the tasks of such jobs count as nodes, among which what the job had is divided."""
    if "SubmitLine" not in log or "NNodes" not in log:
        return
    command = log["SubmitLine"].fill_null("")
    asked = pc.struct_field(pc.extract_regex(command, _TASKS), "n")
    n_tasks = numbers({"n": asked.fill_null("")}, "n")
    by_node = pc.match_substring_regex(command, _BY_NODE).to_numpy(zero_copy_only=False)
    n_nodes, n_cpus = numbers(log, "NNodes"), numbers(log, "AllocCPUS")
    is_spread = (n_tasks > 1) & (n_nodes <= n_tasks) & (n_cpus % n_tasks == 0)  # False for NaN
    is_spread &= ~by_node.astype(bool)
    used = np.where(is_spread, np.nan_to_num(n_nodes), 0).astype(np.int64)
    log[NODES_USED] = pa.array([str(n) if n else "" for n in used.tolist()])
    log["NNodes"] = np.where(is_spread, n_tasks, n_nodes)


def with_nodes_used(jobs: pa.Table, used: Sequence[str]) -> pa.Table:
    """Return the jobs with the nodes that they had as their number of nodes."""
    nodes = column_or_default(jobs, N_NODES)
    known = [int(text) if text else n for text, n in zip(used, nodes.tolist(), strict=True)]
    return with_column(jobs, N_NODES.name, np.array(known, np.int32))
