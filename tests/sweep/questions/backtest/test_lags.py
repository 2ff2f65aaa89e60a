"""Lags of a log, and the size of its cluster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sim import Workload
from sweep.questions.backtest.capacity import logged_size, peak_use
from sweep.questions.backtest.lags import (
    MAX_LAGS,
    launch_lags_s,
    stage_lag_s,
    task_lags_s,
    thinned,
    without_rounding,
)


def tasks_log(start_s: list[float], finish_s: list[float], stages: list[int]) -> Workload:
    """Build a job of two stages, the second behind the first, with a time of each task."""
    n_tasks = np.bincount(stages)
    return Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0] * len(n_tasks), "n_tasks": n_tasks.astype(np.int32)},
        tasks={
            "stage": stages,
            "duration_s": np.subtract(finish_s, start_s),
            "recorded_start_s": start_s,
            "recorded_finish_s": finish_s,
        },
        stage_edges={"parent": [0], "child": [1]},
    )


def test_lags_of_tasks_behind_those_that_made_room() -> None:
    # two slots: the third task starts 0.25 s behind the first end; the fourth, 1 s behind its
    # parents, was not ready when the slot was left
    log = tasks_log([0, 0, 10.25, 21.0], [10.0, 12.0, 20.0, 30.0], [0, 0, 0, 1])
    assert task_lags_s(log, 2).tolist() == [0.25]
    assert stage_lag_s(log) == 1.0


def test_a_task_that_starts_before_the_end_is_noted_has_no_lag() -> None:
    log = tasks_log([0, 0, 9.5, 20.0], [10.0, 12.0, 20.0, 30.0], [0, 0, 0, 1])
    assert task_lags_s(log, 2).tolist() == [0.0]


def test_lags_are_thinned_to_quantiles() -> None:
    assert thinned(np.array([0.5, np.nan, 0.25])) == [0.25, 0.5]
    assert thinned(np.array([0.5, 0.5])) == [0.5]
    assert thinned(np.array([])) == [0.0]
    many = thinned(np.arange(1001.0))
    assert len(many) == MAX_LAGS
    assert many[0] == pytest.approx(1000 * 0.5 / MAX_LAGS, abs=1e-3)
    assert many[MAX_LAGS // 2] == 500.0


def test_rigid_jobs_have_the_lags_of_the_audit() -> None:
    class Findings:
        launch_lags_s = np.array([1.0, 2.0])
        resolution_s = 1e-3

    findings: Any = Findings()
    assert launch_lags_s(jobs_log(), findings, 4) == [1.0, 2.0]


def test_rounding_is_taken_out_of_the_spread_of_lags() -> None:
    rng = np.random.default_rng(0)
    begin_s, lags_s = rng.uniform(0, 1e4, 20_000), rng.uniform(0.5, 2.5, 20_000)
    rounded = np.floor(begin_s + lags_s) - np.floor(begin_s)
    assert rounded.std() > 0.7
    corrected = without_rounding(rounded, 1.0)
    assert corrected.mean() == pytest.approx(1.5, abs=0.01)
    assert corrected.std() == pytest.approx(2 / math.sqrt(12), abs=0.01)
    # rounding alone: a constant lag
    assert without_rounding(np.array([0.0, 1.0, 1.0, 0.0]), 2.0).tolist() == [0.5] * 4


def jobs_log(**more: Any) -> Workload:
    """Three rigid jobs of 2, 3 and 1 slots; at most 4 are in use, by the last two."""
    width = [2, 3, 1]
    return Workload.from_tables(
        jobs={
            "job_id": ["a", "b", "c"],
            "submit_s": [0.0, 1.0, 2.0],
            "min_tasks": width,
            "recorded_start_s": [0.0, 10.0, 11.0],
            "recorded_finish_s": [10.0, 20.0, 21.0],
        },
        stages={"job": [0, 1, 2], "n_tasks": width, "duration_s": [10.0] * 3, **more},
    )


def test_peak_of_use() -> None:
    # what ends at an instant makes room for what begins then
    size = logged_size(jobs_log())
    assert size.n_slots == 4
    assert "peak of the log's recorded use" in size.sentence
    assert peak_use(np.array([0.0]), np.array([1.0]), np.array([7])) == 7


def test_nodes_with_as_many_slots_as_were_in_use_on_one() -> None:
    log = jobs_log(node_list=["n[1-2]", "n[1-3]", "n9"])
    size = logged_size(log)
    assert (size.n_slots, size.n_machines) == (4, 0)
    shared = logged_size(jobs_log(node_list=["n1", "n1", "n1"]))  # at most 4 in use at a time
    assert (shared.n_slots, shared.n_machines) == (4, 1)


@pytest.mark.parametrize(
    ("meta", "n_slots"),
    [
        ({"header": {"MaxProcs": "100"}}, 100),
        ({"header": {"MaxProcs": "100 (of 128)"}}, 100),
        ({"header": {"MaxProcs": "unknown"}}, 4),
        ({"cores": 16}, 16),
    ],
)
def test_what_the_log_says_of_its_size(meta: dict[str, Any], n_slots: int) -> None:
    assert logged_size(jobs_log().with_meta(meta)).n_slots == n_slots
