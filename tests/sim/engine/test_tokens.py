"""Guaranteed tokens and spare ones: run limits with an overflow queue, and evictions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import sim
from sim.engine.plan import NO_LIMIT, Event, Fit, Order, Queues

HOME, SPARE = 0, 1


@dataclass
class Tokens:
    """Guarantees each job a number of running tasks, and more while nobody needs the room."""

    limits: list[int]
    changes: dict[float, dict[int, int]] = field(default_factory=dict)
    evict: bool = True
    fit: int = 0
    name: str = "tokens"
    events: Event = Event.TIMER

    def begin(self, world, plan):
        plan.queues = Queues.make(2, tier=[0, 1], order=Order.FIFO)
        plan.fit = type(plan.fit)(self.fit)
        plan.set_jobs(run_limit=self.limits, overflow_queue=SPARE)
        plan.evict = self.evict
        plan.timer_s = min(self.changes, default=np.inf)

    def react(self, memory, batch, world, plan):
        for job, limit in self.changes.pop(batch.now).items():
            plan.set_jobs(job, run_limit=limit)
        plan.timer_s = min(self.changes, default=np.inf)


def job(submit_s, *durations_s, **more):
    return {"submit_s": submit_s, "stages": [{"durations_s": list(durations_s)}], **more}


def run(jobs, slots, limits, changes=(), **more):
    w = sim.Workload.from_jobs(jobs)
    policy = Tokens(limits, dict(changes), **more)
    return sim.simulate(w, sim.Cluster.slots(slots), policy, record="tasks")


def test_beyond_its_limit_a_job_runs_in_surplus_room():
    result = run([job(0, 4, 4, 4)], 3, [1])
    assert result.task_start.tolist() == [0, 0, 0]


def test_surplus_tasks_are_evicted_the_last_started_first():
    jobs = [job(0, 1, 8, 8), job(2, 5)]
    result = run(jobs, 3, [1, 1])
    # at 1 the slot of the first task is free: at 2 the newcomer has it, and nobody makes way
    assert result.task_start.tolist() == [0, 0, 0, 2]
    result = run(jobs, 2, [1, 1])
    # two slots: the third task started at 1, and goes at 2 for the newcomer; it runs again at 7
    assert result.task_start.tolist() == [0, 0, 7, 2]
    assert result.job_finish.tolist() == [15, 7]
    (stop,) = result.stops.select(["task", "start_s", "stop_s", "reason"]).to_pylist()
    assert [*stop.values()] == [2, 1.0, 2.0, "evicted"]


def test_guaranteed_tasks_are_never_evicted():
    result = run([job(0, 9, 9), job(2, 5)], 2, [2, 1])
    assert result.task_start.tolist() == [0, 0, 9]


def test_a_job_at_its_limit_evicts_nothing():
    result = run([job(0, 9, 9), job(2, 5, 5)], 2, [0, 1])
    assert result.task_start.tolist() == [0, 9, 2, 7]


def test_without_evictions_the_newcomer_waits():
    result = run([job(0, 9, 9), job(2, 5)], 2, [0, 1], evict=False)
    assert result.task_start.tolist() == [0, 0, 9]


def test_a_lowered_limit_ends_nothing_but_allows_evictions():
    jobs = [job(0, 9, 9), job(6, 5)]
    result = run(jobs, 2, [2, 1], {3.0: {0: 1}})
    assert result.task_start.tolist() == [0, 9, 6]
    assert run(jobs[:1], 2, [2], {3.0: {0: 1}}).task_finish.tolist() == [9, 9]


def test_the_rest_of_freed_room_is_offered_to_refused_stages():
    demand = [4, 2, 1]
    stages = [[{"durations_s": [10.0], "demand": {"cpu": cpu}}] for cpu in demand]
    jobs = [{"submit_s": i, "stages": s} for i, s in enumerate(stages)]

    class Backwards(Tokens):
        def begin(self, world, plan):
            super().begin(world, plan)
            plan.queues = Queues.make(2, tier=[1, 0], order=Order.KEY)  # spare goes first
            plan.set_jobs(key=[1.0, 0.0, 2.0])

    w, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=4)
    result = sim.simulate(w, cluster, Backwards([0, 0, 1]), record="tasks")
    # at 2 the last evicts the first, of four: two are left, which the second has asked for at 1
    assert result.task_start.tolist() == [12, 2, 2]


def test_a_task_that_is_evicted_as_soon_as_it_is_placed_has_not_run():
    class SpareFirst(Tokens):
        def begin(self, world, plan):
            super().begin(world, plan)
            plan.queues = Queues.make(2, tier=[1, 0], order=Order.FIFO)

    w = sim.Workload.from_jobs([job(0, 4), job(0, 5)])
    result = sim.simulate(w, sim.Cluster.slots(1), SpareFirst([0, 1]), record="tasks")
    assert result.task_start.tolist() == [5, 0]
    assert result.stops.num_rows == 0


def test_on_machines_the_youngest_task_is_evicted():
    jobs = [job(0, 20), job(1, 20), job(2, 20), job(3, 1)]
    for row in jobs:
        row["stages"][0]["demand"] = {"slot": 1}
    w, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.machines(3, slot=1)
    result = sim.simulate(w, cluster, Tokens([0, 0, 0, 1]), record="tasks")
    assert result.task_machine.tolist() == [0, 1, 2, 2]
    assert result.task_start.tolist() == [0, 1, 4, 3]


@pytest.mark.parametrize("fit", [Fit.SKIP, Fit.PACK])
def test_other_fits_evict_the_last_started_too(fit):
    result = run([job(0, 1, 8, 8), job(2, 5)], 2, [1, 1], fit=fit)
    assert result.task_start.tolist() == [0, 0, 7, 2]


def test_slots_of_a_gang_are_not_evicted():
    """They are held to the end, although the job may use one of them only."""
    result = run([job(0, 9, 9, min_tasks=2), job(2, 5)], 2, [1, 1])
    assert result.task_start.tolist() == [0, 9, 18]


def test_limits_over_time_are_kept():
    result = run([job(1, 4, 4), job(2, 1)], 3, [1, NO_LIMIT], {3.0: {0: 2}, 9.0: {0: 3}})
    assert result.limits.to_pylist() == [
        {"job": 0, "time_s": 1.0, "tokens": 1},
        {"job": 0, "time_s": 3.0, "tokens": 2},
        {"job": 1, "time_s": 2.0, "tokens": NO_LIMIT},
    ]
    unlimited = sim.simulate(result.workload, result.cluster, Unlimited())
    assert unlimited.limits.num_rows == 0


class Unlimited:
    name, events = "unlimited", Event.NONE

    def begin(self, world, plan):
        return None


def test_allocation_above_the_oracle_s():
    # 10 s of work by 5 s: the oracle needs 2; given 1 for 2 s and then 5 for the other 2
    jobs = [job(0, 2, 4, 4, deadline_s=5.0), job(0, 1, deadline_s=0.5), job(0, 1)]
    result = run(jobs, 9, [1, 1, 1], {2.0: {0: 5}})
    assert result.job_finish.tolist() == [4, 1, 1]
    assert result.metrics["allocation_above_oracle"] == pytest.approx((5 - 2) * 2 / (1 * 2 + 5 * 2))
    assert result.metrics["deadlines_missed"] == 0.5  # and so does not count
    unlimited = sim.simulate(result.workload, result.cluster, Unlimited())
    assert np.isnan(unlimited.metrics["allocation_above_oracle"])
