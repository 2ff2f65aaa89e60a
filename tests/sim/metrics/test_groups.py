"""Waits of groups of jobs, against all jobs of the group taken by themselves."""

import numpy as np
import pyarrow as pa
import pytest

import sim
from sim import metrics
from sim.base.errors import InputError
from sim.evaluators import simulation
from sim.metrics import groups
from tests.sim.metrics.test_jobs import job, run

JOBS = [
    job(0, [4], queue="a.b", user="u"),
    job(0, [4] * 3, queue="c", user="u"),
    job(0, [4] * 4, queue="a.b", user="v"),
    job(0, [4] * 9, queue="c", user=""),
]
STARTS, FINISHES = [0, 10, 20, 50], [4, 14, 24, np.nan]


def by(key, cluster, jobs=None):
    w = sim.Workload.from_jobs(jobs or JOBS)
    n = w.n_jobs
    done = run(w, cluster, STARTS[:n], FINISHES[:n])
    return groups.compute_by(done, done.bounds, [key])


def test_each_group_has_the_metrics_of_its_jobs_done():
    computed = by("queue", sim.Cluster.slots(9))
    assert computed["wait_mean_s.queue.a.b"] == 10
    assert computed["wait_p95_s.queue.a.b"] == pytest.approx(0.95 * 20)
    assert computed["wait_p99_s.queue.c"] == 10
    assert computed["slowdown_p95.queue.c"] == 14 / 4
    assert len(computed) == 2 * (len(groups.NAMES) - 1)  # no deadlines
    assert all(groups.split(name) for name in computed)
    assert (computed["jct_mean_s.queue.a.b"], computed["jct_p95_s.queue.c"]) == (14, 14)
    assert {name.rpartition(".")[2] for name in by("user", sim.Cluster.slots(9))} == {
        "u", "v", "(none)",
    }  # fmt: skip


def test_groups_have_their_missed_deadlines():
    jobs = [job(0, [4], queue="c", deadline_s=d) for d in (3.0, 20.0, None)]
    jobs += [job(0, [4], queue="d")]
    computed = by("queue", sim.Cluster.slots(9), jobs)
    assert computed["deadlines_missed.queue.c"] == 0.5
    assert np.isnan(computed["deadlines_missed.queue.d"])


def test_widths_are_powers_of_two_of_cpus():
    names = [n for n in by("width", sim.Cluster.slots(9)) if n.startswith("wait_p50_s")]
    assert names == [f"wait_p50_s.width.{w}" for w in ("1", "2-3", "4-7", "8-15")]
    names.sort()
    assert sorted(["x", *names], key=groups.metric_order)[:4] == [
        f"wait_p50_s.width.{w}" for w in ("1", "2-3", "4-7", "8-15")
    ]
    wide = [job(0, [4], {"cpu": 6}), job(0, [4], {"cpu": 1})]
    computed = by("width", sim.Cluster.machines(2, cpu=8), wide)
    assert (computed["wait_mean_s.width.4-7"], computed["wait_mean_s.width.1"]) == (0, 10)


def test_small_groups_are_one(monkeypatch):
    monkeypatch.setattr(groups, "MAX_GROUPS", 1)
    w = sim.Workload.from_jobs([*JOBS, job(0, [1], queue="d")])
    computed = {name: mask.tolist() for name, mask in groups.members(w, "queue")}
    assert computed == {"a.b": [1, 0, 1, 0, 0], "(others)": [0, 1, 0, 1, 1]}


def grouped(key, values):
    """Return the jobs of each group by a column of these values."""
    w = sim.Workload.from_jobs([job(k, [1]) for k in range(len(values))])
    jobs = w.jobs.drop_columns([key] if key in w.jobs.column_names else []).append_column(
        key, values if isinstance(values, pa.Array) else pa.array(values)
    )
    w = sim.Workload.from_tables(jobs=jobs, stages=w.stages, tasks=w.tasks)
    by_name = groups.members(w, key)
    return {name: np.flatnonzero(mask).tolist() for name, mask in by_name}


def test_any_column_of_jobs_makes_groups():
    assert grouped("priority", [3.0, 0.5, 3.0, 10.0]) == {"0.5": [1], "3": [0, 2], "10": [3]}
    assert grouped("site", ["b", "a", None, "", "b"]) == {"a": [1], "b": [0, 4], "(none)": [2, 3]}
    assert grouped("urgent", [True, False, None]) == {"0": [1], "1": [0], "(none)": [2]}
    assert grouped("team", pa.array(["x", None, "x"]).dictionary_encode()) == {
        "x": [0, 2], "(none)": [1],
    }  # fmt: skip


def test_numbers_of_many_values_are_groups_by_powers_of_two():
    many = grouped("limit_s", [0.25 * k for k in range(30)] + [None, float("nan"), 1e9])
    assert many["below 1"] == [0, 1, 2, 3]
    assert many["1-2"] == [4, 5, 6, 7]
    assert many["4-8"] == list(range(16, 30))
    assert many["(none)"] == [30, 31]
    assert many[f"{2**29}-{2**30}"] == [32]
    assert sorted(row for rows in many.values() for row in rows) == list(range(33))


def test_a_key_that_no_job_has_is_refused_before_the_run():
    def run_nothing(*_, **__):
        raise AssertionError

    w = sim.Workload.from_jobs(JOBS)
    with pytest.raises(InputError, match="'qeue'"):
        simulation.evaluate(run_nothing, w, sim.Cluster.slots(9), None, 0, by=["qeue"])


def test_names_are_read_again():
    assert groups.split("wait_p95_s.queue.a.b") == ("wait_p95_s", "queue", "a.b")
    assert groups.split("wait_p95_s") is groups.split("makespan_s.queue.a") is None
    assert metrics.metric("slowdown_p95.user.u").better == "lower"
    with pytest.raises(InputError, match=r"'qeue'; did you mean 'queue'.*width"):
        by("qeue", sim.Cluster.slots(9))
