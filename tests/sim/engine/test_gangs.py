"""Gangs with devices, classes and faults: worked by hand, and equal to the naive simulator."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.faults import Outages
from tests.sim.engine.test_held_machines import Holds
from tests.sim.engine.test_kernel import assert_same

A100 = {"class": "a100", "cpu": 32, "devices": {"gpu": 8}}
T4 = {"class": "t4", "cpu": 32, "devices": {"gpu": 4}}


def job(submit_s, seconds, n=1, gang=None, runs_on="", **demand):
    """Return a job of n like tasks, which start together unless told otherwise."""
    stage = {"durations_s": [seconds] * n, "demand": demand, "runs_on": runs_on}
    return {"submit_s": submit_s, "min_tasks": n if gang is None else gang, "stages": [stage]}


def run(jobs, cluster, policy="fifo", **parameters):
    w = sim.Workload.from_jobs(jobs)
    built = policies.build(policy, **parameters) if isinstance(policy, str) else policy
    fast, slow = assert_same(w, cluster, built)
    if cluster.devices:
        assert fast.task_devices.tolist() == slow.task_devices.tolist()
    return fast


def test_a_training_job_of_four_workers_of_eight_gpus_each():
    """Of four machines one is in use until 5: all four workers start then, and hold all GPUs."""
    jobs = [
        job(0.0, 5.0, gpu=1, cpu=1),
        job(1.0, 10.0, n=4, gpu=8, cpu=4),
        job(2.0, 1.0, gpu=1, cpu=1),
    ]
    fast = run(jobs, sim.Cluster.mixed([{**A100, "count": 4}]))
    assert fast.task_start.tolist() == [0, 5, 5, 5, 5, 15]
    assert fast.task_machine.tolist() == [0, 0, 1, 2, 3, 0]
    assert fast.task_devices.tolist() == [1, 255, 255, 255, 255, 1]


def test_slots_share_machines_and_devices():
    """Two slots of half a GPU share the first; the third waits for none, as there are four."""
    jobs = [job(0.0, 3.0, n=3, gpu=0.5, cpu=1), job(0.0, 3.0, n=2, gpu=2, cpu=1)]
    fast = run(jobs, sim.Cluster.mixed([T4, T4]))
    assert fast.task_machine.tolist() == [0, 0, 0, 0, 1]
    assert fast.task_devices.tolist() == [0b1, 0b1, 0b10, 0b1100, 0b11]


def test_a_gang_takes_only_machines_of_its_class():
    jobs = [job(0.0, 4.0, n=2, gpu=4, runs_on="t4", cpu=1), job(1.0, 4.0, n=2, gpu=4, cpu=1)]
    fast = run(jobs, sim.Cluster.mixed([A100, T4, T4]))
    assert fast.task_machine.tolist() == [1, 2, 0, 0]
    assert fast.job_start.tolist() == [0, 1]


def test_a_gang_goes_to_the_machines_that_are_chosen():
    """Best fit: the tightest machine first, as many slots as it has room for."""
    jobs = [job(0.0, 4.0, n=3, gpu=2, cpu=8)]
    by_choice = {"first": [0, 0, 0], "best_fit": [1, 1, 0]}
    for choice, machines in by_choice.items():
        policy = Holds() if choice == "first" else policies.build("best_fit")
        fast = run(jobs, sim.Cluster.mixed([A100, T4]), policy)
        assert fast.task_machine.tolist() == machines


def unequal(submit_s, seconds, *stages, **columns):
    """Return a gang of stages that start together: tasks, class and demand of each."""
    rows = [
        {"durations_s": [seconds] * n, "runs_on": runs_on, "demand": demand}
        for n, runs_on, demand in stages
    ]
    return {"submit_s": submit_s, "min_tasks": sum(n for n, *_ in stages), "stages": rows} | columns


PLANNED = ("fifo", "easy", "conservative", "slurm")


@pytest.mark.parametrize("policy", PLANNED)
def test_tasks_of_a_gang_take_what_they_demand(policy):
    """Three slots of 3 CPUs and 6 of memory would not fit a machine; the tasks of a gang do."""
    stages = (1, "", {"cpu": 1, "mem": 6}), (2, "", {"cpu": 3, "mem": 1})
    gangs = [unequal(0.0, 3.0, *stages, requested_s=3.0) for _ in range(2)]
    fast = run(gangs, sim.Cluster.machines(2, cpu=8, mem=8), policy)
    assert fast.task_machine.tolist() == [0, 0, 0, 1, 1, 1]
    assert len({*fast.task_start.tolist()}) == 1


@pytest.mark.parametrize("policy", PLANNED)
def test_components_go_to_machines_of_their_class(policy):
    """Slots on four A100 and one T4 start together, though a T4 was free from the begin."""
    jobs = [
        job(0.0, 5.0, gpu=6, cpu=1, runs_on="a100") | {"requested_s": 5.0},
        unequal(0.0, 4.0, (1, "t4", {"gpu": 1, "cpu": 1}), (4, "a100", {"gpu": 1, "cpu": 1}))
        | {"requested_s": 4.0},
    ]
    fast = run(jobs, sim.Cluster.mixed([A100, T4]), policy)
    assert len({*fast.task_start[1:].tolist()}) == 1
    assert fast.job_start[1] >= 5.0
    assert fast.task_machine.tolist() == [0, 1, 0, 0, 0, 0]


def test_a_later_stage_uses_the_slots_that_hold_its_tasks():
    """One of two tasks of a GPU runs in the slot of two GPUs, the other one beside the gang."""
    gang = unequal(0.0, 2.0, (1, "", {"cpu": 8}), (1, "", {"gpu": 2, "cpu": 1}))
    last = {"name": "last", "durations_s": [1.0, 1.0], "demand": {"gpu": 1}, "parents": ["s1"]}
    gang["stages"] = [stage | {"name": f"s{s}"} for s, stage in enumerate(gang["stages"])] + [last]
    fast = run([gang], sim.Cluster.mixed([T4]))
    assert fast.task_start.tolist() == [0, 0, 2, 2]
    assert fast.task_devices.tolist() == [0, 0b11, 0b11, 0b100]


def test_components_that_scores_leave_no_room_go_to_the_first_machines_that_have_some():
    """Best fit puts the task of 4 CPUs on the small machine, where the other one must be."""
    gang = unequal(0.0, 1.0, (1, "", {"cpu": 4}), (1, "small", {"cpu": 1}))
    kinds = [{"class": "large", "cpu": 8}, {"class": "small", "cpu": 4}]
    fast = run([gang], sim.Cluster.mixed(kinds), "best_fit")
    assert fast.task_start.tolist() == [0, 0]
    assert fast.task_machine.tolist() == [0, 1]


def test_a_gang_whose_stages_have_no_common_class_is_refused():
    """Its last stage may run in no slot of the first ones, so all slots are to be equal."""
    stages = [
        {
            "name": name,
            "durations_s": [1.0],
            "demand": {"cpu": 1},
            "runs_on": name,
            "parents": after,
        }
        for name, after in (("a100", []), ("t4", ["a100"]))
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "min_tasks": 1, "stages": stages}])
    with pytest.raises(InputError, match="no machine may run all of them") as caught:
        sim.simulate(w, sim.Cluster.mixed([A100, T4]), policies.build("fifo"))
    assert caught.value.rule == "gang of several classes"


def test_more_gpus_than_there_are_at_once_are_refused():
    w = sim.Workload.from_jobs([job(0.0, 1.0, n=3, gpu=3, cpu=1)])
    with pytest.raises(InputError, match="room for only 2 of them at once"):
        sim.simulate(w, sim.Cluster.mixed([T4, T4]), policies.build("fifo"))


def test_a_gang_that_loses_a_machine_stops_and_waits_for_all_slots():
    """Machine 1 is lost from 4 to 9. All three tasks, of 10 s, start anew at 9 and end at 19."""
    cluster = sim.Cluster.machines(3, cpu=1).with_outages(Outages.from_columns([1], [4.0], [9.0]))
    fast = run([job(0.0, 10.0, n=3, cpu=1), job(5.0, 2.0, cpu=1)], cluster, fit="skip")
    assert fast.task_start.tolist() == [9, 9, 9, 5]
    assert fast.task_finish.tolist() == [19, 19, 19, 7]
    stops = fast.stops.to_pylist()
    assert [(stop["stop_s"], stop["reason"]) for stop in stops] == [
        (4, "gang stopped"), (4, "machine lost"), (4, "gang stopped")
    ]  # fmt: skip


def test_a_gang_that_loses_an_idle_slot_stops_too():
    """The second task, on machine 1, is done at 1; when machine 1 is lost the first starts anew."""
    cluster = sim.Cluster.machines(2, cpu=1).with_outages(Outages.from_columns([1], [4.0], [9.0]))
    stage = {"durations_s": [10.0, 1.0], "demand": {"cpu": 1}}
    fast = run([{"submit_s": 0.0, "min_tasks": 2, "stages": [stage]}], cluster)
    assert fast.task_start.tolist() == [9, 0]
    assert fast.task_finish.tolist() == [19, 1]


def test_a_failure_stops_the_gang_but_not_what_is_done():
    """The third fails after 2 s; the second is done then. Both others start anew at 2."""
    stage = {"durations_s": [5.0, 2.0, 4.0], "demand": {"cpu": 1}}
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "min_tasks": 3, "stages": [stage]}])
    w = w.with_failures({"task": [2], "after_s": [2.0], "lost": [-1]})
    fast, _ = assert_same(w, sim.Cluster.machines(3, cpu=1), policies.build("fifo"))
    assert fast.task_start.tolist() == [2, 0, 2]
    assert fast.task_finish.tolist() == [7, 2, 6]
    assert fast.stops["reason"].to_pylist() == ["gang stopped", "failed"]


def test_a_worker_beyond_the_gang_fails_alone():
    stage = {"durations_s": [5.0, 5.0, 4.0], "demand": {"cpu": 1}}
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "min_tasks": 2, "stages": [stage]}])
    w = w.with_failures({"task": [2], "after_s": [2.0], "lost": [-1]})
    fast, _ = assert_same(w, sim.Cluster.machines(3, cpu=1), policies.build("fifo"))
    assert fast.task_start.tolist() == [0, 0, 2]


def test_machines_are_held_for_a_gang():
    """The gang of two machines would starve behind small tasks: from 1 on two are held for it.

    Of three machines all are in use until 4; then small ones may only use the one not held.
    """
    small = [job(t, 4.0, gang=0, cpu=2) for t in (0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0)]
    jobs = sorted([*small, job(1.0, 1.0, n=2, cpu=4)], key=lambda job: job["submit_s"])
    cluster = sim.Cluster.machines(3, cpu=2 * 2)
    starts = {n: run(jobs, cluster, Holds(n=n)).job_start.tolist()[3] for n in (0, 2)}
    assert starts[2] < starts[0]
    assert starts[2] == 4
