"""Requested times under a limit that has changed, against a loop over jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.transforms.time_limits import limit_time


def job(requested_s, run_s, partition="", qos="n"):
    return {
        "submit_s": 0.0, "requested_s": requested_s, "partition": partition, "qos": qos,
        "stages": [{"durations_s": [run_s]}],
    }  # fmt: skip


def requested(workload):
    return [None if math.isnan(s) else s for s in workload.columns.job_requested.tolist()]


def test_a_job_may_ask_for_the_longest_limit_of_its_partitions():
    w = sim.Workload.from_jobs(
        [
            job(100, 90, "long"), job(100, 40, "long"), job(100, 90, "long|batch"),
            job(None, 90, "long"), job(100, 90, "batch"), job(300, 90, "long"), job(40, 39, "long"),
        ]
    )  # fmt: skip
    short = limit_time(w, "partition", "long", {"long": 50, "batch": 70}, was_s=200)
    assert requested(short) == [50, 50, 70, None, 100, 300, 40]
    assert short.meta["transforms"] == [
        {"limit_time": "long", "jobs": 6, "asked_for_more": 3, "ran_longer": 2}
    ]
    open_ended = limit_time(w, "partition", "long", {"long": 50, "batch": None}, was_s=200)
    assert requested(open_ended)[2] == 100
    default = limit_time(w, "partition", "batch", {"batch": 60}, default="batch")
    assert requested(default)[4] == 60


@pytest.mark.parametrize("seed", range(10))
def test_a_loop_over_jobs_finds_the_same(seed):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "a|b", ""]
    jobs = [
        job(float(rng.integers(1, 99)), float(rng.integers(1, 99)), str(rng.choice(names)),
            str(rng.choice(["x", "y"])))
        for _ in range(40)
    ]  # fmt: skip
    w = sim.Workload.from_jobs(jobs)
    limits = {"a": 30.0, "b": 60.0}
    got = requested(limit_time(w, "partition", "a", limits, default="a"))
    for k, j in enumerate(jobs):
        named = (j["partition"] or "a").split("|")
        longest_s = max(limits[name] for name in named)
        is_of = "a" in named
        assert got[k] == (min(j["requested_s"], longest_s) if is_of else j["requested_s"])
    by_qos = requested(limit_time(w, "qos", "x", {"x": 30.0}))
    expected = [min(j["requested_s"], 30) if j["qos"] == "x" else j["requested_s"] for j in jobs]
    assert by_qos == expected


def test_a_part_of_the_longest_time_that_jobs_of_a_queue_request():
    long_jobs = [job(requested_s, 90) | {"queue": "long"} for requested_s in (100, 70, None, 10)]
    jobs = [*long_jobs[:3], job(200, 90) | {"queue": "a|long"}, *long_jobs[3:]]
    short = limit_time(sim.Workload.from_jobs(jobs), "queue", "long", factor=0.5)
    assert requested(short) == [50, 50, None, 200, 10]
    assert short.meta["transforms"] == [
        {"limit_time": "long", "jobs": 4, "limit_s": 50.0, "asked_for_more": 2, "ran_longer": 2}
    ]


def test_what_it_refuses():
    w = sim.Workload.from_jobs([job(100, 90, "long")])
    with pytest.raises(InputError, match="give limits_s, or a factor"):
        limit_time(w, "partition", "long")
    with pytest.raises(InputError, match="give limits_s, or a factor"):
        limit_time(w, "partition", "long", {"long": 50}, factor=0.5)
    silent = sim.Workload.from_jobs([job(None, 90) | {"queue": "q"}])
    with pytest.raises(InputError, match="no job of queue q requests a time"):
        limit_time(silent, "queue", "q", factor=0.5)
    with pytest.raises(InputError, match="did you mean 'long'"):
        limit_time(w, "partition", "lon", {"lon": 50})
    plain = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])
    with pytest.raises(InputError, match="have no qos"):
        limit_time(plain, "qos", "n", {"n": 50})
