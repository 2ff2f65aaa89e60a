"""Workloads in the object store, as far as a fake Ray shows."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sim import Workload
from sweep.execution import task, workload_build
from sweep.execution.on_ray.connection import Connection
from sweep.execution.on_ray.shared_workloads import LARGE_TASKS, MAX_REBUILDS, SharedWorkloads
from sweep.execution.workload_build import Recipe
from tests.sweep.small import CLUSTER, planned

RECIPE = Recipe({"synth": "alibaba2018", "jobs": 5, "seed": 0}, CLUSTER)
WORK = [
    planned(str(index), "made", capacity=capacity, seed=index)
    for index, capacity in enumerate((0.5, 1.0, 1.0))
]


READ = Recipe({"format": "swf", "path": "log.swf"}, CLUSTER, n_tasks=LARGE_TASKS + 1)


class Ray:
    """Runs tasks at once; a reference is what it refers to."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.n_puts = 0

    def remote(self, **options: Any) -> Any:
        self.requests.append(options)
        return lambda function: SimpleNamespace(remote=function)

    def put(self, value: object) -> object:
        self.n_puts += 1
        return value

    def get(self, ref: object, **_: object) -> object:
        return ref

    def wait(self, refs: list[object], **_: object) -> tuple[list[object], list[object]]:
        return refs, []


class FakeWorkloads:
    """Workloads, one that is drawn and one that is read; what is learnt."""

    def __init__(self) -> None:
        self.learnt: list[tuple[str, Any]] = []

    def workload(self, name: str) -> Workload:
        pytest.fail("the driver loads none")

    def recipe(self, name: str) -> Recipe:
        return RECIPE if name == "made" else READ

    def add_description(self, name: str, about: Any) -> None:
        self.learnt.append((name, about["n_jobs"]))


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    fake = Ray()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


@pytest.fixture
def shared() -> SharedWorkloads:
    variants = SharedWorkloads(Connection({"kind": "local"}, []), [])
    variants.expect(WORK)
    return variants


def test_a_recipe_is_made_by_one_task_that_ray_repeats(ray: Ray, shared: SharedWorkloads) -> None:
    known = FakeWorkloads()
    workload, about = shared.get("made", known)
    assert shared.get("made", known) == (workload, about)
    assert [options["max_retries"] for options in ray.requests] == [MAX_REBUILDS]
    assert not ray.n_puts
    assert workload.n_jobs == 5
    assert about.description["digest"] == workload.digest
    built = [about.clusters.find(RECIPE.cluster, capacity) for capacity in (0.5, 1.0)]
    assert [item.facts["n_machines"] for item in built] == [1, 2]


def test_the_driver_learns_once_what_was_made(ray: Ray, shared: SharedWorkloads) -> None:
    known = FakeWorkloads()
    shared.get("made", known)
    for _ in range(2):
        shared.report("made", known, 1.0)
    assert known.learnt == [("made", 5)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is of one job; where this process is, is known."""
    item = [{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}]
    monkeypatch.setattr(workload_build, "load", lambda recipe: Workload.from_jobs(item))
    monkeypatch.setattr(Connection, "own_node_options", lambda self: {"where": "here"})


@pytest.mark.usefixtures("reads")
def test_what_is_read_is_read_here_by_a_process_of_its_own(
    ray: Ray, shared: SharedWorkloads
) -> None:
    known = FakeWorkloads()
    for _ in range(2):
        workload, about = shared.get("read", known)
    assert (workload.n_jobs, about.description["n_jobs"]) == (1, 1)
    (requests,) = ray.requests
    assert requests == {
        "max_calls": 1,
        "max_retries": MAX_REBUILDS,
        "num_returns": 3,
        "where": "here",
    }
    shared.report("read", known, 1.0)
    assert known.learnt == [("read", 1)]


@pytest.mark.usefixtures("reads")
def test_a_driver_outside_the_cluster_reads_by_itself(ray: Ray) -> None:
    afar = SharedWorkloads(Connection({"kind": "ray", "address": "ray://head:10001"}, []), [])
    workload, about = afar.get("read", FakeWorkloads())
    assert (ray.n_puts, ray.requests, workload.n_jobs) == (3, [], 1)
    assert about.description["digest"] == workload.digest


def test_what_can_not_be_had_is_made_anew(ray: Ray, shared: SharedWorkloads) -> None:
    for _ in range(2):
        shared.get("made", FakeWorkloads())
        shared.release("made")
    assert len(ray.requests) == 2


def test_the_first_is_said_to_be_made(ray: Ray, shared: SharedWorkloads) -> None:
    waits = shared.build_first("made", FakeWorkloads())
    assert next(waits) == "building the first workload"
    with pytest.raises(StopIteration) as over:
        next(waits)
    built, few_jobs = over.value.value
    assert (built.description["n_jobs"], few_jobs.n_jobs) == (5, 3)


def test_clusters_are_built_where_their_workload_was_made(
    ray: Ray, shared: SharedWorkloads
) -> None:
    _, about = shared.get("made", FakeWorkloads())
    cells = [work.spec for work in WORK]
    other = cells[0]._replace(cluster={**RECIPE.cluster, "count": 3})
    _, variants = task.sample_variants([other, *cells], lambda: (None, about.clusters))
    assert [item.n_machines for _, item in variants] == [1]  # none of one that was not built
