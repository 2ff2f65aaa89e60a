"""The transform that makes gangs elastic."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms
from sim.base.errors import InputError
from sim.transforms.widths import amdahl
from sim.workload.elastic import paces


def gang(n, seconds=10.0, **more):
    return {"submit_s": 0.0, "min_tasks": n, "stages": [{"durations_s": [seconds] * n}], **more}


def test_a_curve_is_amdahls_at_powers_of_two_the_size_and_the_ends():
    assert amdahl(2, 3, 9, 0.0) == "2:2 3:3 4:4 8:8 9:9"
    assert amdahl(1, 1, 2, 0.5) == f"1:1 2:{1 / 0.75:.6g}"


def test_a_job_lasts_as_long_as_before_at_its_own_width():
    workload = sim.Workload.from_jobs([gang(4), gang(1)])
    changed = transforms.apply(workload, "stretch", serial=0.1, reconfigure_s=3.0).columns
    assert changed.job_width_min.tolist() == [2, 1]
    assert changed.job_min_tasks.tolist() == [2, 1]
    assert changed.job_n_tasks.tolist() == [8, 2]
    assert changed.job_reconfigure.tolist() == [3.0, 3.0]
    for j, size in enumerate((4, 1)):
        text = changed.speedups[changed.job_speedup[j]]
        pace = paces(text, int(changed.job_n_tasks[j]))[size]
        assert changed.stage_max_s[j] / pace == pytest.approx(10.0, rel=1e-5)


def test_other_jobs_stay_and_smaller_shares_are_within_larger_ones():
    odd = [
        {"submit_s": 0.0, "stages": [{"durations_s": [1.0, 2.0]}]},
        {"submit_s": 0.0, "min_tasks": 2, "stages": [{"durations_s": [1.0, 2.0]}]},
        {"submit_s": 0.0, "min_tasks": 1, "stages": [{"durations_s": [1.0]}] * 2},
    ]
    workload = sim.Workload.from_jobs(odd + [gang(2) for _ in range(40)])
    chosen = [
        np.flatnonzero(transforms.apply(workload, "stretch", share=share).columns.job_width_min)
        for share in (0.0, 0.3, 0.7, 1.0)
    ]
    assert [len(rows) for rows in chosen][::3] == [0, 40]
    assert {*chosen[1]} < {*chosen[2]} < {*chosen[3]}
    assert chosen[3].min() == 3
    changed = transforms.apply(workload, "stretch", share=0.5)
    assert changed.columns.task_duration[:2].tolist() == [1.0, 2.0]


def test_a_greatest_width_below_its_own_is_refused():
    with pytest.raises(InputError, match="high"):
        transforms.apply(sim.Workload.from_jobs([gang(2)]), "stretch", high=0.5)
