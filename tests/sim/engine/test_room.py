"""Memory of a run: by runs of like tasks on a pool, by tasks where each moves by itself."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base import memory

N = 1_400_000_000
"""Tasks of Alibaba's whole trace."""


def like_tasks() -> sim.Workload:
    return sim.Workload.from_tables(
        jobs={"job_id": ["a", "b"], "submit_s": [0.0, 0.5]},
        stages={"job": [0, 1], "n_tasks": [N, 3], "duration_s": [1.0, 0.25]},
    )


@pytest.fixture(autouse=True)
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 8e9)


@pytest.mark.parametrize("policy", ["fifo", "srpt"])
def test_like_tasks_of_any_number_run_on_a_pool(policy: str) -> None:
    result = sim.simulate(like_tasks(), sim.Cluster.slots(10_000_000), policies.build(policy))
    long, short = result.job_finish.tolist()
    assert short == (140.25 if policy == "fifo" else 1.25)
    assert 140.0 <= long <= 141.0
    batches = result.batches
    assert batches is not None
    assert batches.num_rows < 400
    assert int(batches["count"].to_numpy().sum()) == N + 3
    with pytest.raises(sim.InputError, match="a record of each of 1,400,000,003 tasks"):
        result.task_start  # noqa: B018


def test_tasks_that_move_by_themselves_need_memory_each() -> None:
    with pytest.raises(sim.InputError, match=r"140\.0 GB of memory") as caught:
        sim.simulate(like_tasks(), sim.Cluster.machines(10, cpu=4), policies.build("fifo"))
    assert caught.value.rule == "out of memory"
    lagging = sim.Cluster.slots(100).with_launch(np.array([0.5]))
    with pytest.raises(sim.InputError, match="moves each of 1,400,000,003 tasks by itself"):
        sim.simulate(like_tasks(), lagging, policies.build("fifo"))
