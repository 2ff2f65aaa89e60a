"""The demonstration of a GPU cluster: its mechanisms, and waits of jobs of high priority."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import policies
import sim
from sweep.execution.inputs import Inputs
from sweep.grid import clusters, grid
from tests.sweep.small import request

WORDS = ("experiment=gpu_cluster", "seed=0,1,2")


def test_it_has_gangs_three_models_partitions_priorities_and_quotas(tmp_path: Path) -> None:
    cell = grid.build(request((*WORDS, "policy=fifo"))).cells[0]
    inputs = Inputs(tmp_path)
    workload = inputs.workload(inputs.workload_id(cell))
    cluster = clusters.build_for(workload, cell.cluster, cell.capacity).cluster
    columns = workload.columns
    assert (columns.job_min_tasks > 1).mean() > 0.1
    assert set(columns.speed_classes) == {"p100", "k80"}
    assert set(workload.jobs["partition"].to_pylist()) == {"", "fast"}
    assert np.unique(columns.job_priority).tolist() == [1, 5]
    assert set(cluster.quotas) >= {"team-1", "team-2", "team-3", "team-4", "all"}


@pytest.mark.slow
@pytest.mark.long
def test_with_preemption_jobs_of_high_priority_hardly_wait(tmp_path: Path) -> None:
    """First come, first served lets them wait as long as others: hours."""
    inputs, waits = Inputs(tmp_path), {}
    for cell in grid.build(request((*WORDS, "policy=fifo,priority/preempting"))).cells:
        workload = inputs.workload(inputs.workload_id(cell))
        cluster = clusters.build_for(workload, cell.cluster, cell.capacity).cluster
        name, params = cell.policy["name"], cell.policy["params"]
        run = sim.simulate(workload, cluster, policies.build(name, **params), seed=cell.seed)
        assert run.metrics["jobs_failed"] == 0
        is_high = workload.columns.job_priority == 5
        wait_s = (run.job_start - run.job_submit)[is_high]
        waits.setdefault(name, []).append(wait_s.mean())
    assert np.mean(waits["fifo"]) > 3600
    assert np.mean(waits["priority"]) < 0.05 * np.mean(waits["fifo"])
