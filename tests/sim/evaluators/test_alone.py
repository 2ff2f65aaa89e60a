"""Each job alone on machines of its own."""

from __future__ import annotations

import dataclasses

import pytest

import policies
import sim
from sim.bounds.machine_counts import machines_per_job
from sim.evaluators import evaluate

SHAPE = {"cpu": 1.0, "mem": 1.0}


def jobs(n: int = 8) -> sim.Workload:
    demand = {"cpu": 0.5, "mem": 0.25}
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 100.0 * index,
                "stages": [
                    {"name": "a", "durations_s": [2.0] * (4 + index), "demand": demand},
                    {"name": "b", "durations_s": [3.0], "demand": demand, "parents": ["a"]},
                ],
            }
            for index in range(n)
        ]
    )


def test_every_job_has_its_machines_to_itself():
    workload = jobs()
    cluster = sim.Cluster.machines(3, **SHAPE)
    metrics, table = evaluate(
        "alone", sim.simulate, workload, cluster, policies.build("fifo"), 4, low=0.5, high=2.0
    )
    counts = machines_per_job(workload, SHAPE, 4, 0.5, 2.0)
    assert table["machines"].to_pylist() == counts.tolist()
    waves = [-(-(4 + index) // (2 * n)) for index, n in enumerate(counts.tolist())]
    assert table["makespan_s"].to_pylist() == [2.0 * w + 3.0 for w in waves]
    assert metrics["makespan_mean_s"] == sum(2.0 * w + 3.0 for w in waves) / len(waves)
    for row in table.to_pylist():
        assert row["new_lb"] <= row["tight_lb"] <= row["makespan_s"]
        assert row["factor"] == pytest.approx(row["cp_len"] / row["twork"])
        assert row["built_s"] != row["built_s"]  # FIFO builds nothing


def test_what_a_policy_builds_is_kept():
    fifo = policies.spec("fifo")

    @dataclasses.dataclass(frozen=True)
    class Builds(fifo):  # type: ignore[misc, valid-type]
        def built_s(self, workload, cluster):  # type: ignore[no-untyped-def]
            return float(workload.n_tasks * len(cluster.capacity))

    cluster = sim.Cluster.machines(1, **SHAPE)
    _, table = evaluate("alone", sim.simulate, jobs(3), cluster, Builds(), 0)
    rows = table.to_pylist()
    assert [row["built_s"] for row in rows] == [
        (5 + index) * rows[index]["machines"] for index in range(3)
    ]


def test_the_same_machines_for_every_policy_and_others_for_another_seed():
    cluster = sim.Cluster.machines(1, **SHAPE)
    result = [
        evaluate("alone", sim.simulate, jobs(), cluster, policies.build(name), seed)[1]["machines"]
        for name, seed in (("fifo", 0), ("sjf", 0), ("fifo", 1))
    ]
    assert result[0].equals(result[1])
    assert not result[0].equals(result[2])
