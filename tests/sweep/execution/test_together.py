"""Two sweeps that share cells: here one of them is the claims that another process would hold."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sweep.execution import notes, plan, together
from sweep.execution.again import run_again
from sweep.grid import grid
from sweep.store.claims import Claims
from sweep.store.index import as_keys
from tests.sweep.small import Command, fake_engine, fake_simulate

GRID = ("policy=fifo,las", "seed=range(0,3)")


SYNTH = ("trace=alibaba_synth", "trace.jobs=20")


@pytest.mark.parametrize(("computes", "trace"), [(True, ()), (False, ()), (True, SYNTH)])
def test_cells_in_work_are_waited_for(
    fake: Command, monkeypatch: pytest.MonkeyPatch, computes: bool, trace: tuple[str, ...]
) -> None:
    monkeypatch.setattr(together, "LOOK_EVERY_S", 0.02)
    asked = grid.build(fake.request("policy=las", "seed=0,1", *trace))
    other = plan.prepare(asked)
    claims = Claims(other.cache.place)
    names = sorted(bytes.fromhex(each.key) for each in other.planned)
    assert claims.take(as_keys(b"".join(names))).all()
    simulated: list[Any] = []
    said, note = threading.Event(), notes.note

    def simulate(*args: Any, **options: Any) -> Any:
        simulated.append((args[2].name, options["seed"]))
        return fake_simulate(*args, **options)

    def say(text: str) -> None:
        note(text)
        if "waiting" in text:
            said.set()

    fake_engine(monkeypatch, simulate)
    monkeypatch.setattr(notes, "note", say)

    def compute() -> None:
        assert said.wait(120)
        assert len(simulated) == 4
        if computes:
            other.cache.put_many([(run_again(other, each), {}) for each in other.planned])
        claims.close()

    thread = threading.Thread(target=compute)
    thread.start()
    ran = fake(*GRID, *trace)
    thread.join()
    assert ran.code == 0, ran.err
    assert "another sweep computes 2 cells of these; waiting" in ran.err
    assert {row["status"] for row in ran.rows} == {"done"}
    assert sorted(simulated) == sorted((p, s) for p in ("fifo", "las") for s in range(3))
