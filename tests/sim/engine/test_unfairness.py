"""Bounded unfairness: the largest deficit of a queue (DAGPS, MSR-TR-2016-19, §5)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.cluster.faults import Outages
from sim.engine.clock import on_own_clock
from tests.examples import examples
from tests.sim.engine import reference
from tests.sim.engine.test_kernel import assert_same
from tests.sim.engine.test_packing import Packs, jobs_of


class Watched(reference._Run):
    """The naive simulator, which records the largest deficit of any queue."""

    max_deficit = 0.0

    def _charge(self, g):
        super()._charge(g)
        self.max_deficit = max([self.max_deficit, *self.deficit.values()])


@settings(deadline=None, max_examples=examples(60))
@given(
    rows=st.lists(
        st.tuples(
            st.floats(0, 8),
            st.lists(st.floats(0.5, 6), min_size=1, max_size=6),
            st.integers(0, 4),
            st.sampled_from("ab"),
            st.sampled_from([0.5, 1.0, 3.0]),
        ),
        min_size=2,
        max_size=8,
    ),
    bound=st.sampled_from([0.0, 0.5, 2.0]),
    machines=st.integers(1, 2),
    bundle=st.sampled_from([1, 4]),
    weight=st.sampled_from([1.0, 3.0]),
    lost=st.sampled_from([((), (), ()), ((0,), (1.0,), (2.5,))]),
)
def test_neither_of_two_queues_is_owed_more_than_the_bound_and_a_task(
    rows, bound, machines, bundle, weight, lost
):
    rows = sorted(rows, key=lambda row: row[0])
    workload = jobs_of(*((t, list(d), {"cpu": cpu}, q) for t, d, cpu, q, _ in rows))
    names = workload.columns.queue_names
    shares = {name: weight if name == "a" else 1.0 for name in names}
    cluster = sim.Cluster.machines(machines, cpu=4).with_queues("weighted", shares)
    cluster = cluster.with_outages(Outages.from_columns(*lost))
    cost = [row[-1] for row in rows]
    packing = {"unfairness": bound, "bundle": bundle, "overbook": True}
    policy = Packs(packing=packing, stages={"cost": cost})
    run = Watched(*on_own_clock(workload, cluster), policy, 0)
    slow = run.go()
    assert run.max_deficit <= bound + max(cost) + 1e-9
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    np.testing.assert_array_equal(fast.task_start, slow.task_start)
    np.testing.assert_array_equal(fast.task_machine, slow.task_machine)


@pytest.mark.parametrize(("bound", "overtaken"), [(0.0, 1), (1.0, 2), (3.0, 6), (np.inf, 36)])
def test_room_is_kept_for_a_queue_that_is_owed_enough(bound, overtaken):
    """Small tasks of a never leave the machine empty for the large one of b, unless held back."""
    durations = [1.0, 1.3, 1.7, 2.1] * 10
    workload = jobs_of((0, durations, {"cpu": 1}, "a"), (0.5, [1.0], {"cpu": 4}, "b"))
    policy = Packs(packing={"unfairness": bound if bound < np.inf else 1e300}, by_queue=True)
    result = sim.simulate(workload, sim.Cluster.machines(1, cpu=4), policy, record="tasks")
    starts_a, start_b = result.task_start[:-1], result.task_start[-1]
    # each adds ½ to what b is owed; while both are owed the bound, the first goes first
    assert (starts_a < start_b).sum() == 4 + overtaken


@pytest.mark.parametrize("bundle", [1, 8])
def test_tasks_without_a_demand_start_at_once_whoever_is_owed(bundle):
    workload = jobs_of(
        (0, [1.0, *[10.0] * 5], {"cpu": 1}, "a"),
        (0.5, [1.0], {"cpu": 4}, "b"),
        (2, [3.0] * 5, {"cpu": 0}, "a"),
    )
    packing = {"unfairness": 0.5, "bundle": bundle}
    policy = Packs(packing=packing, by_queue=True)
    result, _ = assert_same(workload, sim.Cluster.machines(1, cpu=4), policy)
    starts_a, start_b = [0.0, 0.0, 0.0, 0.0, 1.0, 12.0], 11.0  # room is kept for b
    assert result.task_start.tolist() == [*starts_a, start_b, *[2.0] * 5]


def test_dagps_starts_tasks_without_a_demand_at_once():
    jobs = [
        {"submit_s": float(i), "queue": "ab"[i % 2], "stages": [{"durations_s": [10.0, 10.0],
         "demand": {"cpu": cpu, "mem": cpu}}]}
        for i, cpu in enumerate([3, 4, 0, 4, 1, 0])
    ]  # fmt: skip
    cluster = sim.Cluster.machines(2, cpu=4, mem=4)
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build("dagps"))
    assert result.task_start[[4, 5, 10, 11]].tolist() == [2.0, 2.0, 5.0, 5.0]
