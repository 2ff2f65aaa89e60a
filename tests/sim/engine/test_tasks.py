"""Task columns that a policy sets when a job arrives."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.engine.plan import Event, Fit, Plan
from sim.engine.plan.queues import Packing
from tests.sim.engine.test_engine import Scripted, job, run, stage

SLOT = sim.Cluster.slots(1)


def in_order(world, plan):
    sizes = np.diff(world.columns.stage_task0)
    plan.task_order = np.concatenate([np.arange(n) for n in sizes]).astype(np.int32)
    plan.task_order.setflags(write=False)  # it is the policy's; the plan copies it


def at_arrival(rows, listens=Event.JOB_ARRIVED, prepare=in_order, **columns):
    """Return a policy that sets columns of the tasks `rows` at the first event."""
    done = []

    def react(batch, world, plan):
        if not done:
            plan.set_tasks(rows, **columns)
        done.append(batch.now)

    return Scripted(prepare_with=prepare, react_with=react, listens=listens)


def test_the_order_of_a_jobs_tasks_may_be_set_when_it_arrives():
    jobs = [job(0, stage(1, 1, 1)), job(1, stage(1, 1))]
    policy = at_arrival(slice(0, 3), order=[2, 0, 1])
    assert run(jobs, SLOT, policy).task_start.tolist() == [1, 2, 0, 3, 4]


def test_ready_tasks_of_a_one_to_one_stage_are_reordered_too():
    """Tasks 2 and 3 of the child wait for none of the parent's, and stand in a heap already."""
    child = stage(1, 1, 1, 1, name="child", parents={"parent": "one_to_one"})
    policy = at_arrival(slice(2, 6), order=[0, 3, 2, 1])
    r = run([job(0, stage(9, 9, name="parent"), child)], sim.Cluster.slots(3), policy)
    assert r.task_start[2:].tolist() == [9, 9, 1, 0]


def test_the_priority_of_a_jobs_tasks_may_be_set_when_it_arrives():
    def prepare(world, plan):
        in_order(world, plan)
        plan.task_priority = np.ones(2)
        plan.fit, plan.packing = Fit.PACK, Packing(bundle=2)

    stages = [stage(1, name=name, demand={"cpu": 1}) for name in "ab"]
    policy = at_arrival(slice(0, 2), prepare=prepare, priority=[0.5, 1.0])
    cluster = sim.Cluster.machines(1, cpu=1)
    assert run([job(0, *stages)], cluster, policy).task_start.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("rows", "listens", "columns", "message"),
    [
        ([0, 1], Event.JOB_DONE, {"order": [1, 0]}, "job in row 0 started at 0 s"),
        ([0, 1], Event.JOB_ARRIVED, {"order": [1, 1]}, "must hold, for each stage, a permutation"),
        ([0, 1], Event.JOB_ARRIVED, {"order": [1, 2]}, "must hold, for each stage, a permutation"),
        ([0, 1], Event.JOB_ARRIVED, {"order": [1, 0, 2]}, "was given 3 values for 2 tasks"),
        ([7], Event.JOB_ARRIVED, {"order": [0]}, "out of bounds .*; there are 3 tasks"),
        ([0, 1], Event.JOB_ARRIVED, {"odrer": [1, 0]}, "did you mean 'order'"),
        ([0], Event.JOB_ARRIVED, {"priority": [1.0]}, "plan.task_priority had no values before"),
    ],
)
def test_nonsense_is_named(rows, listens, columns, message):
    jobs = [job(0, stage(1, 1)), job(1, stage(1))]
    with pytest.raises(sim.PolicyError, match=message):
        run(jobs, SLOT, at_arrival(rows, listens, **columns))


def test_before_the_run_too_the_plan_writes_to_a_copy():
    plan = Plan(1, 1, 2)
    plan.task_order = mine = np.array([0, 1], dtype=np.int32)
    plan.set_tasks([0, 1], order=[1, 0])
    assert (plan.task_order.tolist(), mine.tolist()) == ([1, 0], [0, 1])
    assert plan.take_changed_tasks() == []
