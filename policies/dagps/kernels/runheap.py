"""Runs of ready tasks, as a binary heap of the places of their first tasks."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part


@part
def run_push(heap, turn, n):
    """Add `turn` to a heap of `n`; return how many there are."""
    i = n
    while i > 0:
        above = (i - 1) // 2
        if heap[above] <= turn:
            break
        heap[i] = heap[above]
        i = above
    heap[i] = turn
    return n + 1


@part
def run_pop(heap, n):
    """Return the least, and how many are left."""
    top = heap[0]
    n -= 1
    turn = heap[n]
    i, child = 0, 1
    while child < n:
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= turn:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = turn
    return top, n
