"""A stand-in for Ray that runs tasks when they are waited for, and what it is given to run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors

from sim.base.errors import InputError
from sweep.execution.on_ray import connection, pool
from sweep.execution.on_ray.pool import RayRunner
from sweep.execution.result_batch import ResultBatch
from sweep.execution.workload_build import BuiltWorkload, Clusters, Recipe
from sweep.store.cell import CellResult
from tests.sweep.small import planned

MADE = SimpleNamespace(results=[], **vars(BuiltWorkload({"n_tasks": 1}, Clusters())))


class Stream:
    """Stands for the generator of a task's parts."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.left = 1

    def __next__(self) -> Stream:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self


class FakeRay:
    """Runs tasks when they are waited for; breaks when it is told to."""

    exceptions = ray_errors

    def __init__(self) -> None:
        self.n_waits = self.n_made = self.n_inits = 0
        self.breaks_at: set[int] = set()
        self.refuses = 0
        self.at_once = 1  # how many are ready at one time
        self.fails_with: list[Exception] = []
        self.nodes_up = 1
        self._tasks: dict[int, Any] = {}

    def open(self, *_: object) -> None:
        if self.refuses:
            self.refuses -= 1
            raise InputError("nobody answers")
        self.n_inits += 1
        self._tasks.clear()

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        up = {"Alive": True, "NodeManagerAddress": "own", "NodeManagerPort": 1}
        resources = {"CPU": 2.0, "memory": 8.0}
        return [
            {**up, "NodeID": f"n{index}", "Resources": resources} for index in range(self.nodes_up)
        ]

    def make(self, *_: object) -> tuple[Stream, ...]:
        self.n_made += 1
        return Stream(-1), Stream(-1), Stream(-1)

    def remote(self, function: Any = None, **_: object) -> Any:
        if function is None:
            return lambda make: SimpleNamespace(remote=self.make)

        def submit(*args: Any) -> Stream:
            stream = Stream(1000 * self.n_inits + len(self._tasks))
            self._tasks[stream.number] = (function, args)
            return stream

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=submit))

    def wait(self, refs: list[Stream], **_: object) -> tuple[list[Stream], list[Stream]]:
        self.n_waits += 1
        if self.n_waits in self.breaks_at:
            raise OSError("Broken pipe")
        assert {ref.number for ref in refs} <= self._tasks.keys(), (
            "a task of a connection that is no more"
        )
        return refs[: self.at_once], refs[self.at_once :]

    def get(self, ref: Stream, **_: object) -> Any:
        if self.fails_with:
            raise self.fails_with.pop()
        if ref.number < 0:
            return MADE
        specs = self._tasks[ref.number][1][1].specs
        return ResultBatch([CellResult(spec[0], seconds=0.2) for spec in specs])

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address="head:1", get_node_id=lambda: "n0")

    def shutdown(self) -> None:
        pass


def install(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for Ray in its place."""
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(connection, "join", ray.open)
    monkeypatch.setattr(connection, "knock", lambda address: None)
    monkeypatch.setattr(pool, "RETRY_S", 0.0)


WORK = [planned(f"cell{index}") for index in range(40)]
WORKLOADS: Any = SimpleNamespace(
    recipe=lambda name: Recipe({"synth": "none"}, {}), add_description=lambda name, about: None
)


def runner_of(patience_s: float = 0.0) -> RayRunner:
    launcher = {"kind": "ray", "address": "auto", "patience_s": patience_s}
    return RayRunner(launcher, simulate=lambda *_, **__: pytest.fail("runs nothing"))


def results_of(run: Iterable[ResultBatch | str]) -> list[CellResult]:
    return [result for event in run if isinstance(event, ResultBatch) for result in event.results]


def outcomes(patience_s: float = 0.0) -> list[CellResult]:
    return results_of(runner_of(patience_s).run(WORK, WORKLOADS))
