"""The kernels of `sim.dags.kernels.levels` against slow, obvious Python."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.arrays import offsets
from sim.dags.kernels.levels import coffman_graham_labels, strip_levels
from sim.workload.kernels.paths import topological_order
from tests.examples import examples

DURATIONS = (0.0, 0.5, 1.0, 2.0, 3.0, 0.1, 0.7)


def make_dag(durations, edges):
    """A DAG of single tasks from their durations and edges (parent, child)."""
    n, parents = len(durations), [parent for parent, _ in edges]
    edge0 = offsets(np.bincount(np.array(parents, dtype=np.int64), minlength=n))
    child = np.array([child for _, child in sorted(edges)], dtype=np.int32)
    return SimpleNamespace(
        job=np.array([0, n]),
        duration=np.array(durations),
        edge0=edge0,
        edge_child=child,
        order=topological_order(np.array([0, n]), edge0, child),
    )


@st.composite
def stage_dags(draw, max_stages=9):
    """Draw a DAG of single tasks with rows in any order."""
    n = draw(st.integers(1, max_stages))
    rows = draw(st.permutations(range(n)))
    edges = [(rows[p], rows[c]) for c in range(n) for p in range(c) if draw(st.integers(0, 2)) == 0]
    durations = draw(st.lists(st.sampled_from(DURATIONS), min_size=n, max_size=n))
    return make_dag(durations, edges), edges


def reached(edges, n):
    """Return the set of stages that each stage has a path to."""
    below = [{c for p, c in edges if p == s} for s in range(n)]
    for _ in range(n):
        below = [b.union(*(below[c] for c in b)) for b in below]
    return below


def labels(edges, n):
    below = reached(edges, n)
    children = [{c for p, c in edges if p == s} for s in range(n)]
    needed = [{c for c in cs if not any(c in below[o] for o in cs)} for cs in children]
    label = {}
    for following in range(n):
        free = [s for s in range(n) if s not in label and needed[s] <= label.keys()]
        best = min(free, key=lambda s: (sorted((label[c] for c in needed[s]), reverse=True), -s))
        label[best] = following
    return [label[s] for s in range(n)]


def levels(stages, edges, height):
    """Return the levels of a set of stages, as a list of sets."""
    if not stages:
        return []
    inside = [(p, c) for p, c in edges if p in stages and c in stages]
    if not any(height[s] for s in stages) and height:
        height = dict.fromkeys(height, 1.0)
    begin = {}

    def begins(s):
        if s not in begin:
            begin[s] = max((begins(p) + height[p] for p, c in inside if c == s), default=0.0)
        return begin[s]

    end = {s: begins(s) + height[s] for s in stages}
    half = max(end.values()) / 2
    low = {s for s in stages if end[s] <= half}
    high = {s for s in stages - low if begin[s] >= half}
    across = stages - low - high
    sets = levels(low, edges, height), [across] if across else [], levels(high, edges, height)
    return [*sets[0], *sets[1], *sets[2]]


@settings(max_examples=examples(80), deadline=None)
@given(stage_dags())
def test_coffman_graham_labels_equal_the_reference(drawn):
    dag, edges = drawn
    n = len(dag.order)
    actual = coffman_graham_labels(dag.job, dag.order, dag.edge0, dag.edge_child)
    assert actual.tolist() == labels(edges, n)


@settings(max_examples=examples(80), deadline=None)
@given(stage_dags())
def test_strip_levels_equal_the_reference_and_are_antichains(drawn):
    dag, edges = drawn
    n = len(dag.order)
    job = dag.job
    actual = strip_levels(job, dag.order, dag.edge0, dag.edge_child, dag.duration)
    expected = levels(set(range(n)), edges, dict(enumerate(dag.duration.tolist())))
    assert [set((actual == k).nonzero()[0].tolist()) for k in range(len(expected))] == expected
    assert all(actual[p] < actual[c] for p, c in edges)


def test_labels_look_past_edges_that_a_longer_path_implies():
    """Stage 0 leads to 1 and to 2, but 1 leads to 2: it is as far from the end as stage 3 is."""
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (4, 5)]
    dag = make_dag([1.0] * 6, edges)
    actual = coffman_graham_labels(dag.job, dag.order, dag.edge0, dag.edge_child)
    assert actual.tolist() == [5, 3, 1, 4, 2, 0]


def test_levels_are_cut_at_the_middle_of_the_rest():
    """Of a chain and a stage beside it, the stage lies on the level that it runs across."""
    edges = [(0, 1), (1, 2), (2, 3)]
    dag = make_dag([1.0, 4.0, 2.0, 2.0, 3.0], edges)
    actual = strip_levels(dag.job, dag.order, dag.edge0, dag.edge_child, dag.duration)
    # half of 9 s: stage 1 runs across it; stage 4 has ended by then, as has stage 0
    assert actual.tolist() == [0, 2, 3, 4, 1]
