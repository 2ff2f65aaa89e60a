"""Mean waits of groups of jobs, against loops over all jobs."""

import numpy as np
import pytest

import sim
from sweep.stats.job_groups import keys_of, mean_waits
from tests.sim.metrics.test_jobs import job


def workload(n, seed):
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(n):
        queue, user, qos = rng.choice(["a", "b", "c"]), rng.choice(["u", ""]), rng.choice(["", "h"])
        jobs.append(
            job(0, [1] * int(rng.integers(1, 9)), queue=queue, user=user)
            | {"qos": str(qos), "account": "", "partition": "a|b|c"}
        )
    return jobs


@pytest.mark.parametrize("seed", range(5))
def test_means_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    jobs = workload(30, seed)
    wait_s = rng.uniform(0, 100, (3, 30))
    wait_s[1, rng.integers(0, 30, 4)] = np.nan
    w = sim.Workload.from_jobs(jobs)
    assert keys_of(w) == ["partition", "qos", "user", "width"]
    groups = {(g.by, g.group): g for g in mean_waits(w, wait_s)}
    for by, column in (("partition", "queue"), ("qos", "qos"), ("user", "user")):
        for name in {j[column] for j in jobs}:
            rows = [
                k for k, j in enumerate(jobs) if j[column] == name and not np.isnan(wait_s[1, k])
            ]
            group = groups.pop((by, name or "(none)"))
            assert group.jobs == len(rows)
            for run in range(3):
                mean = sum(wait_s[run, k] for k in rows) / len(rows)
                assert group.wait_mean_s[run] == pytest.approx(mean)
    assert {by for by, _ in groups} == {"width"}
    assert sum(g.jobs for g in groups.values()) == 30 - np.isnan(wait_s[1]).sum()


def test_a_log_without_partitions_goes_by_queue():
    w = sim.Workload.from_jobs([job(0, [1], queue="q"), job(1, [1] * 2, queue="q")])
    (queue, narrow, wide) = mean_waits(w, np.array([[1.0, 3.0]]))
    assert (queue.by, queue.group, queue.jobs, queue.wait_mean_s.tolist()) == ("queue", "q", 2, [2])
    assert [(g.group, g.jobs) for g in (narrow, wide)] == [("1", 1), ("2-3", 1)]
    assert not mean_waits(w, np.full((1, 2), np.nan))
    (alone,) = mean_waits(w, np.array([[1.0, 3.0]]), keys=["queue"])
    assert alone.by == "queue"


def test_partitions_that_are_no_queues_are_groups_beside_them():
    jobs = [job(0, [1], queue="team") | {"partition": p} for p in ("fast", "", "fast|slow")]
    w = sim.Workload.from_jobs(jobs)
    assert keys_of(w) == ["partition", "queue", "width"]
    groups = mean_waits(w, np.array([[1.0, 2.0, 4.0]]), keys=["partition"])
    assert [(g.group, g.wait_mean_s.tolist()) for g in groups] == [
        ("fast", [1.0]), ("fast|slow", [4.0]), ("(none)", [2.0]),
    ]  # fmt: skip
    unnamed = sim.Workload.from_jobs([j | {"partition": ""} for j in jobs])
    assert keys_of(unnamed) == ["queue", "width"]
