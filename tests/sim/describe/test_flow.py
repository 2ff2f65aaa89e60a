"""Arrivals, sizes, load and users of small workloads against values computed by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

import sim
from sim.describe import Dataset, describe, flow
from sim.describe.page import page, text_lines
from sim.describe.statistics import mean, quantile
from tests.sim.describe.workloads import CHAIN, by_key, dataset, job

RNG = np.random.default_rng(100)


@pytest.fixture(scope="module")
def rigid() -> Dataset:
    """Give four jobs, 0, 10, 20 and 3610 s on, of 1, 4, 4 and 3 tasks; user a has the first two."""
    w = sim.Workload.from_tables(
        jobs={
            "job_id": list("pqrs"), "submit_s": [0.0, 10.0, 20.0, 3610.0],
            "user": ["a", "a", "b", ""], "template": ["x", "y", "x", ""],
            "requested_s": [20.0, 20.0, None, 20.0],
        },
        stages={"job": range(4), "n_tasks": [1, 4, 4, 3], "duration_s": [20.0, 10.0, 10.0, 40.0],
                "demand_cpu": [1.0] * 4, "demand_mem": [8.0, 1.0, 1.0, 1.0],
                "used_mem": [4.0, 1.0, np.nan, 1.0]},
        meta={"header": {"MaxProcs": "10"}},
    )  # fmt: skip
    return Dataset.from_workload("rigid", w)


def test_arrivals(rigid):
    n = by_key(flow.arrivals(rigid))
    assert n["hours"] == pytest.approx(3610 / 3600)
    assert n["rate"] == pytest.approx(3 * 3600 / 3610)
    assert (n["busiest_hour"], n["idle_hours"], n["gap_p50"]) == (3, 0.0, 10.0)
    assert n["dispersion_1 h"] != n["dispersion_1 h"]  # of one hour nothing is known
    submit_s = np.cumsum(RNG.exponential(10.0, 50_000))
    assert flow.dispersion(submit_s, 600.0) == pytest.approx(1.0, abs=0.1)
    assert flow.lag_1(np.diff(submit_s)) == pytest.approx(0.0, abs=0.02)
    assert flow.dispersion(np.repeat(submit_s, 4), 600.0) == pytest.approx(4.0, abs=0.4)


def test_quantiles_of_values_that_occur_several_times():
    x, n = RNG.integers(0, 9, 60) / 7, RNG.integers(1, 40, 60)
    for q in (0.0, 0.123, 0.5, 0.9, 0.99, 1.0):
        assert quantile(x, q, n) == np.quantile(np.repeat(x, n), q)
    assert mean(x, n) == pytest.approx(np.repeat(x, n).mean(), rel=1e-14)
    assert quantile(x[:1], 0.3, n[:1]) == x[0]


def test_sizes(rigid):
    n = by_key(flow.sizes(rigid))
    assert (n["run_mean"], n["run_max"]) == (20.0, 40.0)
    assert (n["width_mean"], n["width_one"], n["width_power"]) == (3.0, 0.25, 0.5)
    assert n["work_max"] == 120.0
    assert n["work_of_0.01"] == 120 / 220
    assert n["demand_cpu_mean"] == 1.0
    assert "demand_cpu_p50" not in n
    assert n["demand_mem_mean"] == pytest.approx(19 / 12)
    w = dataset(job(0.0, CHAIN))
    assert by_key(flow.sizes(w))["run_mean"] == 30.0


def test_load(rigid):
    n = by_key(flow.load(rigid))
    assert n["mean_cpu"] == 220 / 3610
    assert n["of_machine"] == 22 / 3610
    assert (n["peak_cpu"], n["peak_mem"]) == (5.0, 12.0)
    assert (n["time_known"], n["time_used_p50"], n["time_exceeded"]) == (0.75, 1.0, 1 / 3)
    assert n["time_censored"] == 2 / 3
    assert n["used_mem"] == (80 + 40 + 120) / (160 + 40 + 120)


def test_needs_are_told_as_a_share_of_requests():
    stages = [
        {"durations_s": [10.0], "demand": {"cpu": 1}, "request": {"cpu": 2}},
        {"durations_s": [30.0], "demand": {"cpu": 1}},
    ]
    n = by_key(flow.load(dataset({"submit_s": 0.0, "stages": stages})))
    assert n["needed_cpu"] == (10 + 30) / (20 + 30)


def test_users(rigid):
    n = by_key(flow.users(rigid))
    assert (n["users"], n["user_jobs"], n["user_work"], n["user_half"]) == (2, 2 / 3, 0.6, 1)
    assert (n["queues"], n["templates"]) == (1, 2)
    assert "queue_jobs" not in n
    assert n["ran_before"] == 0.25
    unknown = by_key(flow.users(dataset(job(0.0, {"a": ""}))))
    assert np.isnan(unknown["users"])


def test_ranks_are_those_of_scipy():
    x, y = RNG.integers(0, 9, 200), RNG.integers(0, 9, 200) + np.arange(200) // 50
    assert flow.rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert np.isnan(flow.rank_correlation(x, np.ones(200)))


def test_of_a_flat_trace_what_it_has_comes_first_and_the_rest_in_a_line(rigid):
    description = describe(rigid)
    text = "\n".join(text_lines(description))
    assert text.startswith("Arrivals")
    order = [text.index(title) for title in ("Arrivals", "Sizes", "Load", "Users", "Input")]
    assert order == sorted(order)
    assert "  Structure (§4.2)                no job has six or more stages" in text
    assert "percentile 75" not in text
    assert "with any dependency" not in text
    assert len(text.splitlines()) < 110
    html = page(description)
    assert "<li>Structure (§4.2): no job has six or more stages</li>" in html
    assert 'id="structure"' not in html
    assert html.index('id="arrivals"') < html.index('id="input"')


def test_of_dags_the_order_is_the_papers():
    text = "\n".join(text_lines(describe(dataset(job(0.0, CHAIN), job(9.0, CHAIN)))))
    assert text.startswith("Input")
    assert re.search(r"Structure \(§4.2\) +no job has six", text)
