"""Pairs of tasks over a one-to-one edge: task k of the child waits for task k of the parent.

A task beyond the number of the other stage's has no partner: it waits for nothing, and nothing
waits for it.
"""

from sim.base.jit import part


@part
def count_pairs(task0, parent, child):
    """Return the number of pairs of two stages, whose first tasks are in `task0` (G+1,)."""
    return min(task0[parent + 1] - task0[parent], task0[child + 1] - task0[child])


@part
def partner(task0, g, task, other):
    """Return the task of stage `other` that makes a pair with `task` of stage `g`, -1 for none."""
    paired = task0[other] + task - task0[g]
    return paired if paired < task0[other + 1] else -1
