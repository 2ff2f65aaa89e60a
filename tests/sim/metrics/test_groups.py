"""Waits of groups of jobs, against all jobs of the group taken by themselves."""

import numpy as np
import pytest

import sim
from sim import metrics
from sim.base.errors import InputError
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
    assert len(computed) == 2 * len(groups.NAMES)
    assert {name.rpartition(".")[2] for name in by("user", sim.Cluster.slots(9))} == {
        "u", "v", "(none)",
    }  # fmt: skip


def test_widths_are_powers_of_two_in_slots_or_of_the_first_resource():
    names = [n for n in by("width", sim.Cluster.slots(9)) if n.startswith("wait_p50_s")]
    assert names == [f"wait_p50_s.width.{w}" for w in ("1", "2-3", "4-7", "8-15")]
    wide = [job(0, [4], {"cpu": 6}), job(0, [4], {"cpu": 1})]
    computed = by("width", sim.Cluster.machines(2, cpu=8), wide)
    assert (computed["wait_mean_s.width.4-7"], computed["wait_mean_s.width.1"]) == (0, 10)


def test_small_groups_are_one(monkeypatch):
    monkeypatch.setattr(groups, "MAX_GROUPS", 1)
    w = sim.Workload.from_jobs([*JOBS, job(0, [1], queue="d")])
    computed = {name: mask.tolist() for name, mask in groups.members(w, "queue", in_slots=True)}
    assert computed == {"a.b": [1, 0, 1, 0, 0], "(others)": [0, 1, 0, 1, 1]}


def test_names_are_read_again():
    assert groups.split("wait_p95_s.queue.a.b") == ("wait_p95_s", "queue", "a.b")
    assert groups.split("wait_p95_s") is groups.split("jct_mean_s.queue.a") is None
    assert metrics.metric("slowdown_p95.user.u").better == "lower"
    with pytest.raises(InputError, match=r"'qeue'; did you mean 'queue'.*width"):
        by("qeue", sim.Cluster.slots(9))
