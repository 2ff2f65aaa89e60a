"""Traces that a task reads, as far as it can be told without Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors

from sim.base.errors import InputError
from sweep.execution.on_ray import connection, conversion
from sweep.execution.on_ray.connection import Connection
from sweep.execution.on_ray.conversion import convert
from sweep.execution.workload_build import Recipe
from tests.sweep.small import write_workload

CLUSTER = {"shape": "slots", "count": 2, "load": None}


class Ray:
    """Runs tasks when they are asked for, and fails as it is told to."""

    exceptions = ray_errors

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.n_left = 0
        self.fails_with: Exception | None = None

    def remote(self, **options: Any) -> Any:
        self.requests.append(options)
        return lambda task: SimpleNamespace(remote=task)

    def get(self, ref: Any) -> Any:
        if self.fails_with is not None:
            raise self.fails_with
        return ref

    def shutdown(self) -> None:
        self.n_left += 1


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    fake = Ray()
    monkeypatch.setitem(sys.modules, "ray", fake)
    for start in ("join", "start_local"):
        monkeypatch.setattr(connection, start, lambda *_: None)
    monkeypatch.setattr(Connection, "update", lambda self: True)
    monkeypatch.setattr(Connection, "own_node_options", lambda self: {"where": "here"})
    return fake


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return Recipe({"format": "parquet", "path": str(write_workload(tmp_path / "t"))}, CLUSTER)


@pytest.mark.parametrize(("kind", "n_left"), [("local", 0), ("ray", 1)])
def test_a_task_reads_it_here(ray: Ray, recipe: Recipe, kind: str, n_left: int) -> None:
    ray_connection = Connection({"kind": kind}, [])
    assert convert(ray_connection, recipe, [])["n_jobs"] == 6
    assert ray.requests == [{"max_retries": 0, "where": "here"}]
    assert ray.n_left == n_left
    assert ray_connection.is_open == (n_left == 0)


def test_a_large_one_has_a_process_of_its_own(
    ray: Ray, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "LARGE_BYTES", 100)
    convert(Connection({"kind": "local"}, []), recipe, [])
    assert ray.requests[0]["max_calls"] == 1


def test_a_cluster_that_cells_run_on_is_not_left(ray: Ray, recipe: Recipe) -> None:
    ray_connection = Connection({"kind": "ray"}, [])
    ray_connection.open()
    convert(ray_connection, recipe, [])
    assert ray_connection.is_open
    assert not ray.n_left


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            ray_errors.RuntimeEnvSetupError("Failed\nOSError: no package gcs://x.zip"),
            "Ray could not set up the environment of its reader: OSError: no package gcs://x.zip; "
            "RAY_JOB_CONFIG_JSON_ENV_VAR",
        ),
        (
            ray_errors.WorkerCrashedError(),
            "its reader's process died (The worker died unexpectedly while executing this task. "
            "Check python-core-worker-*.log files for more information.): it may be out of memory, "
            "or the reader crashed; launcher=inline shows it",
        ),
    ],
)
def test_a_reader_that_is_lost_has_its_reason(
    ray: Ray, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    ray.fails_with = error
    with pytest.raises(InputError) as caught:
        convert(Connection({"kind": "local"}, []), recipe, [])
    assert caught.value.message.startswith(f"the trace can't be read: {reason}")


def test_a_driver_outside_the_cluster_reads_by_itself(ray: Ray, recipe: Recipe) -> None:
    afar = Connection({"kind": "ray", "address": "ray://head:10001"}, [])
    assert convert(afar, recipe, [])["n_jobs"] == 6
    assert not ray.requests


def test_what_the_reader_raised_is_raised(ray: Ray, recipe: Recipe) -> None:
    wrong = InputError("no job is left", file="a.swf", line=3)
    ray.fails_with = ray_errors.RayTaskError("convert", "", wrong, "title", 1, "ip")
    with pytest.raises(InputError, match=r"^a.swf:3: no job is left$"):
        convert(Connection({"kind": "ray"}, []), recipe, [])
    assert ray.n_left == 1


def test_a_readers_own_error_is_not_the_clusters(ray: Ray, recipe: Recipe) -> None:
    plain = ray_errors.RayTaskError("convert", "", PermissionError("no"), "title", 1, "ip")
    ray.fails_with = plain.as_instanceof_cause()
    assert isinstance(ray.fails_with, OSError)
    with pytest.raises(ray_errors.RayTaskError):
        convert(Connection({"kind": "local"}, []), recipe, [])


@pytest.mark.parametrize(
    "cause",
    [
        RuntimeError(
            "The remote function failed to import on the worker.\nImportError: no sim.x\n"
        ),
        ray_errors.RaySystemError("System error: no sim.x", "traceback\nImportError: no sim.x"),
    ],
)
def test_a_worker_without_the_code_is_told(ray: Ray, recipe: Recipe, cause: Exception) -> None:
    ray.fails_with = ray_errors.RayTaskError("convert", "", cause, "title", 1, "ip")
    with pytest.raises(InputError, match=r"can't load the sweep's code \(ImportError: no sim.x\)"):
        convert(Connection({"kind": "local"}, []), recipe, [])


def test_a_reader_that_ended_is_told(ray: Ray, recipe: Recipe) -> None:
    ray.fails_with = ray_errors.OutOfMemoryError("killed")
    with pytest.raises(InputError, match="launcher=inline shows it") as caught:
        convert(Connection({"kind": "local"}, []), recipe, [])
    assert caught.value.file == recipe.trace["path"]


def test_a_cluster_that_is_gone_is_told(ray: Ray, recipe: Recipe) -> None:
    ray.fails_with = OSError("Broken pipe")
    with pytest.raises(InputError, match="Broken pipe; the same command resumes"):
        convert(Connection({"kind": "local"}, []), recipe, [])
