"""Quotas that lend (``cluster.quotas``): what each queue of a tree uses over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.cluster.quotas import QuotaTree
from sim.engine.layout.columns import resource_quanta
from sim.engine.layout.quotas import tree_of
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Quotas:
    """Use of all queues of a tree, by queue and resource; nothing without quotas."""

    def __init__(self, attempts: Attempts) -> None:
        self._a, run = attempts, attempts.run
        columns, cluster = run.workload.columns, run.cluster
        quantum = resource_quanta(columns, cluster, attempts.resources)
        total = attempts.capacity.sum(axis=0)
        self._tree = tree_of(columns, cluster, attempts.resources, total, quantum)
        self._queue = columns.job_queue
        self._use = [] if self._tree is None else [self._curves(q) for q in self._queues()]

    def _queues(self) -> range:
        return range(len(self._a.columns.queue_names))

    def _curves(self, queue: int) -> list[Steps]:
        a = self._a
        rows = np.flatnonzero(self._queue[a.job] == queue)
        amounts = a.demand[a.stage[rows]] * a.count[rows, None]
        return [
            from_changes(a.placed_s[rows], a.held_s[rows], amounts[:, r])
            for r in range(len(a.resources))
        ]

    def use(self, job: int) -> list[Steps]:
        """Return the use of the queues in the tree of a job, a curve a queue and resource."""
        return [curve for q in self._queues() if self._lends(q, job) for curve in self._use[q]]

    def is_over(self, job: int, demand: I8, times: F8) -> Mask:
        """Tell at which times a demand, in quanta, would exceed the quota of a node above."""
        over, tree = np.zeros(len(times), np.bool_), self._tree
        if tree is None:
            return over
        for r in np.flatnonzero(tree.is_limited & (demand > 0)).tolist():
            over |= _is_over(tree, self._taken(tree, r, times), int(self._queue[job]), r, demand[r])
        return over

    def _taken(self, tree: QuotaTree, r: int, times: F8) -> I8:
        """Return what counts against the quota of each node, (N, times)."""
        taken = np.zeros((len(tree.parent), len(times)), np.int64)
        for node, above in enumerate(tree.parent.tolist()):
            if node < len(self._use):
                taken[node] += self._use[node][r].values_at(times)
            if above >= 0:
                taken[above] += np.maximum(taken[node] - tree.local[node, r], 0)
        return taken

    def members(self, job: int) -> Mask:
        """Return the mask of jobs in the tree of a job, (J,)."""
        return np.array([self._lends(q, job) for q in self._queues()], np.bool_)[self._queue]

    def _lends(self, queue: int, job: int) -> bool:
        if self._tree is None:
            return False
        return bool(self._tree.path[queue, 0] == self._tree.path[self._queue[job], 0])


def _is_over(tree: QuotaTree, taken: I8, queue: int, r: int, demand: int) -> Mask:
    """Tell when a demand is too much for a node; what a node keeps does not count above it.

    `taken`: (N, K), by node, at K times.
    """
    node, amount = queue, np.full(taken.shape[1], demand, np.int64)
    over = np.zeros(taken.shape[1], np.bool_)
    while node >= 0:
        over |= (amount > 0) & (taken[node] + amount > tree.limit[node, r])
        amount = amount - np.clip(tree.local[node, r] - taken[node], 0, amount)
        node = int(tree.parent[node])
    return over
