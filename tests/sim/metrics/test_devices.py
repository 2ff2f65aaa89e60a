"""Free and unusable devices against plain lists."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.engine.plan import Mix
from sim.metrics.devices import device_samples

KINDS = [
    {"count": 2, "class": "a", "cpu": 6, "devices": {"gpu": 3}},
    {"class": "b", "cpu": 12, "devices": {"gpu": 4}},
    {"cpu": 8},
]


def crowd(seed=3, n=60):
    rng = np.random.default_rng(seed)
    jobs = []
    for t in np.sort(rng.integers(0, 40, n)):
        gpu = float(rng.choice([0.0, 0.25, 0.5, 0.7, 1.0, 2.0]))
        stage = {"durations_s": [float(rng.integers(0, 20))], "runs_on": str(rng.choice(["", "a"]))}
        stage["demand"] = {"cpu": float(rng.integers(0, 5)), "gpu": gpu}
        jobs.append({"submit_s": float(t), "stages": [stage]})
    return sim.Workload.from_jobs(jobs)


def unusable_devices(cluster, mix, free, devices):
    """Return the number of free devices, and the part unusable for the next task."""
    total = 0.0
    for m in range(cluster.n_machines):
        for demand, allowed, weight in zip(mix.demand, mix.allowed, mix.weight, strict=True):
            gpu = demand[1] / 1e6
            useful = [d for d in devices[m] if d >= min(gpu, 1) - 1e-9]
            fits = (demand / 1e6 <= np.array(free[m]) + 1e-9).all()
            if not (gpu and fits and allowed >> cluster.machine_class[m] & 1):
                useful = []
            if len(useful) < np.ceil(gpu):
                useful = []
            total += weight * (sum(devices[m]) - sum(useful))
    return [sum(map(sum, devices)), total]


@pytest.mark.parametrize("policy", ["best_fit", "fgd"])
def test_unusable_devices_equal_those_of_plain_lists(policy):
    workload, cluster = crowd(), sim.Cluster.mixed(KINDS)
    r = sim.simulate(workload, cluster, policies.build(policy), record="tasks")
    mix, demand = Mix.from_columns(workload.columns, cluster), workload.columns.stage_demand_f
    expected = []
    for t in r.job_submit:
        free = cluster.capacity.tolist()
        devices = [[1.0] * int(row[1]) for row in free]
        for task in np.flatnonzero((r.task_start < t) & (r.task_finish > t)):
            m, (cpu, gpu) = int(r.task_machine[task]), demand[task]
            free[m][0] -= cpu
            free[m][1] -= gpu
            for d in range(len(devices[m])):
                if int(r.task_devices[task]) >> d & 1:
                    devices[m][d] -= min(gpu, 1.0)
        expected.append(unusable_devices(cluster, mix, free, devices))
    np.testing.assert_allclose(device_samples(r), expected, atol=1e-6)
    free, useless = np.array(expected).T
    assert r.metrics["devices_unallocated"] == pytest.approx(free[-1] / 10)
    assert r.metrics["fragmentation"] == pytest.approx((useless / free)[free > 1e-9].mean())
    assert np.ptp(useless / np.maximum(free, 1e-9)) > 0.1, "it must vary for this to mean anything"


def test_a_cluster_without_devices_has_none_of_it():
    r = sim.simulate(crowd(), sim.Cluster.slots(9), policies.build("fifo"), record="tasks")
    assert not {"devices_unallocated", "fragmentation"} & r.metrics.keys()
    assert {"devices_unallocated", "fragmentation"} <= sim.metrics.METRICS.keys()
