"""Two sweeps that share cells: here one of them is the claims that another process would hold."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from sweep.execution import plan, together
from sweep.execution.again import run_again
from sweep.grid import grid
from sweep.store.claims import Claims
from tests.sweep.small import Command, fake_engine, fake_simulate

GRID = ("policy=fifo,las", "seed=range(0,3)")


@pytest.mark.parametrize("computes", [True, False])
def test_cells_in_work_are_waited_for(
    fake: Command, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    monkeypatch.setattr(together, "LOOK_EVERY_S", 0.02)
    other = plan.prepare(grid.build(fake.request("policy=las", "seed=0,1")))
    claims = Claims(other.cache.place)
    assert claims.take(np.sort(other.keys)).all()
    simulated: list[Any] = []

    def simulate(*args: Any, **options: Any) -> Any:
        simulated.append((args[2].name, options["seed"]))
        return fake_simulate(*args, **options)

    fake_engine(monkeypatch, simulate)

    def compute() -> None:
        while len(simulated) < 4:
            time.sleep(0.01)
        time.sleep(0.3)  # so that it is said
        if computes:
            elsewhere = Command(fake.results.parent / "other", fake._capfd)
            elsewhere.trace = fake.trace
            prepared = plan.prepare(grid.build(elsewhere.request("policy=las", "seed=0,1")))
            other.cache.put_many([(run_again(prepared, each), {}) for each in prepared.planned])
        claims.close()

    thread = threading.Thread(target=compute)
    thread.start()
    ran = fake(*GRID)
    thread.join()
    assert ran.code == 0, ran.err
    assert "another sweep computes 2 cells of these; waiting" in ran.err
    assert {row["status"] for row in ran.rows} == {"done"}
    assert sorted(simulated) == sorted((p, s) for p in ("fifo", "las") for s in range(3))
