from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.sweep.small import Command, FakeResult, Ran, fake_engine, fake_simulate

SEARCH = (
    "policy=dagps",
    "policy.m=interval(0,2)",
    "policy.rp=0.5,0.8,1",
    "search.metric=jct_mean_s",
)


def bowl(spread: float = 0.02) -> Any:
    """Stand in for the simulator: dagps is best at m 1.4 and rp 0.5, each seed slows all alike."""

    def simulate(
        workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
    ) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        rng = np.random.default_rng([seed, 7])
        luck = math.exp(0.3 * rng.normal())
        noise = math.exp(spread * np.random.default_rng([seed, int(1e4 * policy.m)]).normal())
        slow = 1 + 0.3 * (policy.m - 1.4) ** 2 + 0.2 * (policy.rp - 0.5)
        result.metrics["jct_mean_s"] = 100.0 * slow * luck * noise
        result.metrics["jct_p99_s"] = 1000.0 * (1 + 0.5 * policy.m) * luck * noise
        return result

    return simulate


def settings(ran: Ran) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(ran.folder / "settings.parquet").to_pylist()
    return rows


def test_it_finds_the_best(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, bowl())
    ran = command(*SEARCH, "search.cells=300")
    assert ran.code == 0, ran.err
    print(ran.out)
    assert len(ran.rows) <= 300
