"""Where workloads lie, as far as it can be told without Ray."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sim import Workload
from sweep.execution import task
from sweep.execution.compute import Work
from sweep.execution.made import Recipe, unsized
from sweep.execution.on_ray.connection import Connection
from sweep.execution.on_ray.shared import MAKE_AGAIN, Shared
from sweep.store.cell import CellSpec

CLUSTER = {"shape": "slots", "count": 2, "queues": {}}
RECIPE = Recipe({"synth": "alibaba2018", "jobs": 5, "seed": 0}, {**CLUSTER, "load": None})
WORK = [
    Work(CellSpec(str(at), {}, unsized(RECIPE.cluster, capacity), {}, at), "made")
    for at, capacity in enumerate((0.5, 1.0, 1.0))
]


class Ray:
    """Runs tasks at once; a reference is what it refers to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.n_puts = 0

    def remote(self, function: Any) -> Any:
        def options(**given: Any) -> Any:
            self.asked.append(given)
            return SimpleNamespace(remote=function)

        return SimpleNamespace(options=options)

    def put(self, value: object) -> object:
        self.n_puts += 1
        return value

    def get(self, ref: object, **_: object) -> object:
        return ref

    def wait(self, refs: list[object], **_: object) -> tuple[list[object], list[object]]:
        return refs, []


class Known:
    """Workloads, one of a recipe and one that is read; what is learnt and loaded."""

    def __init__(self) -> None:
        self.learnt: list[tuple[str, Any]] = []
        self.loaded: list[str] = []

    def workload(self, name: str) -> Workload:
        self.loaded.append(name)
        return Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])

    def release(self, name: str) -> None:
        assert name == "read"

    def recipe(self, name: str) -> Recipe | None:
        return RECIPE if name == "made" else None

    def learn(self, name: str, about: Any) -> None:
        self.learnt.append((name, about["n_jobs"]))


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    fake = Ray()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


@pytest.fixture
def shared() -> Shared:
    found = Shared(Connection({"kind": "local"}, []), [])
    found.expect(WORK)
    return found


def test_a_recipe_is_made_by_one_task_that_ray_repeats(ray: Ray, shared: Shared) -> None:
    known = Known()
    workload, made = shared.get("made", known)
    assert shared.get("made", known) == (workload, made)
    assert [given["max_retries"] for given in ray.asked] == [MAKE_AGAIN]
    assert not known.loaded
    assert not ray.n_puts
    assert workload.n_jobs == 5
    assert made.about["digest"] == workload.digest
    assert [made.sizes[unsized(RECIPE.cluster, c)["unsized"]]["count"] for c in (0.5, 1.0)] == [
        1,
        2,
    ]


def test_the_driver_learns_once_what_was_made(ray: Ray, shared: Shared) -> None:
    known = Known()
    shared.get("made", known)
    for _ in range(2):
        shared.learn("made", known, 1.0)
    assert known.learnt == [("made", 5)]


def test_what_is_read_is_put_once_and_let_go(ray: Ray, shared: Shared) -> None:
    known = Known()
    assert shared.get("read", known)[1] is None
    shared.get("read", known)
    assert (known.loaded, ray.n_puts, ray.asked) == (["read"], 1, [])
    shared.learn("read", known, 1.0)
    assert not known.learnt


def test_a_lost_node_makes_us_put_again_what_ray_can_not_make(ray: Ray, shared: Shared) -> None:
    known = Known()
    for name in ("made", "read"):
        shared.get(name, known)
        shared.lost(name, for_good=False)
        shared.get(name, known)
    assert (len(ray.asked), ray.n_puts) == (1, 2)
    shared.lost("made", for_good=True)
    shared.get("made", known)
    assert len(ray.asked) == 2


def test_the_first_is_said_to_be_made(ray: Ray, shared: Shared) -> None:
    waits = shared.first("made", Known())
    assert next(waits) == "making the first workload"
    with pytest.raises(StopIteration) as over:
        next(waits)
    assert over.value.value.few_jobs.n_jobs == 3


def test_cells_are_sized_where_their_workload_was_made(ray: Ray, shared: Shared) -> None:
    workload, made = shared.get("made", Known())
    policy = {"name": "fifo", "module": None, "params": {}}
    cells = [replace(work.spec, policy=policy) for work in WORK]
    other = replace(cells[0], cluster=unsized(RECIPE.cluster, 3.0))
    _, found = task.sample([*cells, other], lambda: (workload, made.sizes))
    assert [one.cluster["count"] for one in found] == [1, 2]  # none of a size that is not known
