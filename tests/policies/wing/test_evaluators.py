"""The evaluators `kinds` and `worth` on small workloads."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import policies
import sim
from sim import evaluators
from sim.base.errors import InputError

FIFO = policies.build("fifo")
ONE = sim.Cluster.slots(1)


def job(job_id, submit_s, **more):
    stages = [{"durations_s": [10.0]}]
    return {"job_id": job_id, "submit_s": submit_s, "stages": stages, **more}


def test_failures_and_value_by_kind():
    workload = sim.Workload.from_jobs(
        [
            job("a", 0.0, template="t", downloads=[5.0, 50.0, 60.0]),
            job("b", 1.0, template="t", inputs=["a"], input_mode="blind", downloads=[50.0]),
            job("c", 2.0, downloads=[15.0, 30.0]),
            job("d", 12.0, template="t", downloads=[100.0, 100.0]),
        ]
    )
    metrics, jobs = evaluators.evaluate(
        "kinds", sim.simulate, workload, ONE, policies.build("fifo"), 0
    )
    assert jobs.num_rows == 4
    assert metrics["jobs_failed"] == 0.25
    assert metrics["jobs_failed_recurring"] == pytest.approx(1 / 3)
    assert metrics["jobs_failed_ad_hoc"] == 0.0
    assert metrics["value_attained_recurring"] == pytest.approx(4 / 6)
    assert metrics["value_attained_ad_hoc"] == 0.5  # it ends at 20 s
    assert metrics["value_of_ad_hoc"] == 0.25


def test_a_kind_that_is_not_there_is_not_a_number():
    workload = sim.Workload.from_jobs([job("a", 0.0)])
    metrics, _ = evaluators.evaluate("kinds", sim.simulate, workload, ONE, FIFO, 0)
    assert math.isnan(metrics["jobs_failed_recurring"])
    assert math.isnan(metrics["value_attained_ad_hoc"])


def test_worth_and_its_prediction():
    plain = sim.Workload.from_jobs(
        [job(str(i), float(i), template=t) for i, t in enumerate(("p", "p", "q", "", "new"))]
    )
    arguments = {
        "value": [10.0, 20.0, 0.0, 3.0, 7.0], "agg_value": [20.0, 40.0, 50.0, 30.0, 60.0],
        "compute_s": [1.0] * 5, "agg_compute_s": [2.0] * 5,
    }  # fmt: skip
    table = plain.jobs
    for name, values in arguments.items():
        table = table.append_column(name, pa.array(values))
    history = {
        "submit_s": [-9.0] * 4, "finish_s": [-8.0, -7.0, -6.0, -5.0], "n_tasks": [1] * 4,
        "mean_task_s": [1.0] * 4, "user": [""] * 4,
        "template": pa.array(["p", "p", "p", "q"]).dictionary_encode(),
        "value": [9.0, 11.0, 14.0, 2.0], "compute_s": [1.0] * 4,
        "agg_value": [18.0, 44.0, np.nan, 5.0], "agg_compute_s": [2.0, 2.0, np.nan, 1.0],
    }  # fmt: skip
    tables = {n: getattr(plain, n) for n in ("stages", "tasks")}
    workload = sim.Workload.from_tables(jobs=table, history=history, **tables)
    metrics, rows = evaluators.evaluate("worth", sim.simulate, workload, ONE, None, 0)
    # own: p is taken for 11, which is near 10 and not 20; q is worth nothing, and does not count
    assert metrics["near_own"] == 0.5
    assert rows["error_own"].to_numpy()[:2] == pytest.approx([0.1, -0.45])
    assert np.isnan(rows["error_own"].to_numpy()[2:]).all()
    # aggregate: p's valid runs say 31 / 2, the truth is 10 and 20; q's 5 / 1, the truth 25
    assert rows["error_agg"].to_numpy()[:3] == pytest.approx([0.55, -0.225, -0.8])
    assert metrics["near_agg"] == 0.0
    assert metrics["hidden"] == pytest.approx(1 - 40 / 200)
    assert metrics["zipf_agg_value"] == pytest.approx(
        -np.polyfit(np.log([1, 2, 3, 4, 5]), np.log([60, 50, 40, 30, 20]), 1)[0]
    )


def test_worth_needs_to_be_said():
    workload = sim.Workload.from_jobs([job("a", 0.0)])
    with pytest.raises(InputError, match="trace=cosmos"):
        evaluators.evaluate("worth", sim.simulate, workload, ONE, None, 0)
