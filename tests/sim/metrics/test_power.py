"""Energy, carbon and cost: by hand, and against a naive loop over seconds and tasks."""

import numpy as np
import pytest

import policies
import sim
from sim.cluster.changes import with_changes

NAMES = ("energy_kwh", "carbon_kg", "cost")
GRID = [[0, 100], [1800, 300]]


def measured(cluster, jobs, policy="fifo"):
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(policy))
    return {name: result.metrics[name] for name in NAMES if name in result.metrics}, result


JOBS = [
    {"submit_s": 0.0, "stages": [{"durations_s": [3600.0] * 2, "demand": {"cpu": 4}}]},
    {"submit_s": 0.0, "stages": [{"durations_s": [3600.0], "demand": {"cpu": 8}, "watts": 50.0}]},
]


def test_an_hour_by_hand():
    cluster = sim.Cluster.machines(2, cpu=8).with_power(
        {
            "idle_w": 100,
            "busy_w": 300,
            "carbon_g_per_kwh": GRID,
            "price_per_kwh": 0.5,
            "machine_h": 2,
        }
    )
    metrics, _ = measured(cluster, JOBS)
    # a full machine 300 Wh, the other 100 Wh idle and 50 Wh of its task; 200 g/kWh on average
    assert metrics == pytest.approx(
        {"energy_kwh": 0.45, "carbon_kg": 0.09, "cost": 0.225 + 4}, rel=1e-12
    )


def test_a_machine_that_goes_draws_and_costs_nothing():
    cluster = with_changes(sim.Cluster.machines(2, cpu=8), [{"at_s": 1800, "machines": -1}])
    metrics, _ = measured(cluster.with_power({"idle_w": 100, "busy_w": 300, "machine_h": 2}), JOBS)
    # 2 h and half an hour of a machine; half an hour of the lost attempt, and again an hour
    assert metrics == pytest.approx(
        {"energy_kwh": 0.25 + 0.2 + 0.025 + 0.05, "cost": 5.0}, rel=1e-12
    )


def test_without_power_there_are_no_metrics_of_it():
    assert measured(sim.Cluster.machines(2, cpu=8), JOBS)[0] == {}


def naive(result, spec):
    """Sum watts second by second."""
    cluster, tasks = result.cluster, result.tasks.to_pylist()
    stages = result.workload.columns
    rows = tasks + [row | {"finish_s": row["stop_s"]} for row in result.stops.to_pylist()]
    end_s = max(row["finish_s"] for row in rows)
    joules = grams = 0.0
    for second in range(int(end_s)):
        watts = 0.0
        for m in range(cluster.n_machines):
            kind = cluster.classes[cluster.machine_class[m]]
            outages = zip(*cluster.outages.columns, strict=True)
            if any(o == m and down <= second < up for o, down, up in outages):
                continue
            watts += spec["idle_w"][kind]
            for row in rows:
                if row["machine"] == m and row["start_s"] <= second < row["finish_s"]:
                    demand = stages.stage_demand[row["stage"], 0] * stages.quantum[0]
                    share = demand / cluster.capacity[m, 0]
                    watts += (spec["busy_w"][kind] - spec["idle_w"][kind]) * share
        joules += watts
        grid = [g for at_s, g in spec["carbon_g_per_kwh"] if at_s <= second % spec["repeat_s"]]
        grams += watts * grid[-1]
    return {"energy_kwh": joules / 3.6e6, "carbon_kg": grams / 3.6e9}


@pytest.mark.parametrize("seed", range(6))
def test_random_runs_agree_with_a_sum_over_seconds(seed):
    rng = np.random.default_rng(seed)
    spec = {
        "idle_w": {"a": 10.0, "b": 20.0},
        "busy_w": {"a": 30.0, "b": 80.0},
        "carbon_g_per_kwh": [[0, 7], [3, 0], [8, 20]],
        "repeat_s": 11,
    }
    jobs = [
        {
            "submit_s": float(rng.integers(0, 20)) * (i > 0),
            "stages": [
                {
                    "durations_s": [float(d) for d in rng.integers(1, 15, rng.integers(1, 4))],
                    "demand": {"cpu": int(rng.integers(1, 4))},
                }
            ],
        }
        for i in range(6)
    ]
    kinds = [{"count": 2, "class": "a", "cpu": 3}, {"count": 1, "class": "b", "cpu": 5}]
    cluster = with_changes(
        sim.Cluster.mixed(kinds),
        [{"at_s": 6, "machines": -2, "class": "a"}, {"at_s": 12, "machines": 2, "class": "b"}],
    )
    metrics, result = measured(cluster.with_power(spec), jobs)
    assert len(result.stops) or seed not in (0, 1)
    assert metrics == pytest.approx(naive(result, spec), rel=1e-9)
