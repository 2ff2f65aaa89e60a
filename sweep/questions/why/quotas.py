"""Quotas that lend (``cluster.quotas``): what each queue of a tree uses over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.cluster.flavors import no_flavors
from sim.cluster.quotas import QuotaTree
from sim.engine.layout.columns import resource_quanta
from sim.engine.layout.quotas import tree_of
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Quotas:
    """Use of all queues of a tree, by queue and column of the quotas; nothing without quotas."""

    def __init__(self, attempts: Attempts) -> None:
        self._a, run = attempts, attempts.run
        columns, cluster = run.workload.columns, run.cluster
        quantum = resource_quanta(columns, cluster, attempts.resources)
        self._tree = tree_of(columns, cluster, attempts.resources, attempts.capacity, quantum)
        self._queue = columns.job_queue
        flavors = no_flavors(attempts.capacity[0]) if self._tree is None else self._tree.flavors
        self._resources = flavors.resource.tolist()
        self._columns = flavors.column[flavors.sets(cluster.machine_class, len(attempts.capacity))]
        self._use = [] if self._tree is None else [self._curves(q) for q in self._queues()]

    def _queues(self) -> range:
        return range(len(self._a.columns.queue_names))

    def _curves(self, queue: int) -> list[Steps]:
        a = self._a
        rows = np.flatnonzero(self._queue[a.job] == queue)
        amounts = a.demand[a.stage[rows]] * a.count[rows, None]
        column = self._columns[a.machine[rows]]
        return [
            from_changes(a.placed_s[rows], a.held_s[rows], amounts[:, r] * (column[:, r] == k))
            for k, r in enumerate(self._resources)
        ]

    def use(self, job: int) -> list[Steps]:
        """Return the use of the queues in the tree of a job, a curve a queue and resource."""
        return [curve for q in self._queues() if self._lends(q, job) for curve in self._use[q]]

    def is_over(self, job: int, demand: I8, times: F8) -> Mask:
        """Tell at which times a demand, in quanta, would exceed the quota of a node above.

        By class of machine: in each flavor that its queue may use.
        """
        tree = self._tree
        if tree is None:
            return np.zeros(len(times), np.bool_)
        limited = tree.is_limited & (demand > 0)
        over = np.ones(len(times), np.bool_)
        for column in np.unique(tree.flavors.column[:, limited], axis=0).tolist():
            in_flavor = np.zeros(len(times), np.bool_)
            for r, k in zip(np.flatnonzero(limited).tolist(), column, strict=True):
                taken = self._taken(tree, k, times)
                in_flavor |= _is_over(tree, taken, int(self._queue[job]), k, demand[r])
            over &= in_flavor
        return over

    def _taken(self, tree: QuotaTree, k: int, times: F8) -> I8:
        """Return what counts against the quota of each node, (N, times)."""
        taken = np.zeros((len(tree.parent), len(times)), np.int64)
        for node, above in enumerate(tree.parent.tolist()):
            if node < len(self._use):
                taken[node] += self._use[node][k].values_at(times)
            if above >= 0:
                taken[above] += np.maximum(taken[node] - tree.local[node, k], 0)
        return taken

    def members(self, job: int) -> Mask:
        """Return the mask of jobs in the tree of a job, (J,)."""
        return np.array([self._lends(q, job) for q in self._queues()], np.bool_)[self._queue]

    def _lends(self, queue: int, job: int) -> bool:
        if self._tree is None:
            return False
        return bool(self._tree.path[queue, 0] == self._tree.path[self._queue[job], 0])


def _is_over(tree: QuotaTree, taken: I8, queue: int, k: int, demand: int) -> Mask:
    """Tell when a demand is too much for a node; what a node keeps does not count above it.

    `k`: of the quotas. `taken`: (N, I), by node, at I times.
    """
    node, amount = queue, np.full(taken.shape[1], demand, np.int64)
    over = np.zeros(taken.shape[1], np.bool_)
    while node >= 0:
        over |= (amount > 0) & (taken[node] + amount > tree.limit[node, k])
        amount = amount - np.clip(tree.local[node, k] - taken[node], 0, amount)
        node = int(tree.parent[node])
    return over
