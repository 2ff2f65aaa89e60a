"""Orders by expected durations: schedules followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.check.unknown import recurring
from sim.check import invariants
from sim.check.worlds import CLUSTERS
from tests.policies.small import ONE, started
from tests.sim.engine import reference

NAMES = ("sjf", "ljf", "srpt", "critical_path", "heft", "tez_cp")


def job(name: str, submit_s: float, template: str, *durations: float, **more) -> dict:
    stages = [{"durations_s": list(durations)}]
    return {"job_id": name, "submit_s": submit_s, "template": template, "stages": stages, **more}


def starts(policy: str, jobs: list[dict], history: dict | None = None, **params) -> dict:
    """Return the starts of each job's tasks on one slot."""
    workload = sim.Workload.from_jobs(jobs)
    if history:
        workload = workload.with_history(history)
    policy = policies.build(policy, refresh_s=1.0, **params)
    result = sim.simulate(workload, ONE, policy, record="tasks")
    by_job: dict[str, list[float]] = {row["job_id"]: [] for row in workload.jobs.to_pylist()}
    for row in result.tasks.to_pylist():
        by_job[row["job_id"]].append(row["start_s"])
    return {name: sorted(times) for name, times in by_job.items()}


JOBS = [
    job("a0", 0, "a", 4),
    job("b0", 0, "b", 10),
    job("a1", 5, "a", 9),
    job("b1", 6, "b", 1),
    job("p", 15, "a", 20, 20, 20),
    job("q", 15, "b", 5, 5),
    job("r", 45, "b", 1, 1, 1),
]


def test_srpt_by_what_the_run_has_shown():
    assert starts("srpt", JOBS, knowledge="run") == {
        # all are expected to take 30 s a task: the first goes first. Then a tasks take 4 s
        "a0": [0],
        "b0": [4],
        # at 14 b tasks took 10 s: a1, which truly takes 9 s, goes before b1, which takes 1
        "a1": [14],
        # at 23 a tasks took 6.5 s in the mean: q and b1 have 20 and 10 s left, p 19.5
        "b1": [23],
        # b tasks took 5.5 s: 11 for q; then q's own first task tells as much as a fifth
        "q": [24, 29],
        # at 54 b tasks took 5.25 s, so that r has 15.75 left. p has 2 tasks left, of 6.5 s by a's
        # mean alone; with its own first, (5 · 6.5 + 20) / 6 = 8.75, it has 17.5, and r goes first
        "p": [34, 57, 77],
        "r": [54, 55, 56],
    }


def test_srpt_by_the_truth_differs():
    true = starts("srpt", JOBS)
    assert (true["a1"], true["b1"]) == ([15], [14])


def test_srpt_by_history_knows_recurring_jobs_before_their_first_run():
    past = {
        "submit_s": [-9.0, -9.0], "finish_s": [-5.0, -5.0], "n_tasks": [1, 1],
        "mean_task_s": [12.0, 2.0], "template": ["a", "b"], "user": ["", ""],
    }  # fmt: skip
    got = starts("srpt", JOBS[:2], past, knowledge="history")
    assert got == {"b0": [0], "a0": [10]}
    assert starts("srpt", JOBS[:2], past, knowledge="run") == {"a0": [0], "b0": [4]}


def test_sjf_and_ljf_count_finished_tasks_too():
    # one a task has taken 4 s. At 7 x has run 3 s and 2 tasks of it are left: 11 s; y has 8 s
    jobs = [job("w", 0, "a", 4), job("x", 1, "a", 3, 3, 3), job("y", 6, "a", 4, 4)]
    assert starts("sjf", jobs, knowledge="run", prior_tasks=1e9)["y"] == [7, 11]
    assert starts("ljf", jobs, knowledge="run", prior_tasks=1e9)["y"] == [13, 17]


def test_declared_durations_are_the_users_requests():
    jobs = [
        job("a", 0, "", 9, 9, requested_s=5.0),  # 10 s of work expected
        job("b", 0, "", 1, requested_s=9.0),
        job("c", 0, "", 1, 1),  # no request: endless
    ]
    for name in ("sjf", "srpt"):
        got = starts(name, jobs, knowledge="declared")
        assert got == {"b": [0], "a": [1, 10], "c": [19, 20]}


@pytest.mark.parametrize("name", ["critical_path", "heft", "tez_cp"])
def test_paths_are_those_of_expected_durations(name):
    def dag(name: str, submit_s: float, short: float, long: float) -> dict:
        stages = [
            {"name": "s", "durations_s": [short]},
            {"name": "l", "durations_s": [long]},
            {"name": "e", "durations_s": [1.0], "parents": {"l": "one_to_one"}},
        ]
        return {"job_id": name, "submit_s": submit_s, "template": "t", "stages": stages}

    # the first run shows that s takes 20 s and l 1: in the second run s has the longest path
    jobs = [dag("a", 0, 20.0, 1.0), dag("b", 30.0, 2.0, 10.0)]
    workload = sim.Workload.from_jobs(jobs)
    for knowledge, order in (("run", [30, 32, 42]), ("true", [40, 30, 42])):
        policy = policies.build(name, knowledge=knowledge, refresh_s=1.0)
        assert sim.simulate(workload, ONE, policy).task_start[3:].tolist() == order


@pytest.mark.parametrize("name", NAMES)
def test_wrong_sources_are_refused_with_the_valid_ones(name):
    with pytest.raises(sim.InputError, match="knowledge must be 'true' or 'history' or 'run' or"):
        policies.build(name, knowledge="predicted")


@pytest.mark.parametrize(
    ("name", "wrong", "valid"),
    [
        ("strip", "run", "'true' or 'declared'"),
        ("easy", "history", "'declared' or 'true' or 'run'"),
        ("conservative", "requested", "'declared' or 'true' or 'run'"),
        ("wing_agg", "run", "'history' or 'true'"),
    ],
)
def test_a_policy_refuses_what_it_cannot_know(name, wrong, valid):
    with pytest.raises(sim.InputError, match=f"knowledge must be {valid}, not '{wrong}'"):
        policies.build(name, knowledge=wrong)


def test_heft_builds_its_offline_schedule_of_true_durations_alone():
    workload = sim.Workload.from_jobs([job("a", 0, "t", 3, 4)])
    assert policies.build("heft").built_s(workload, ONE) == 7
    built = policies.build("heft", knowledge="run").built_s(workload, ONE)
    assert built != built


def test_the_estimate_on_arrival_is_compared_with_the_truth():
    jobs = [job("a0", 0, "a", 4), job("a1", 6, "a", 8)]
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, ONE, policies.build("sjf", knowledge="run", refresh_s=1.0))
    assert result.job_estimate.tolist() == [30, 4]
    assert started(result) == "a0a1"


@pytest.mark.parametrize("knowledge", ["history", "run", "declared"])
@pytest.mark.parametrize("name", NAMES)
def test_schedules_by_estimates_are_valid_and_have_the_bits_of_the_naive_simulator(name, knowledge):
    policy = policies.build(name, knowledge=knowledge, refresh_s=3.0)
    for cluster in (CLUSTERS["slots"], CLUSTERS["machines-hard"]):
        workload = recurring(5, n_jobs=20)
        fast = sim.simulate(workload, cluster, policy, record="tasks")
        invariants.check(fast, policy.fit)
        slow = reference.simulate(workload, cluster, policy)
        np.testing.assert_array_equal(fast.task_start, slow.task_start)
        np.testing.assert_array_equal(fast.task_machine, slow.task_machine)
