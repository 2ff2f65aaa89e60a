"""Size of the cluster that made a log, as far as the log says: header, nodes, or peak use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload
from sweep.backtest.node_lists import named_nodes
from sweep.backtest.node_shares import least_size
from sweep.backtest.recorded_use import recorded

HEADER = "MaxProcs"
"""Field of a log's header with the number of its processors."""


@dataclass(frozen=True)
class LoggedSize:
    """Number of slots that a log shows, and a sentence on where it comes from.

    `n_machines` is the number of nodes on which jobs had several of them each, 0 for a pool.
    """

    n_slots: int
    sentence: str
    n_machines: int = 0


def logged_size(workload: Workload) -> LoggedSize:
    """Find the size of the cluster that made a log.

    A header's ``MaxProcs`` counts, or the cores of Spark's executors. Without them the nodes that
    jobs ran on, each as large as they must have been at least, if they are equal
    (`sweep.backtest.node_shares`); but the peak of recorded use, if some jobs name no nodes.
    """
    header = workload.meta.get("header", {})
    text = str(header.get(HEADER, "")).split()
    if text and text[0].isdecimal() and int(text[0]) > 0:
        n_slots = int(text[0])
        return LoggedSize(n_slots, f"the log's header says ({HEADER})")
    if workload.meta.get("cores"):
        return LoggedSize(int(workload.meta["cores"]), "the log's executors have that many cores")
    use = recorded(workload, Cluster.slots(1))
    peak = peak_use(use.begin_s, use.end_s, use.use[:, 0])
    nodes = named_nodes(workload)
    if nodes is None or not nodes.count[use.use_stage].all():
        return LoggedSize(peak, "that is the peak of the log's recorded use")
    slots = use.use[:, 0]
    per_node, is_guess = least_size(use.begin_s, use.end_s, slots, use.use_stage, nodes)
    guess = (
        "; what jobs on several nodes held of each is a guess: their sum is all that a log has"
        if is_guess
        else ""
    )
    return LoggedSize(
        nodes.n_nodes * per_node,
        f"the log names {_count(nodes.n_nodes, 'node')}, with at least {_count(per_node, 'slot')} "
        f"each{guess}",
        nodes.n_nodes if per_node > 1 else 0,
    )


def peak_use(begin_s: F8, end_s: F8, slots: I8) -> int:
    """Return the most slots in use at any time; what ends at an instant makes room at once."""
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    change = np.concatenate((-slots, slots))
    used = np.cumsum(change[np.argsort(time_s, kind="stable")])
    return int(used.max(initial=1))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
