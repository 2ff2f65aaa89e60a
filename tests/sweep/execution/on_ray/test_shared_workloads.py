"""Workloads in the object store, as far as a fake Ray shows."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors

from sim import Workload
from sweep.execution import task, workload_build
from sweep.execution.on_ray import nodes
from sweep.execution.on_ray.connection import Connection
from sweep.execution.on_ray.nodes import Node
from sweep.execution.on_ray.shared_workloads import (
    LARGE_TASKS,
    MAX_REBUILDS,
    SharedWorkloads,
    Size,
)
from sweep.execution.workload_build import BuiltWorkload, Clusters, Recipe
from tests.sweep.small import CLUSTER, planned

RECIPE = Recipe({"synth": "alibaba2018", "jobs": 5, "seed": 0}, CLUSTER)
WORK = [
    planned(str(index), "made", capacity=capacity, seed=index)
    for index, capacity in enumerate((0.5, 1.0, 1.0))
]


READ = Recipe({"format": "swf", "path": "log.swf"}, CLUSTER, n_tasks=LARGE_TASKS + 1)


class Ray:
    """Runs tasks at once; a reference is what it refers to."""

    exceptions = ray_errors
    node = "here"  # where tasks run

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.n_puts = self.n_gets_whole = 0

    def remote(self, **options: Any) -> Any:
        self.requests.append(options)
        return lambda function: SimpleNamespace(remote=function)

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: self.node)

    def put(self, value: object) -> object:
        self.n_puts += 1
        return value

    def get(self, ref: object, **_: object) -> object:
        self.n_gets_whole += isinstance(ref, Workload)
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


LARGE = replace(RECIPE, n_tasks=LARGE_TASKS + 1)
UP = {name: Node(name, name, 1.0, 0.0, "good") for name in ("here", "there", "yonder")}


class LargeWorkloads(FakeWorkloads):
    def recipe(self, name: str) -> Recipe:
        return replace(LARGE, trace={**LARGE.trace, "seed": int(name)})


@pytest.fixture
def wide(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> SharedWorkloads:
    """Three nodes of a slot each; a task runs on the node that it is given."""
    opened = Connection({"kind": "ray"}, [])
    monkeypatch.setattr(opened.nodes, "good", lambda: UP)
    monkeypatch.setattr(nodes, "pinned", lambda node, **_: {"on": node})
    return SharedWorkloads(opened, [])


def place(shared: SharedWorkloads, known: FakeWorkloads, name: str) -> tuple[str, Any]:
    """Place a cell, and return its node and its workload."""
    node = shared.place(name, known, 0, "")
    shared.n_placed[node] += 1
    return node, shared.get(name, known, node)[0]


def test_a_large_one_is_built_once_on_each_node_that_runs_its_cells(
    ray: Ray, wide: SharedWorkloads
) -> None:
    known = LargeWorkloads()
    cells = [place(wide, known, "0") for _ in range(9)]
    assert Counter(node for node, _ in cells) == dict.fromkeys(UP, 3)
    assert [options["on"] for options in ray.requests] == [*UP]
    assert [options["max_calls"] for options in ray.requests] == [1, 1, 1]
    workloads = {id(workload): workload.digest for _, workload in cells}
    assert len(workloads) == 3
    assert len(set(workloads.values())) == 1
    assert not ray.n_gets_whole
    assert not ray.n_puts


def test_large_ones_of_few_cells_are_spread_and_built_once(ray: Ray, wide: SharedWorkloads) -> None:
    known = LargeWorkloads()
    assert [place(wide, known, str(seed))[0] for seed in range(3)] == [*UP]
    assert len(ray.requests) == 3


def test_a_node_that_would_build_another_content_fetches_it(
    ray: Ray, wide: SharedWorkloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = LargeWorkloads()
    _, first = place(wide, known, "0")
    other = workload_build.load(replace(RECIPE, trace={**RECIPE.trace, "seed": 7}))
    monkeypatch.setattr(workload_build, "load", lambda recipe: other)
    _, second = place(wide, known, "0")
    assert second is first
    assert ray.n_gets_whole == 1


@pytest.mark.usefixtures("reads")
def test_a_trace_is_read_once_a_node_from_its_parquet_copy(
    ray: Ray, wide: SharedWorkloads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nodes that do not see the folder fetch the workload from the driver's node."""
    whole = workload_build.load(RECIPE)
    recipe = replace(READ, converted=tmp_path / "converted", digest=whole.digest)
    monkeypatch.setattr(FakeWorkloads, "recipe", lambda self, name: recipe)
    monkeypatch.setattr(nodes.Nodes, "has_other", lambda *_: True)
    for is_there in (True, False):
        if is_there:
            whole.write(tmp_path / "converted")
        else:
            shutil.rmtree(tmp_path / "converted")
        wide.release()
        ray.n_gets_whole = 0
        known = FakeWorkloads()
        assert {place(wide, known, "read")[1].digest for _ in UP} == {whole.digest}
        assert ray.n_gets_whole == (0 if is_there else 2)


def test_the_node_of_the_first_is_known_once_it_is_built(ray: Ray, wide: SharedWorkloads) -> None:
    known = LargeWorkloads()
    ray.node = "there"
    for _ in wide.build_first("0", known):
        pass
    wide._sizes["0"] = Size(LARGE_TASKS + 1, 5)
    assert place(wide, known, "0")[0] == "there"
    assert len(ray.requests) == 1
    assert wide.size("1", known).n_tasks == LARGE_TASKS + 1


def test_the_size_of_one_that_is_being_built_is_that_of_the_last(
    ray: Ray, wide: SharedWorkloads
) -> None:
    known = FakeWorkloads()
    assert wide.size("made", known) == Size(0, 0)
    wide.get("made", known)
    wide.report("made", known, 1.0)
    size = wide.size("made", known)
    assert size.n_tasks > 0
    assert wide.size("another", SimpleNamespace(recipe=lambda _: RECIPE)) == size  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_bytes", "n_built"), [(10**10, 3), (10**6, 1)])
def test_a_node_that_comes_later_does_what_is_faster(
    ray: Ray, wide: SharedWorkloads, n_bytes: int, n_built: int
) -> None:
    """Build it again, in a second, or fetch it."""
    known = LargeWorkloads()
    wide.get("0", known, "here")
    built = BuiltWorkload({"n_tasks": LARGE_TASKS + 1}, Clusters(), n_bytes, seconds=1.0)
    wide._note("0", built)
    assert {place(wide, known, "0")[0] for _ in UP} == {*UP}
    assert len(ray.requests) == n_built


@pytest.mark.parametrize(("n_cells", "n_built"), [(1, 1), (2, 2), (9, 3)])
def test_the_first_is_built_on_as_many_nodes_as_its_cells_need(
    ray: Ray, wide: SharedWorkloads, n_cells: int, n_built: int
) -> None:
    known = LargeWorkloads()
    wide.expect([planned(str(index), "0") for index in range(n_cells)])
    for _ in wide.build_first("0", known):
        pass
    assert len(ray.requests) == n_built


def test_a_copy_is_built_again_after_a_loss_on_its_node(ray: Ray, wide: SharedWorkloads) -> None:
    """A task depends on the process that built it; all are built again if the first is lost."""
    known = LargeWorkloads()
    for node in UP:
        wide.get("0", known, node)
    for node, n_requests in (("here", 3), ("there", 4), ("", 4)):
        wide.lost("0", node, is_object_lost=False)
        for again in UP:
            wide.get("0", known, again)
        assert len(ray.requests) == n_requests
    wide.lost("0", "there", is_object_lost=True)
    wide.get("0", known)
    assert len(ray.requests) == 5
