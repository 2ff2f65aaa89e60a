"""A simulation goes on from an instant of another run."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError

LONG, SHORT = 30.0, 1.0


def jobs(**more):
    """Return long and short jobs of two tasks that come at once, for four CPUs."""
    return [
        {
            "job_id": f"j{i}",
            "submit_s": 0.0,
            "min_tasks": 2,
            "stages": [{"durations_s": [LONG if i < 4 else SHORT] * 2, "demand": {"cpu": 1}}],
            **more,
        }
        for i in range(6)
    ]


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_the_same_policy_goes_on_as_if_it_had_not_been_left(policy):
    workload, cluster = sim.Workload.from_jobs(jobs()), sim.Cluster.machines(2, cpu=2)
    whole = sim.simulate(workload, cluster, policies.build(policy), record="tasks")
    for now_s in (0.0, 1.0, 30.0, 45.0, 1e3):
        state = sim.state_of(whole, now_s)
        rest = sim.simulate(workload, cluster, policies.build(policy), state=state, record="tasks")
        np.testing.assert_array_equal(rest.job_start, whole.job_start)
        np.testing.assert_array_equal(rest.task_machine, whole.task_machine)


def test_another_policy_goes_on_from_there():
    """FIFO has started two long jobs; at 1 the shortest go first, once these end at 30."""
    workload, cluster = sim.Workload.from_jobs(jobs()), sim.Cluster.slots(4)
    fifo = sim.simulate(workload, cluster, policies.build("fifo"), record="tasks")
    assert fifo.job_start.tolist() == [0, 0, 30, 30, 60, 60]
    state = sim.state_of(fifo, 1.0)
    rest = sim.simulate(workload, cluster, policies.build("sjf"), state=state)
    assert rest.job_start.tolist() == [0, 0, 31, 31, 30, 30]


def test_jobs_without_a_single_start_are_refused():
    cluster = sim.Cluster.slots(4)
    one_by_one = sim.Workload.from_jobs(jobs(min_tasks=0))
    run = sim.simulate(one_by_one, cluster, policies.build("fifo"), record="tasks")
    with pytest.raises(InputError, match=r"job j0 has no single start.*one by one"):
        sim.state_of(run, 1.0)
    bare = sim.simulate(one_by_one, cluster, policies.build("fifo"), record="jobs")
    with pytest.raises(ValueError, match="no records of tasks"):
        sim.state_of(bare, 1.0)
