"""Spaces, placed sets and labels against slow, obvious Python, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.dagps.build_schedule import label_tasks
from policies.dagps.kernels import space as kernel
from policies.dagps.placer import Placer
from tests.examples import examples
from tests.policies.dagps.dags import capacities, dags, make_dag
from tests.policies.dagps.reference import Graph, Plane


def assert_same(space, plane):
    """Assert that a space of the kernel holds the same tasks as a plane of the reference."""
    arrays = kernel.columns(space.record)
    begin, end = arrays["state_begin"], arrays["state_end"]
    if space.mirrored:
        begin, end = -end, -begin
    rows = np.flatnonzero(arrays["state_machine"] >= 0)
    actual = {t: (begin[t], end[t], arrays["state_machine"][t]) for t in rows.tolist()}
    assert actual == plane.placed
    assert space.span_s == plane.span


@settings(max_examples=examples(120), deadline=None)
@given(st.data(), dags(), st.integers(1, 3), st.booleans())
def test_placing_equals_the_reference(data, dag, n_machines, small):
    """Sets placed one on the other, each forward or backward, with any dependencies."""
    capacity = capacities(n_machines, small and n_machines > 1)
    graph, placer = Graph(dag), Placer(dag, capacity)
    n = len(dag.duration)
    label = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype="i4")
    space, plane = placer.empty, Plane(graph, capacity)
    for subset in range(3):
        backward = data.draw(st.booleans())
        tasks = np.flatnonzero(label == subset).tolist()
        plane = plane.backward(tasks) if backward else plane.forward(tasks)
        space = placer.place(label, subset, backward, space, subset, np.inf)
        assert_same(space, plane)


@pytest.mark.parametrize("seed", range(4))
def test_a_machine_with_many_regions_equals_the_reference(seed):
    """So many that they lie in several chunks, with holes that only some demands fill."""
    rng = np.random.default_rng(seed)
    n = 150
    durations = rng.choice([0.3, 0.7, 1.1, 2.7, 60.0], n)  # the longest run through many regions
    demand = [
        [int(rng.integers(0, 2 if d > 50 else 5)), int(rng.integers(1, 2 if d > 50 else 6))]
        for d in durations
    ]
    edges = [(c - int(rng.integers(1, 20)), c, int(rng.integers(0, 2))) for c in range(40, n, 3)]
    dag = make_dag([1] * n, durations, demand, edges)
    graph, placer, capacity = Graph(dag), Placer(dag, capacities(1)), capacities(1)
    label = (rng.random(n) < 0.3).astype(np.int32)
    space, plane = placer.empty, Plane(graph, capacity)
    for subset, backward in ((0, seed % 2 == 0), (1, seed > 1)):
        tasks = np.flatnonzero(label == subset).tolist()
        plane = plane.backward(tasks) if backward else plane.forward(tasks)
        space = placer.place(label, subset, backward, space, subset, np.inf)
        assert_same(space, plane)
    assert kernel.columns(space.record)["state_used"][0] > 4


@settings(max_examples=examples(60), deadline=None)
@given(dags(), st.integers(1, 2))
def test_a_limit_is_not_reached_and_changes_nothing_else(dag, n_machines):
    placer, label = Placer(dag, capacities(n_machines)), np.zeros(len(dag.duration), dtype="i4")
    for backward in (False, True):
        free = placer.place(label, 0, backward, placer.empty, 0, np.inf)
        assert placer.place(label, 0, backward, placer.empty, 1, free.span_s) is None
        above = np.nextafter(free.span_s, np.inf)
        again = placer.place(label, 0, backward, placer.empty, 1, above)
        for name, array in kernel.columns(free.record).items():
            if name in ("state_begin", "state_end", "state_machine", "state_span"):
                np.testing.assert_array_equal(array, kernel.columns(again.record)[name])


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), dags(max_stages=7))
def test_dividing_equals_the_reference(data, dag):
    graph, placer = Graph(dag), Placer(dag, capacities(1))
    n = len(dag.duration)
    picked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    label = label_tasks(picked, placer.forward_dag, placer.reversed_dag)
    sets = graph.label_tasks(np.flatnonzero(picked).tolist())
    assert [set(np.flatnonzero(label == k).tolist()) for k in range(4)] == list(sets)
