"""Size of the cluster that made a log, as far as the log says: header, nodes, or peak use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload
from sweep.backtest.node_lists import named_nodes
from sweep.backtest.recorded_use import recorded

HEADER = "MaxProcs"
"""Field of a log's header with the number of its processors."""


@dataclass(frozen=True)
class LoggedSize:
    """Number of slots that a log shows, and a sentence on where it comes from."""

    n_slots: int
    sentence: str


def logged_size(workload: Workload) -> LoggedSize:
    """Find the number of slots of the cluster that made a log.

    A header's ``MaxProcs`` counts, or the cores of Spark's executors. Without them, the nodes that
    jobs ran on, times the most processors that a job had on one; but the peak of recorded use, if
    that is more or nodes are not recorded.
    """
    header = workload.meta.get("header", {})
    text = str(header.get(HEADER, "")).split()
    if text and text[0].isdigit() and int(text[0]) > 0:
        n_slots = int(text[0])
        return LoggedSize(n_slots, f"the log's header says ({HEADER})")
    if workload.meta.get("cores"):
        return LoggedSize(int(workload.meta["cores"]), "the log's executors have that many cores")
    use = recorded(workload, Cluster.slots(1))
    peak = peak_use(use.begin_s, use.end_s, use.use[:, 0])
    n_nodes, per_node = nodes_used(workload)
    if n_nodes * per_node >= peak:
        return LoggedSize(
            n_nodes * per_node,
            f"the log names {n_nodes:,} nodes, and no job had more than {per_node:,} slots on one",
        )
    return LoggedSize(peak, "that is the peak of the log's recorded use")


def peak_use(begin_s: F8, end_s: F8, slots: I8) -> int:
    """Return the most slots in use at any time; what ends at an instant makes room at once."""
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    change = np.concatenate((-slots, slots))
    used = np.cumsum(change[np.argsort(time_s, kind="stable")])
    return int(used.max(initial=1))


def nodes_used(workload: Workload) -> tuple[int, int]:
    """Return the number of distinct nodes, and the most slots that a job had on each; 0 for none.

    A stage's slots are spread over its nodes evenly, as Slurm's ``NodeList`` does not tell.
    """
    nodes = named_nodes(workload)
    if nodes is None:
        return 0, 0
    is_named = nodes.count > 0
    per_node = np.ceil(workload.columns.stage_n_tasks[is_named] / nodes.count[is_named])
    return nodes.n_nodes, int(per_node.max())
