"""GPUs that two jobs share by their profiles, as Lucid's packing, by resources alone."""

from __future__ import annotations

import pytest

import policies
import sim


def ran(*profiles, gpus=2):
    """Return machine and end of jobs of 120 s by their utilization, %, memory, GiB, and score."""
    jobs = [
        {
            "submit_s": 0.0,
            "stages": [
                {
                    "durations_s": [120.0],
                    "demand": {"jobs": 1, "gmem": gib, "score": score, "util": percent},
                }
            ],
        }
        for percent, gib, score in profiles
    ]
    cluster = sim.Cluster.machines(gpus, jobs=2, gmem=24, score=2, util=100, fungible=("util",))
    policy = policies.build("fifo", fit="skip", fit_resources=("jobs", "gmem", "score"))
    run = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policy, record="tasks")
    return list(zip(run.task_machine.tolist(), run.job_finish.round(6).tolist(), strict=True))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((60, 8, 1), (60, 8, 1), [(0, 144), (0, 144)]),  # 120 % of it: 1.2 times as long
        ((50, 8, 2), (20, 4, 0), [(0, 120), (0, 120)]),
        ((60, 8, 1), (60, 8, 2), [(0, 120), (1, 120)]),  # scores of 3
        ((60, 16, 0), (20, 12, 0), [(0, 120), (1, 120)]),  # 28 of 24 GiB
    ],
)
def test_two_jobs_share_if_scores_and_memory_allow(first, second, expected):
    assert ran(first, second) == expected


def test_what_is_left_alone_runs_at_full_speed():
    """Two share; the third, of score 2, waits for both, and then has the GPU for itself."""
    assert ran((60, 8, 1), (60, 8, 1), (90, 8, 2), gpus=1) == [(0, 144), (0, 144), (0, 264)]
