"""Size of the cluster that made a log, as far as the log says: header, nodes, or peak use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload
from sweep.grid import cluster_size
from sweep.questions.backtest.node_lists import Nodes, named_nodes
from sweep.questions.backtest.node_sizes import NodeSizes
from sweep.questions.backtest.recorded_use import Recorded, recorded, sizes_by_resource

HEADER = "MaxProcs"
"""Field of a log's header with the number of its processors."""
MAX_KINDS = 6
"""Maximum number of kinds of nodes in a sentence."""
_GUESS = "what jobs on several nodes held of each is a guess: their sum is all that a log has"


@dataclass(frozen=True)
class LoggedSize:
    """Size of the cluster that a log shows, and a sentence on where it comes from.

    Attributes
    ----------
    n_slots : int
        Slots; of machines, the amount of their first resource.
    sentence : str
    kinds : tuple of (int, mapping)
        Number and resources of each kind of machine; none for a pool of slots.
    """

    n_slots: int
    sentence: str
    kinds: tuple[tuple[int, Mapping[str, float]], ...] = ()

    @property
    def n_machines(self) -> int:
        """Number of machines; 0 for a pool."""
        return sum(n for n, _ in self.kinds)

    @property
    def count(self) -> int:
        """Value of ``cluster.count``; 1 for machines of several kinds, which are listed."""
        if len(self.kinds) > 1:
            return 1
        return self.n_machines or self.n_slots

    @property
    def shape(self) -> Any:
        """Value of ``cluster.shape``."""
        if len(self.kinds) > 1:
            return [{"count": n, **machine} for n, machine in self.kinds]
        return dict(self.kinds[0][1]) if self.kinds else "slots"

    def build(self) -> Cluster:
        """Build the cluster."""
        return cluster_size.build_shape(self.shape, self.count)


def logged_size(workload: Workload) -> LoggedSize:
    """Find the size of the cluster that made a log.

    A header's ``MaxProcs`` counts, or the cores of Spark's executors. Without them the nodes that
    jobs ran on, each as large as it must have been at least
    (`sweep.questions.backtest.node_sizes`); but the peak of recorded use, if some jobs name no
    nodes.
    """
    header = workload.meta.get("header", {})
    text = str(header.get(HEADER, "")).split()
    if text and text[0].isdecimal() and int(text[0]) > 0:
        n_slots = int(text[0])
        return LoggedSize(n_slots, f"the log's header says ({HEADER})")
    if workload.meta.get("cores"):
        return LoggedSize(int(workload.meta["cores"]), "the log's executors have that many cores")
    use = recorded(workload, Cluster.slots(1))
    nodes = named_nodes(workload)
    if nodes is None or not nodes.count[use.use_stage].all():
        peak = peak_use(use.begin_s, use.end_s, use.use[:, 0])
        return LoggedSize(peak, "that is the peak of the log's recorded use")
    return _size_of_nodes(workload, use, nodes)


def _size_of_nodes(workload: Workload, use: Recorded, nodes: Nodes) -> LoggedSize:
    """Return the size of a log's nodes: slots if each task takes one, else each resource."""
    names = _demanded(workload)
    if names:
        shape = dict.fromkeys(names, 1.0)
        use = recorded(workload, cluster_size.build_shape(shape, 1))
    sizes = sizes_by_resource(use, nodes)
    room = np.stack([estimate.size for estimate in sizes], axis=1)
    room[:, 0] = np.maximum(room[:, 0], 1)  # also where only jobs of 0 s ran
    kinds = _kinds(workload, names, room)
    is_pool = not names and bool((room == 1).all())
    described = [
        (n, f"({', '.join(f'{name} {amount:g}' for name, amount in machine.items())})")
        if names
        else (n, _count(int(machine["cpu"]), "slot"))
        for n, machine in kinds
    ]
    n_slots = int(sum(n * next(iter(machine.values())) for n, machine in kinds))
    return LoggedSize(n_slots, _sentence(described, sizes), () if is_pool else kinds)


def has_demands(workload: Workload) -> bool:
    """Tell whether tasks demand more than a slot each."""
    return bool(_demanded(workload))


def _demanded(workload: Workload) -> list[str]:
    """Return the resources that tasks demand; none if each takes one slot."""
    columns = workload.columns
    amount = columns.stage_demand * columns.quantum
    if amount.shape[1] <= 1 and bool((amount == 1).all()):
        return []
    return [columns.resources[r] for r in np.flatnonzero(amount.any(axis=0)).tolist()]


def peak_use(begin_s: F8, end_s: F8, slots: I8) -> int:
    """Return the most slots in use at any time; what ends at an instant makes room at once."""
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    change = np.concatenate((-slots, slots))
    used = np.cumsum(change[np.argsort(time_s, kind="stable")])
    return int(used.max(initial=1))


def _kinds(
    workload: Workload, names: list[str], room: I8
) -> tuple[tuple[int, dict[str, float]], ...]:
    """Return number and resources of each kind of node, the smallest first; slots as ``cpu``."""
    columns = workload.columns
    unit = [float(columns.quantum[columns.resources.index(name)]) for name in names]
    rows, counts = np.unique(room, axis=0, return_counts=True)
    return tuple(
        (
            n,
            {
                name: round(amount * quantum, 9)
                for name, amount, quantum in zip(names or ["cpu"], row, unit or [1], strict=True)
                if amount
            },
        )
        for row, n in zip(rows.tolist(), counts.tolist(), strict=True)
    )


def _sentence(kinds: list[tuple[int, str]], sizes: list[NodeSizes]) -> str:
    """Say how large the nodes of each kind are, and what of it is a guess."""
    text = f"the log names {_count(sum(n for n, _ in kinds), 'node')}"
    if len(kinds) == 1:
        text += f", with at least {kinds[0][1]} each"
    else:
        shown = [f"{n:,} of at least {size}" for n, size in kinds[:MAX_KINDS]]
        more = [f"{len(kinds) - MAX_KINDS} other kinds"] if len(kinds) > MAX_KINDS else []
        text += f": {', '.join([*shown, *more])}"
    if n_alike := sizes[0].n_alike:
        text += (
            "; nodes of like names are taken to be alike, though less was ever in use on "
            f"{n_alike:,} of them"
        )
    return text + (f"; {_GUESS}" if any(estimate.is_spread for estimate in sizes) else "")


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
