"""Finish-time fairness, by hand and beside a loop over random runs."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.bounds import bound_arrays
from sim.metrics.finish_times import compute, mean_present

NAMES = ("finish_time_fairness_p95", "finish_time_fairness_max", "jobs_unfair")


def simulated(jobs, slots, policy="fifo"):
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.slots(slots)
    run = sim.simulate(workload, cluster, policies.build(policy))
    return run, bound_arrays(workload.columns, cluster)


def job(submit_s, *durations_s):
    return {"submit_s": submit_s, "stages": [{"durations_s": list(durations_s)}]}


def test_two_jobs_that_take_turns_by_hand():
    """Two jobs of two tasks of 10 s on two slots: the first takes 10 s, the second 20.

    There are 2 jobs for the first, so half of the cluster is one slot, on which it takes 20 s; for
    the second 1.5 in the mean: 1.5 · 10 = 15 s.
    """
    run, bounds = simulated([job(0.0, 10.0, 10.0), job(0.0, 10.0, 10.0)], 2)
    assert mean_present(run).tolist() == [2.0, 1.5]
    figures = compute(run, bounds)
    assert figures["finish_time_fairness_max"] == pytest.approx(20 / 15)
    assert figures["jobs_unfair"] == 0.5


def test_a_job_alone_is_fair():
    run, bounds = simulated([job(5.0, 3.0, 4.0)], 4)
    assert compute(run, bounds) == dict(zip(NAMES, (1.0, 1.0, 0.0), strict=True))


def test_no_job_has_no_figure():
    run, bounds = simulated([job(0.0, 0.0)], 1)
    assert all(np.isnan(value) for value in compute(run, bounds).values())


@pytest.mark.parametrize("seed", range(4))
def test_as_a_loop_over_jobs_has_it(seed):
    rng = np.random.default_rng(seed)
    jobs = [job(float(s), *rng.uniform(1, 9, rng.integers(1, 6))) for s in rng.uniform(0, 40, 30)]
    run, bounds = simulated(jobs, 3, "srpt")
    begin, over = run.job_submit, run.job_finish
    rho = []
    for j in range(len(begin)):
        shared = sum(max(0.0, min(over[j], over[k]) - max(begin[j], begin[k])) for k in range(30))
        n = shared / (over[j] - begin[j])
        rho.append((over[j] - begin[j]) / max(bounds["cp_len"][j], n * bounds["twork"][j]))
    expected = (np.percentile(rho, 95), max(rho), np.mean(np.array(rho) > 1))
    assert list(compute(run, bounds).values()) == pytest.approx(expected)
