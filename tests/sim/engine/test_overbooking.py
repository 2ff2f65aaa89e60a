"""Fungible resources: tasks slow down on an overbooked machine, as in the reference."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from tests.examples import examples
from tests.sim.engine import reference
from tests.sim.engine.test_kernel import assert_same
from tests.sim.engine.test_packing import Packs


def jobs_of(*rows):
    """Build one-task jobs from (submit_s, duration_s, demand)."""
    return sim.Workload.from_jobs(
        [
            {"submit_s": float(t), "stages": [{"durations_s": [float(d)], "demand": demand}]}
            for t, d, demand in rows
        ]
    )


def finishes(workload, cluster, **params):
    policy = policies.build("fifo", **params)
    return sim.simulate(workload, cluster, policy).job_finish.tolist()


ONE = sim.Cluster.machines(1, cpu=4, disk=1, net=1, fungible=["net", "disk"])


def test_tasks_that_share_an_overloaded_disk_slow_down_until_it_is_relieved():
    workload = jobs_of(
        (0, 10, {"cpu": 1, "disk": 1}), (5, 10, {"cpu": 1, "disk": 1}), (5, 7, {"cpu": 1})
    )
    # from 5 s on both at half speed: the first ends its other half at 15, the second at 20
    assert finishes(workload, ONE, fit_resources=("cpu",)) == [15, 20, 12]
    assert finishes(workload, ONE, fit="skip") == [10, 20, 12]


def test_a_task_goes_at_the_least_of_its_resources_rates():
    workload = jobs_of(
        (0, 6, {"cpu": 1, "disk": 1, "net": 0.5}),
        (0, 6, {"cpu": 1, "disk": 1}),
        (0, 6, {"cpu": 1, "net": 1}),
    )
    # disk at 1/2 holds the first two; net at 2/3 the third, which ends at 9; disk's are done at 12
    assert finishes(workload, ONE, fit_resources=("cpu",)) == [12, 12, 9]


def test_only_the_machine_that_is_overbooked_is_slow():
    cluster = sim.Cluster.machines(2, cpu=2, disk=1, fungible=("disk",))
    row = (0, 4, {"cpu": 1, "disk": 1})
    assert finishes(jobs_of(row, row, row), cluster, fit_resources=("cpu",)) == [8, 8, 4]


def test_held_gang_slots_count_as_demanded():
    jobs = [
        {
            "submit_s": 0.0,
            "min_tasks": 2,
            "stages": [{"durations_s": [4.0, 8.0], "demand": {"cpu": 1, "disk": 0.5}}],
        },
        {"submit_s": 0.0, "stages": [{"durations_s": [10.0], "demand": {"cpu": 1, "disk": 1}}]},
    ]
    cluster = sim.Cluster.machines(1, cpu=3, disk=1, fungible=("disk",))
    # one of the gang ends at 8, but its slot stays held: all go on at half speed until 16
    workload = sim.Workload.from_jobs(jobs)
    assert finishes(workload, cluster, fit_resources=("cpu",)) == [16, 18]


def crowd(seed, n_jobs=70):
    rng = np.random.default_rng(seed)
    jobs = []
    for t in np.sort(rng.uniform(0, 35, n_jobs)):
        demand = {
            "cpu": float(rng.integers(1, 4)) / 2,
            "disk": float(rng.integers(0, 5)) / 4,
            "net": float(rng.integers(0, 5)) / 8,
        }
        durations = rng.lognormal(1.5, 0.7, int(rng.integers(1, 6))).tolist()
        jobs.append(
            {"submit_s": float(t), "stages": [{"durations_s": durations, "demand": demand}]}
        )
    return sim.Workload.from_jobs(jobs)


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
@pytest.mark.parametrize("fit_resources", [("cpu",), ("cpu", "net")], ids=["cpu", "cpu-net"])
def test_same_bits_as_the_reference_in_a_crowd(fit, fit_resources):
    cluster = sim.Cluster.machines(3, cpu=6, disk=1, net=1, fungible=("disk", "net"))
    workload = crowd(1)
    policy = policies.build("fifo", fit=fit, fit_resources=fit_resources)
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    slow = reference.simulate(workload, cluster, policy)
    for name in ("task_start", "task_finish", "task_machine", "job_finish"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    ran = fast.task_finish - fast.task_start
    late = ran > workload.columns.task_duration * 1.01
    assert late.mean() > 0.5, "most tasks must be slowed down for this to mean anything"


def overbooked(rng):
    """Draw jobs of a few demands, many at once, on few machines whose disks fill up first."""
    demands = [
        {
            "cpu": float(rng.choice([0.5, 1.0])),
            "disk": float(rng.choice([0.0, 0.25, 1.0, 1.0])),
            "net": float(rng.choice([0.0, 0.0, 0.5, 1.0])),
        }
        for _ in range(3)
    ]
    jobs = []
    for submit_s in np.cumsum(rng.choice([0.0, 0.0, 0.5, 2.0], rng.integers(4, 12))):
        durations = rng.choice([0.5, 1.0, 4.0, 20.0], rng.integers(1, 6)).tolist()
        stage = {"durations_s": durations, "demand": demands[rng.integers(3)]}
        jobs.append({"submit_s": float(submit_s), "stages": [stage]})
    n = int(rng.integers(1, 3))
    cluster = sim.Cluster.machines(n, cpu=5, disk=1, net=1, fungible=("disk", "net"))
    return sim.Workload.from_jobs(jobs), cluster


def test_same_bits_where_full_machines_take_more():
    n_slowed = 0
    for seed in range(examples(300)):
        rng = np.random.default_rng([seed, 7])
        workload, cluster = overbooked(rng)
        packing = {
            "overbook": True,
            "remaining": float(rng.choice([0.0, 0.2, 2.0])),
            "bundle": int(rng.choice([1, 3])),
        }
        stages = {"weight": rng.choice([0.2, 1.0, 5.0], workload.n_stages)}
        columns = {"task_priority": rng.choice([0.3, 1.0], workload.n_tasks)}
        policy = Packs(packing=packing, stages=stages, columns=columns if seed % 3 == 0 else {})
        fast, _ = assert_same(workload, cluster, policy)
        ran = fast.task_finish - fast.task_start
        n_slowed += (ran > workload.columns.task_duration * 1.01).sum()
    assert n_slowed > 3 * seed


def test_an_overfull_heap_of_ends_is_rebuilt_without_its_stale_entries():
    cluster = sim.Cluster.machines(1, cpu=400, disk=1, fungible=("disk",))
    rows = [(t, 500 + 3 * t, {"cpu": 1, "disk": 1}) for t in range(40)]
    policy = policies.build("fifo", fit_resources=("cpu",))
    workload = jobs_of(*rows)
    n_pushed = 40 * 41 / 2  # each arrival slows down all that run: far more than the heap's room
    assert n_pushed > 2 * 40 + 64
    fast = sim.simulate(workload, cluster, policy)
    slow = reference.simulate(workload, cluster, policy)
    np.testing.assert_array_equal(fast.job_finish, slow.job_finish)


def test_no_resource_is_used_beyond_its_capacity():
    # 40 disk-seconds of work on one disk take 40 s, however they overlap
    rows = [(i, 10, {"cpu": 1, "disk": 1}) for i in range(4)]
    assert max(finishes(jobs_of(*rows), ONE, fit_resources=("cpu",))) == pytest.approx(40)


def test_rigid_resources_cannot_be_left_out():
    workload = jobs_of((0, 1, {"cpu": 1}))
    with pytest.raises(sim.PolicyError, match="leaves out cpu, which can't be overbooked"):
        finishes(workload, ONE, fit_resources=("disk",))
    with pytest.raises(sim.PolicyError, match="unknown resource in fit_resources 'dusk'; did you"):
        finishes(workload, ONE, fit_resources=("cpu", "dusk"))


def test_a_fungible_resource_must_be_one_of_the_machines():
    with pytest.raises(sim.InputError, match="unknown fungible resource 'dsk'; did you mean"):
        sim.Cluster.machines(1, cpu=1, disk=1, fungible=["dsk"])


def test_a_cluster_describes_its_fungible_resources():
    assert ONE.fungible == ("disk", "net")
    assert "disk, net fungible" in ONE.describe()
    assert ONE.with_queues("hard").fungible == ONE.fungible
