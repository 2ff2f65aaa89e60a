"""Transform stay: one long duration for every task."""

from __future__ import annotations

import pytest

import sim
from sim.transforms import stay


def test_every_task_gets_the_same_duration():
    stages = [{"durations_s": [1.0, 2.0]}, {"durations_s": [3.0]}]
    result = stay(sim.Workload.from_jobs([{"submit_s": 0, "stages": stages}]), 50)
    assert result.columns.task_duration.tolist() == [50.0] * 3
    assert result.columns.stage_demand.tolist() == [[1000000], [1000000]]
    assert stay(result, 7).columns.task_duration.tolist() == [7.0] * 3
    with pytest.raises(sim.InputError, match="seconds"):
        stay(result, 0)
