"""Order of batches by their first task, for runs of more tasks than an array is worth."""

import numpy as np

from sim.base.arrays import I4
from sim.base.jit import jit


@jit
def order_by_task(task: I4, n_tasks: int, shift: int) -> I4:
    """Sort distinct tasks below `n_tasks` by buckets of 2^`shift` rows; return their order.

    Batches of a stage start in the order of its tasks, so that there is little to sort in a bucket.
    """
    n = len(task)
    ends = np.zeros((n_tasks >> shift) + 2, np.int32)
    for i in range(n):
        ends[(task[i] >> shift) + 1] += 1
    for b in range(1, len(ends)):
        ends[b] += ends[b - 1]
    order = np.empty(n, np.int32)
    for i in range(n):
        b = task[i] >> shift
        order[ends[b]] = i
        ends[b] += 1
    begin = 0
    for b in range(len(ends)):
        for k in range(begin + 1, ends[b]):
            row = order[k]
            m = k
            while m > begin and task[order[m - 1]] > task[row]:
                order[m] = order[m - 1]
                m -= 1
            order[m] = row
        begin = ends[b]
    return order
