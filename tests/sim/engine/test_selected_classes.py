"""Classes of machines that a policy selects for jobs: starts, moves, what blocks what, refusals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import sim
from policies.base import Policy
from sim.base.errors import DeadlockError, PolicyError
from sim.check.schedule import check_schedule
from sim.engine.plan import Event, Preemption, Right, WhenPreempted
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine.compared import compare
from tests.sim.engine.outcome import run_kernel
from tests.sim.engine.random_worlds import build, draw_with

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="no wide variant selects classes")

ANYWHERE, FAST, SLOW = -1, 1, 2
"""Bits of the classes of CLUSTER."""
CLUSTER = sim.Cluster.mixed([{"class": "fast", "cpu": 1}, {"class": "slow", "cpu": 1}])


def job(seconds=10.0, n_tasks=1, speed=2.0, **more):
    """Return a job that is so much faster on the fast machine."""
    stage = {"durations_s": [seconds] * n_tasks, "demand": {"cpu": 1}, "speed": {"fast": speed}}
    return {"submit_s": 0.0, "stages": [stage], **more}


@dataclass(frozen=True)
class Selects(Policy):
    """Selects classes before the run, and at given times: rows of time, job, bits."""

    first: tuple = (ANYWHERE,)
    changes: tuple = ()
    stops: bool = False
    when: WhenPreempted = WhenPreempted.REQUEUE
    name = "selects"
    events = Event.TIMER

    def prepare(self, world, plan):
        plan.set_jobs(runs_on=np.array(self.first), when_preempted=int(self.when))
        plan.preemption = Preemption(Right.RUNS_ON) if self.stops else None
        plan.timer_s = self.changes[0][0] if self.changes else np.inf
        return list(self.changes)

    def react(self, memory, batch, world, plan):
        while memory and memory[0][0] <= batch.now:
            _, row, bits = memory.pop(0)
            plan.set_jobs(row, runs_on=bits)
        plan.timer_s = memory[0][0] if memory else np.inf


def run(jobs, cluster=CLUSTER, **policy):
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, Selects(**policy))
    check_schedule(result)
    return result


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
def test_a_job_starts_on_the_classes_that_the_policy_selects(fit):
    result = run([job(), job(), job()], first=(SLOW, FAST, ANYWHERE), fit=fit)
    assert result.task_machine.tolist() == [1, 0, 0]
    assert result.job_start.tolist() == [0.0, 0.0, 5.0]


def test_a_job_that_waits_blocks_those_alone_that_could_take_its_machines():
    result = run([job(), job(), job(), job()], first=(FAST, FAST, SLOW, FAST))
    assert result.job_start.tolist() == [0.0, 5.0, 0.0, 10.0]


def test_a_job_that_may_run_nowhere_waits_until_it_may_and_blocks_nobody():
    result = run([job(), job()], first=(0, FAST), changes=((2.0, 0, FAST), (3.0, 0, SLOW)))
    assert result.job_start.tolist() == [3.0, 0.0]
    assert result.job_finish.tolist() == [13.0, 5.0]


@pytest.mark.parametrize(
    ("policy", "checkpoint_s", "end_s"),
    [
        ({"stops": False}, 0.0, 10.0),  # it goes on where it is
        ({"stops": True}, None, 4.0 + 5.0),  # all of it again, twice as fast
        ({"stops": True}, 3.0, 4.0 + 3.5),
        ({"stops": True, "when": WhenPreempted.SUSPEND}, None, 4.0 + 3.0),
    ],
)
def test_a_job_moves_to_the_classes_that_are_left(policy, checkpoint_s, end_s):
    restarting = job(checkpoint_s=checkpoint_s)
    result = run([restarting], first=(SLOW,), changes=((4.0, 0, FAST),), **policy)
    assert result.job_finish.tolist() == [end_s]
    assert result.stops["reason"].to_pylist() == ["preempted"] * policy["stops"]


def test_a_change_that_leaves_the_machine_of_a_job_stops_nothing():
    result = run([job()], first=(SLOW,), changes=((4.0, 0, ANYWHERE),), stops=True)
    assert result.job_finish.tolist() == [10.0]


def test_a_gang_stops_as_a_whole_and_other_tasks_one_by_one():
    two = job(n_tasks=2, speed=1.0)
    single = run([two], changes=((4.0, 0, FAST),), stops=True)
    assert single.task_finish.tolist() == [10.0, 20.0]
    both = run([{**two, "min_tasks": 2}], changes=((4.0, 0, FAST), (6.0, 0, ANYWHERE)), stops=True)
    assert both.task_start.tolist() == [6.0, 6.0]  # the fast machine alone has no room for it
    assert both.stops["machine"].to_pylist() == [0, 1]


def test_an_idle_slot_outside_stops_its_gang():
    long, short = [{"durations_s": [s], "demand": {"cpu": 1}} for s in (10.0, 2.0)]
    gang = {"submit_s": 0.0, "min_tasks": 2, "stages": [long, short]}
    result = run([gang], changes=((4.0, 0, FAST), (5.0, 0, ANYWHERE)), stops=True)
    # the second task is done, and the slot in which it ran is idle
    assert result.task_finish.tolist() == [15.0, 2.0]


def test_a_cancelled_job_fails():
    jobs = [job(n_tasks=2, speed=1.0), job()]
    result = run(
        jobs, first=(ANYWHERE, FAST), changes=((4.0, 0, FAST),), stops=True,
        when=WhenPreempted.CANCEL,
    )  # fmt: skip
    assert result.job_failed.tolist() == [True, False]
    assert result.job_start[1] == 4.0


@pytest.mark.parametrize("cluster", [sim.Cluster.slots(1), sim.Cluster.machines(1, cpu=1)])
def test_equal_machines_and_slots_are_one_class(cluster):
    result = run([job(), job()], cluster, first=(2, 1), changes=((4.0, 0, 3), (5.0, 1, 2)))
    assert result.job_start.tolist() == [10.0, 0.0]


def test_partitions_of_a_class_are_codes_of_their_own():
    kinds = [{"class": "x", "cpu": 1, "partitions": [p]} for p in ("a", "b")]
    cluster = sim.Cluster.mixed(kinds)
    assert cluster.classes == ("x", "x")
    assert run([job()], cluster, first=(2,)).task_machine.tolist() == [1]


def test_jobs_that_may_never_run_are_an_error():
    with pytest.raises(DeadlockError, match="lets a job run on no machine"):
        run([job()], first=(0,))


def test_what_means_nothing_is_refused():
    @dataclass(frozen=True)
    class Late(Selects):
        def prepare(self, world, plan):
            plan.timer_s = 1.0
            return [(1.0, 0, FAST)]

    @dataclass(frozen=True)
    class Reserves(Selects):
        def prepare(self, world, plan):
            plan.set_jobs(expected_s=10.0, runs_on=FAST)
            plan.reservations = 1

    workload = sim.Workload.from_jobs([job()])
    with pytest.raises(PolicyError, match="set 'runs_on' in prepare, too"):
        sim.simulate(workload, CLUSTER, Late())
    with pytest.raises(PolicyError, match="may take a machine from a job at any time"):
        sim.simulate(workload, CLUSTER, Reserves())
    with pytest.raises(PolicyError, match="gives notice itself"):
        Preemption(Right.RUNS_ON, grace_s=1.0)


def test_random_worlds_are_equal():
    n_stopped = n_ran = 0
    for number in range(examples(60)):
        rng = np.random.default_rng([62, number])
        mixes = [("classes", "gangs"), ("speeds", "skip", "checkpoints"), ("pack", "classes")]
        world = draw_with(rng, {"selected classes", *mixes[number % 3]})
        result = compare(world)
        assert not result.differs, (number, result.differs)
        if not result.refused:
            kernel = run_kernel(*build(world))[0]
            n_ran += 1
            n_stopped += "preempted" in kernel.stops["reason"].to_pylist()
    assert n_ran > 3
    assert n_stopped > 0
