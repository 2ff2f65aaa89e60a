"""Random small DAGs, and the feasibility check of a schedule."""

import numpy as np
from hypothesis import strategies as st

from policies.dagps.dag import Dag
from sim.base.arrays import offsets
from sim.workload.kernels.paths import topological_order

EXACT = (0.0, 0.5, 1.0, 2.0, 3.0)  # their sums are exact
DURATIONS = (*EXACT, 0.1, 0.7)
CAPACITY = (4, 5)


def make_dag(sizes, durations, demand, edges):
    """A DAG from sizes of stages, durations of tasks and edges (parent, child, kind)."""
    edges = sorted(edges)
    n = len(sizes)
    parent = np.array([e[0] for e in edges], dtype=np.int64)
    child = np.array([e[1] for e in edges], dtype=np.int32)
    edge0 = offsets(np.bincount(parent, minlength=n))
    return Dag(
        task0=offsets(np.array(sizes)),
        duration=np.array(durations, dtype=np.float64),
        demand=np.array(demand, dtype=np.int64).reshape(n, len(CAPACITY)),
        edge0=edge0,
        edge_child=child,
        edge_kind=np.array([e[2] for e in edges], dtype=np.int8),
        order=topological_order(np.array([0, n]), edge0, child),
    )


@st.composite
def dags(draw, max_stages=6, max_tasks=4, equal_tasks=None, durations_from=DURATIONS):
    """Draw a DAG with stages in any order and both kinds of edges."""
    n = draw(st.integers(1, max_stages))
    sizes = draw(st.lists(st.integers(1, max_tasks), min_size=n, max_size=n))
    is_equal = draw(st.booleans()) if equal_tasks is None else equal_tasks
    duration = st.sampled_from(durations_from)
    durations = []
    for size in sizes:
        durations += [draw(duration)] * size if is_equal else [draw(duration) for _ in range(size)]
    demand = [[draw(st.integers(0, c)) for c in CAPACITY] for _ in range(n)]
    rows = draw(st.permutations(range(n)))
    edges = [
        (rows[p], rows[c], draw(st.integers(0, 1)))
        for c in range(n)
        for p in range(c)
        if draw(st.integers(0, 2)) == 0
    ]
    return make_dag(sizes, durations, demand, edges)


def capacities(n_machines, small=False):
    """Equal machines; with `small` the first has less than the others."""
    capacity = np.tile(np.array(CAPACITY, dtype=np.int64), (n_machines, 1))
    if small:
        capacity[0] -= 2
    return capacity


def check_feasible(graph, capacity, begin, end, machine, slack=0.0):
    """Assert that every task runs for its duration, after its parents, within its machine's room.

    A task that takes no time holds no resources.
    """
    n = len(graph.duration)
    for t in range(n):
        assert abs(end[t] - begin[t] - graph.duration[t]) <= 1e-9
        assert all(begin[t] >= end[p] - slack for p in graph.parents[t])
    for m, room in enumerate(capacity):
        tasks = [t for t in range(n) if machine[t] == m]
        for x in {begin[t] for t in tasks}:
            runs = [t for t in tasks if begin[t] <= x + slack and x + slack < end[t]]
            for r, c in enumerate(room):
                assert sum(graph.demand[t][r] for t in runs) <= c
