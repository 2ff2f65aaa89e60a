"""Jobs without a time limit: in workloads by hand and from tables, in all policies by limits."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import policies
import sim
from policies.estimates.durations import ENDLESS_S
from sim.base.parameters import type_hints

FIRST, BEHIND = (0.0, 1000.0, 4), [(10.0, 100.0, 8, 200.0), (20.0, 100.0, 4, 150.0)]
"""A job of (submission, run, tasks), and others of (submission, run, tasks, limit)."""


def by_hand(limit_s: float | None) -> sim.Workload:
    return sim.Workload.from_jobs(
        {
            "submit_s": submit,
            "requested_s": limit,
            "stages": [{"durations_s": [run] * width}],
            "min_tasks": width,
        }
        for submit, run, width, limit in [(*FIRST, limit_s), *BEHIND]
    )


def by_tables(limit_s: float | None) -> sim.Workload:
    submit, run, width, limit = zip((*FIRST, limit_s), *BEHIND, strict=True)
    return sim.Workload.from_tables(
        {
            "job_id": ["1", "2", "3"],
            "submit_s": submit,
            "min_tasks": width,
            "requested_s": limit,
        },
        {"job": [0, 1, 2], "n_tasks": width, "duration_s": run},
    )


@pytest.mark.parametrize("make", [by_hand, by_tables])
@pytest.mark.parametrize("limit_s", [0, None, 2000])
@pytest.mark.parametrize("name", ["easy", "conservative"])
def test_the_third_is_backfilled_beside_a_job_without_a_limit(name, limit_s, make):
    r = sim.simulate(make(limit_s), sim.Cluster.slots(8), policies.build(name))
    assert (r.job_start - r.job_submit).tolist() == [0, 990, 0]
    assert r.metrics["wait_mean_s"] == 330


WITHIN_JOBS = ("critical_path", "heft", "strip", "tetris", "tez_cp", "tez_tetris")
"""Policies that order the stages of a job by durations, or tasks of jobs that are no gangs."""


def asking() -> list[tuple[str, dict[str, str]]]:
    """Return the policies that can go by requests, with the parameter by which they do."""
    return [
        (name, {parameter: "declared"})
        for name in policies.names()
        for parameter in ("knowledge", "sizes")
        if "declared" in get_args(type_hints(policies.spec(name)).get(parameter))
    ]


def crowd(limit_s: float | None) -> sim.Workload:
    """Make rigid jobs that overload 12 slots; every third has `limit_s`, others a true one."""
    rng = np.random.default_rng(0)
    jobs = []
    for i, submit_s in enumerate(np.cumsum(rng.exponential(2.0, 40)).tolist()):
        width, run_s = int(rng.integers(1, 9)), round(float(rng.exponential(8.0)), 2) + 0.1
        jobs.append(
            {
                "submit_s": submit_s,
                "requested_s": limit_s if i % 3 == 0 else run_s,
                "stages": [{"durations_s": [run_s] * width}],
                "min_tasks": width,
            }
        )
    return sim.Workload.from_jobs(jobs)


@pytest.mark.parametrize(("name", "params"), asking())
def test_a_job_without_a_limit_is_endless_and_never_short(name, params):
    def starts(limit_s):
        policy = policies.build(name, **params)
        return sim.simulate(crowd(limit_s), sim.Cluster.slots(12), policy).job_start.tolist()

    endless = starts(ENDLESS_S)
    assert starts(None) == starts(0) == endless
    assert (starts(1e-3) != endless) == (name not in WITHIN_JOBS)


def test_most_policies_by_durations_can_go_by_requests():
    assert {"easy", "conservative", "slurm", "sjf", "srpt", "heft", "tetris", "wserpt"} <= {
        name for name, _ in asking()
    }
