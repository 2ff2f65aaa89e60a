"""DAGPS online, its baselines, and the profiles that it uses."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from tests.policies.small import runs_of


def crowd(n_jobs=40, queues=("a", "b")):
    rng = np.random.default_rng(3)
    jobs = []
    for i, t in enumerate(np.sort(rng.uniform(0, 60, n_jobs))):
        stages = [
            {
                "name": f"s{s}",
                "durations_s": rng.lognormal(1.5, 0.5, 5).tolist(),
                "demand": {
                    "cpu": 0.05 + 0.3 * float(rng.random()),
                    "disk": 0.05 + 0.3 * float(rng.random()),
                },
                "parents": [f"s{s - 1}"] if s else [],
            }
            for s in range(3)
        ]
        queue = queues[i % len(queues)]
        jobs.append(
            {"submit_s": float(t), "template": f"t{i % 4}", "queue": queue, "stages": stages}
        )
    return sim.Workload.from_jobs(jobs)


CLUSTER = sim.Cluster.machines(4, cpu=1, disk=1, fungible=["disk"])


def demanded(result, resource, time_s):
    """Return the total demand for a resource at each time."""
    c = result.workload.columns
    r = c.resources.index(resource)
    demand = np.repeat(c.stage_demand_f[:, r], np.diff(c.stage_task0))
    running = (result.task_start <= time_s[:, None]) & (time_s[:, None] < result.task_finish)
    return running @ demand


@pytest.mark.parametrize("name", ["tez", "tez_cp", "tez_drf"])
def test_tez_checks_rigid_resources_only(name):
    workload = crowd()

    def slowed(**params):
        policy = policies.build(name, **params)
        run = sim.simulate(workload, CLUSTER, policy, record="tasks")
        return (run.task_finish - run.task_start > workload.columns.task_duration * 1.001).mean()

    assert slowed() > 0.05
    assert slowed(fit_resources=("cpu", "disk")) == 0


def test_tez_tetris_never_overbooks_and_dagps_does_by_default():
    workload = crowd()

    def slowed(name, **params):
        policy = policies.build(name, **params)
        run = sim.simulate(workload, CLUSTER, policy, record="tasks")
        return (run.task_finish - run.task_start > workload.columns.task_duration * 1.001).any()

    assert not slowed("tez_tetris")
    assert not slowed("dagps", overbook=False)
    assert slowed("dagps")


def test_dagps_with_nothing_but_packing_is_tetris():
    """No priorities (one stage of one task a job), no remaining work, bundle or overbooking."""
    rng = np.random.default_rng(0)
    jobs = [
        {
            "submit_s": float(t),
            "stages": [
                {
                    "durations_s": [float(rng.integers(1, 30))],
                    "demand": {"cpu": float(rng.uniform(0.1, 0.6)), "disk": 0.3},
                }
            ],
        }
        for t in np.sort(rng.uniform(0, 60, 80))
    ]
    workload = sim.Workload.from_jobs(jobs)
    ours = policies.build("dagps", m=0, bundle=1, overbook=False)
    dagps = sim.simulate(workload, CLUSTER, ours)
    tetris = sim.simulate(workload, CLUSTER, policies.build("tetris", m=0, rp=1))
    np.testing.assert_array_equal(dagps.job_finish, tetris.job_finish)
    full = sim.simulate(workload, CLUSTER, policies.build("dagps", overbook=False))
    assert full.job_finish.tolist() != tetris.job_finish.tolist()


def test_dagps_without_order_bundles_and_overbooking_is_tetris_breadth_first(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a schedule was built")

    monkeypatch.setattr("policies.dagps.online.offline_order", forbidden)
    workload = crowd(queues=("a",))
    parts = {"order_weight": 0, "bundle": 1, "overbook": False, "kappa": np.inf}
    ours = policies.build("dagps", m=1, rp=0.9, srpt="unfinished", **parts)
    dagps = sim.simulate(workload, CLUSTER, ours)
    tetris = sim.simulate(workload, CLUSTER, policies.build("tez_tetris"))
    np.testing.assert_array_equal(dagps.job_finish, tetris.job_finish)
    assert ours.knows.durations == "learnt"


@pytest.mark.parametrize("fairness", ["slots", "drf"])
def test_the_bound_on_unfairness_holds_back_the_favoured_group(fairness):
    """Jobs of queue a are the short ones: alone, remaining work would serve them first."""
    rng = np.random.default_rng(1)
    jobs = []
    for i in range(40):
        tasks = rng.uniform(1, 2, 4 if i % 2 else 40).tolist()
        stages = [{"durations_s": tasks, "demand": {"cpu": 0.25, "disk": 0.1}}]
        jobs.append({"submit_s": 0.0, "queue": "ba"[i % 2], "stages": stages})
    workload = sim.Workload.from_jobs(jobs)
    c = workload.columns
    in_queue_a = np.repeat(c.job_queue[c.stage_job], np.diff(c.stage_task0)) == c.queue_names.index(
        "a"
    )

    def started_in_a(kappa):
        policy = policies.build("dagps", kappa=kappa, fairness=fairness, m=1.0)
        result = sim.simulate(workload, CLUSTER, policy, record="tasks")
        first = np.argsort(result.task_start, kind="stable")[: in_queue_a.sum()]
        return in_queue_a[first].mean()

    assert started_in_a(np.inf) > 0.75
    assert started_in_a(0.1) < 0.65


def test_profiles_decide_which_job_is_short():
    """A template whose runs were short goes first; the true duration of its next run is unknown."""
    quick, slow = runs_of("quick", [1.0]), runs_of("slow", [50.0])
    later = [
        {"submit_s": 200.0, "template": "slow", "stages": [{"durations_s": [1.0]}]},
        {"submit_s": 200.0, "template": "quick", "stages": [{"durations_s": [50.0]}]},
    ]
    holder = {"submit_s": 199.0, "template": "h", "stages": [{"durations_s": [2.0]}]}
    workload = sim.Workload.from_jobs([*quick, *slow, holder, *later])
    starts = {
        knowledge: sim.simulate(
            workload, sim.Cluster.slots(1), policies.build("dagps", knowledge=knowledge)
        ).job_start[-2:]
        for knowledge in ("history", "run", "true")
    }
    assert starts["history"].tolist() == starts["run"].tolist() == [251, 201]
    assert starts["true"].tolist() == [201, 202]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("m", -1.0),
        ("order_weight", 1.5),
        ("rp", 2.0),
        ("kappa", -0.1),
        ("bundle", 99),
        ("refresh_s", 0),
    ],
)
def test_a_parameter_out_of_its_range_is_an_error(name, value):
    with pytest.raises(sim.InputError, match=f"policy dagps: {name} must be"):
        policies.build("dagps", **{name: value})


@pytest.mark.parametrize(
    ("settings", "second_start"),
    [
        ({"priority": "printed"}, 10.0),
        ({"priority": "printed", "order_weight": 0.0}, 20.0),
        ({"priority": "remaining"}, 20.0),
        ({"priority": "remaining", "order_weight": 0.0}, 20.0),
    ],
)
def test_only_the_printed_priority_lets_new_jobs_overtake(settings, second_start):
    """Two jobs of two stages each: is the first's last stage or the second's first one first?"""
    demand = {"cpu": 1.0, "disk": 0.1}
    first = {"name": "a", "durations_s": [10.0], "demand": demand}
    last = {"name": "b", "durations_s": [10.0], "demand": demand, "parents": ["a"]}
    jobs = [{"submit_s": t, "stages": [first, last]} for t in (0.0, 5.0)]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.machines(1, cpu=1, disk=1)
    run = sim.simulate(workload, cluster, policies.build("dagps", m=0, **settings))
    assert run.job_start.tolist() == [0.0, second_start]


def test_by_remaining_tasks_a_new_job_that_fills_a_machine_better_goes_first():
    """Remaining tasks are ranked from 1 on; they have no priority above all other jobs."""
    small, large = ({"cpu": cpu, "disk": 0.1} for cpu in (0.6, 1.0))
    first = [{"name": "a", "durations_s": [10.0], "demand": small}]
    first += [{"name": "b", "durations_s": [10.0], "demand": small, "parents": ["a"]}]
    jobs = [{"submit_s": 0.0, "stages": first}]
    jobs += [{"submit_s": 5.0, "stages": [{"durations_s": [10.0], "demand": large}]}]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=1, disk=1)
    run = sim.simulate(workload, cluster, policies.build("dagps", m=0, priority="remaining"))
    assert run.job_start.tolist() == [0.0, 10.0]


def test_srpt_unfinished_counts_running_tasks_and_pending_does_not():
    """A task of the second job runs: 8 s of it are unfinished, 4 s pending; the third has 6 s."""
    cluster = sim.Cluster.machines(2, cpu=1, disk=1)
    demand = {"cpu": 1.0, "disk": 0.1}
    times = [(0.0, [1.0]), (0.0, [4.0, 4.0]), (0.5, [6.0])]
    workload = sim.Workload.from_jobs(
        [{"submit_s": t, "stages": [{"durations_s": d, "demand": demand}]} for t, d in times]
    )

    def begins(srpt):
        policy = policies.build("dagps", m=5, order_weight=0.0, srpt=srpt, knowledge="true")
        return sim.simulate(workload, cluster, policy).job_start[2]

    assert (begins("unfinished"), begins("pending")) == (1.0, 4.0)
