"""Random small DAGs, and what must hold of any schedule of one."""

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
def dags(draw, most_stages=6, most_tasks=4, like=None, of=DURATIONS):
    """Draw a DAG whose stages stand in any order, of both kinds of edges; `like`: tasks alike."""
    n = draw(st.integers(1, most_stages))
    sizes = draw(st.lists(st.integers(1, most_tasks), min_size=n, max_size=n))
    alike = draw(st.booleans()) if like is None else like
    some = st.sampled_from(of)
    durations = []
    for size in sizes:
        durations += [draw(some)] * size if alike else [draw(some) for _ in range(size)]
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
    """Like machines; with `small` the first has less than the others."""
    capacity = np.tile(np.array(CAPACITY, dtype=np.int64), (n_machines, 1))
    if small:
        capacity[0] -= 2
    return capacity


def check_feasible(graph, capacity, begin, end, machine, slack=0.0):
    """Every task runs for its duration after its parents, within the room of its machine.

    A task that takes no time holds nothing.
    """
    n = len(graph.duration)
    for t in range(n):
        assert abs(end[t] - begin[t] - graph.duration[t]) <= 1e-9
        assert all(begin[t] >= end[p] - slack for p in graph.parents[t])
    for m, room in enumerate(capacity):
        mine = [t for t in range(n) if machine[t] == m]
        for x in {begin[t] for t in mine}:
            runs = [t for t in mine if begin[t] <= x + slack and x + slack < end[t]]
            for r, c in enumerate(room):
                assert sum(graph.demand[t][r] for t in runs) <= c
