"""What a job is made of: stages, their tasks, and which waits for which (its algebra, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I1, I4, I8

if TYPE_CHECKING:
    from sim.workload.columns import Columns


@dataclass(frozen=True, eq=False)
class Shape:
    """A job of S stages and E edges."""

    n_tasks: I4  # tasks of each stage
    parent: I4  # stages, by their index in the job
    child: I4
    kind: I1  # 0 barrier, 1 one-to-one (`sim.workload.schema.EDGE_KINDS`)

    @property
    def first_task(self) -> I8:
        """First task of each stage, and the number of tasks: (S+1,) int64."""
        first = np.zeros(len(self.n_tasks) + 1, dtype=np.int64)
        np.cumsum(self.n_tasks, out=first[1:])
        return first

    def longest_after(self, length_s: F8) -> F8:
        """Return the longest path after each stage, where stage s takes ``length_s[s]``: (S,), s.

        L_s of §4.1: the stage itself does not count.
        """
        after = np.zeros(len(self.n_tasks))
        order = np.argsort(-self._depth()[self.parent], kind="stable")  # the last levels first
        for e in order.tolist():
            p, c = self.parent[e], self.child[e]
            after[p] = max(after[p], length_s[c] + after[c])
        return after

    def _depth(self) -> I4:
        """Return how many stages the longest chain before each stage has, (S,)."""
        depth = np.zeros(len(self.n_tasks), dtype=np.int32)
        for _ in range(len(depth)):
            deeper = depth.copy()
            np.maximum.at(deeper, self.child, depth[self.parent] + 1)
            if (deeper == depth).all():
                break
            depth = deeper
        return depth


def shape_of(columns: Columns, job: int) -> Shape:
    """Return the shape of the job in row `job`."""
    g0, g1 = (int(g) for g in columns.job_stage0[job : job + 2])
    e0, e1 = int(columns.edge0[g0]), int(columns.edge0[g1])
    degree = np.diff(columns.edge0[g0 : g1 + 1])
    return Shape(
        np.diff(columns.stage_task0[g0 : g1 + 1]).astype(np.int32),
        np.repeat(np.arange(g1 - g0, dtype=np.int32), degree),
        (columns.edge_child[e0:e1] - g0).astype(np.int32),
        columns.edge_kind[e0:e1],
    )
