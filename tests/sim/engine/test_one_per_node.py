"""Jobs of which no two tasks share a machine: by hand, and in worlds of all mechanisms."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import DeadlockError, InputError, PolicyError
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine import outcome
from tests.sim.engine.random_worlds import LEAN, build, draw, draw_with
from tests.sim.engine.test_kernel import assert_same

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

POLICIES = {
    "strict": {},
    "skip": {"fit": "skip"},
    "pack": {"fit": "pack"},
    "per_class": {"fit": "per_class"},
}
PLANNED = ("easy", "conservative", "slurm")


def spread(n, seconds, gang=None, submit_s=0.0, **demand):
    """Return a job of n like tasks on machines of their own, which start together by default."""
    stage = {"durations_s": [seconds] * n, "demand": demand or {"cpu": 1}}
    gang = n if gang is None else gang
    job = {"submit_s": submit_s, "min_tasks": gang, "requested_s": seconds, "stages": [stage]}
    return job | {"one_per_node": True}


def run(jobs, cluster, policy="strict"):
    built = policy
    if isinstance(policy, str):
        built = policies.build(policy) if policy in PLANNED else policies.build(
            "fifo", **POLICIES[policy]
        )  # fmt: skip
    return assert_same(sim.Workload.from_jobs(jobs), cluster, built)[0]


@pytest.mark.parametrize("policy", [*POLICIES, *PLANNED])
def test_slots_of_a_gang_go_to_machines_of_their_own(policy):
    jobs = [spread(2, 5.0), spread(2, 5.0) | {"one_per_node": False}]
    fast = run(jobs, sim.Cluster.machines(3, cpu=4), policy)
    assert fast.task_machine.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("policy", [*POLICIES, *PLANNED])
def test_a_gang_waits_for_machines_not_for_room(policy):
    """Two machines of three are full until 6: four CPUs are free, of one machine."""
    jobs = [spread(2, 6.0, cpu=4), spread(2, 5.0, submit_s=1.0)]
    fast = run(jobs, sim.Cluster.machines(3, cpu=4), policy)
    assert fast.task_machine.tolist()[:2] == [0, 1]
    assert len({*fast.task_machine.tolist()[2:]}) == 2
    assert min(fast.task_start.tolist()[2:]) >= 6


@pytest.mark.parametrize("policy", [*POLICIES, *PLANNED])
def test_components_share_no_machine(policy):
    stages = [
        {"durations_s": [4.0], "demand": {"cpu": 3}},
        {"durations_s": [4.0, 4.0], "demand": {"cpu": 1}},
    ]
    job = {"submit_s": 0.0, "min_tasks": 3, "requested_s": 4.0, "stages": stages}
    cluster = sim.Cluster.machines(3, cpu=4)
    assert len({*run([job], cluster, policy).task_machine.tolist()}) < 3
    fast = run([job | {"one_per_node": True}], cluster, policy)
    assert sorted(fast.task_machine.tolist()) == [0, 1, 2]


def test_slots_go_to_the_machines_that_score_least():
    """Best fit: the two smallest of three machines, where the smallest has room for all slots."""
    cluster = sim.Cluster.mixed([{"cpu": 9}, {"cpu": 5}, {"cpu": 4}])
    together = spread(2, 5.0) | {"one_per_node": False}
    best_fit = policies.build("best_fit")
    assert run([together], cluster, best_fit).task_machine.tolist() == [2, 2]
    assert run([spread(2, 5.0)], cluster, best_fit).task_machine.tolist() == [2, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_that_start_singly_share_no_machine(policy):
    fast = run([spread(4, 3.0, gang=0)], sim.Cluster.machines(2, cpu=4), policy)
    assert fast.task_start.tolist() == [0, 0, 3, 3]
    assert fast.task_machine.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_beside_the_slots_of_their_gang_share_no_machine(policy):
    """The third task goes to the third machine; the fourth waits for a slot."""
    fast = run([spread(4, 3.0, gang=2)], sim.Cluster.machines(3, cpu=4), policy)
    assert fast.task_machine.tolist()[:3] == [0, 1, 2]
    assert fast.task_start.tolist() == [0, 0, 0, 3]


def test_others_pass_a_task_that_waits_for_its_own_job():
    jobs = [spread(2, 3.0, gang=0), spread(1, 1.0, gang=0)]
    fast = run(jobs, sim.Cluster.machines(1, cpu=4), "skip")
    assert fast.task_start.tolist() == [0, 3, 0]


def test_a_gang_stops_jobs_on_machines_of_their_own():
    """A victim on each of two machines; a plain gang of two stops those of one."""
    jobs = [spread(1, 50.0, cpu=2) | {"one_per_node": False} for _ in range(4)]
    gang = spread(2, 5.0, submit_s=1.0, cpu=2) | {"priority": 1}
    cluster = sim.Cluster.machines(2, cpu=4)
    preempts = policies.build("priority", preemption={"by": "priority"})
    fast = run([*jobs, gang], cluster, preempts)
    assert sorted(fast.task_machine.tolist()[4:]) == [0, 1]
    assert fast.task_start.tolist()[4:] == [1, 1]
    assert sorted({*fast.stopped.machine.tolist()}) == [0, 1]


def test_each_slot_of_a_pool_is_a_machine():
    fast = run([spread(3, 3.0), spread(3, 3.0, gang=0)], sim.Cluster.slots(6))
    assert fast.task_start.tolist() == [0] * 6


@pytest.mark.parametrize("policy", ["strict", "skip", "easy", "slurm"])
def test_a_gang_of_more_slots_than_machines_is_refused(policy):
    with pytest.raises(InputError, match="no two share a machine"):
        run([spread(3, 5.0)], sim.Cluster.machines(2, cpu=4), policy)


def shared(world):
    """Return the jobs of which two tasks were on a machine at a time, and the number of attempts.

    Of jobs that forbid it; an attempt is a task's last run, or one that stopped.
    """
    workload, cluster, policy = build(world)
    run = outcome.run_kernel(workload, cluster, policy)[0]
    columns = workload.columns
    job = np.repeat(columns.stage_job, np.diff(columns.stage_task0))
    stops = run.stopped
    tasks = np.flatnonzero(np.isfinite(run.task_finish))
    attempts = [
        *zip(tasks, run.task_machine[tasks], run.task_start[tasks], run.task_finish[tasks],
             strict=True),
        *zip(stops.task, stops.machine, stops.start_s, stops.stop_s, strict=True),
    ]  # fmt: skip
    on_machine = defaultdict(list)
    for task, machine, start, end in attempts:
        if columns.job_one_per_node[job[task]] and not cluster.unit and end > start:
            on_machine[int(job[task]), int(machine)].append((start, end))
    pairs = [
        j for (j, _), spans in on_machine.items()
        for before, after in zip(sorted(spans), sorted(spans)[1:], strict=False)
        if after[0] < before[1]
    ]  # fmt: skip
    return pairs, sum(map(len, on_machine.values()))


def test_no_two_tasks_of_a_job_share_a_machine_in_any_world():
    lean = [set(on) for on in LEAN if "one per node" in on]
    n_attempts = 0
    for number in range(examples(150)):
        rng = np.random.default_rng([55, number])
        world = draw_with(rng, {"one per node", *draw(rng)["mechanisms"]})
        if number % 2:
            world = draw_with(rng, lean[number // 2 % len(lean)])
        try:
            pairs, n = shared(world)
        except (InputError, PolicyError, DeadlockError):
            continue
        assert not pairs, (number, pairs)
        n_attempts += n
    assert n_attempts > 2 * examples(150)
