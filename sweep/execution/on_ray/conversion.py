"""Conversion of traces by a task before cells have keys, so that the driver parses none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sweep.execution import task
from sweep.execution.notes import note
from sweep.execution.on_ray.connection import (
    Connection,
    DisconnectedError,
    could_not_load,
    last_line,
)
from sweep.execution.on_ray.environment import suspects
from sweep.execution.workload_build import Recipe
from sweep.grid import remote, traces

LARGE_BYTES = 2**24
"""Size of a trace from which its reader's process is ended, to free the memory."""


def convert(connection: Connection, recipe: Recipe, python_path: Sequence[str]) -> dict[str, Any]:
    """Read and convert a trace by a task on this machine; return the workload's description.

    Ray is started for it. A cluster is left again, so that its nodes are checked for the cells when
    it is joined to run them. Raises the error of the trace's reader.
    """
    if connection.is_remote_driver:
        return task.convert(recipe, python_path)
    import ray

    broken = (ray.exceptions.RpcError, ray.exceptions.RaySystemError)
    was_open = connection.is_open
    path = ", ".join(map(mask, traces.paths(recipe.trace)))
    is_large = _n_bytes(recipe) > LARGE_BYTES
    if is_large:
        note(f"reading {path}")
    try:
        if not was_open:
            connection.open()
        with connection.guarded():
            options = {"max_retries": 0, **connection.own_node_options()}
            if is_large:
                options["max_calls"] = 1  # the memory of reading is freed with its process
            ref = ray.remote(**options)(task.convert).remote(recipe, python_path)
        description: dict[str, Any] = ray.get(ref)
        return description
    except ray.exceptions.RayTaskError as error:  # also an instance of its cause's class
        blame_input(error)
        if not could_not_load(error):
            raise
        *_, last = str(error.cause).strip().splitlines()
        raise InputError(
            f"the trace can't be read: a worker here can't load the sweep's code ({last}); give "
            "the node a --temp-dir that no other node shares, then run the same command again",
            rule="no node",
        ) from error
    except (DisconnectedError, OSError, *broken) as error:
        message = f"{summary_line(error)}; the same command resumes"
        raise InputError(message, rule="no cluster") from error
    except ray.exceptions.RuntimeEnvSetupError as error:
        raise InputError(
            "the trace can't be read: Ray could not set up the environment of its reader: "
            f"{last_line(error)}{suspects()}",
            rule="no cluster",
        ) from error
    except ray.exceptions.RayError as error:
        raise InputError(
            f"the trace can't be read: its reader's process died ({summary_line(error)}): it may "
            "be out of memory, or the reader crashed; launcher=inline shows it",
            file=path,
        ) from error
    finally:
        if not was_open:
            connection.leave()


def _n_bytes(recipe: Recipe) -> int:
    n_bytes = 0
    for path in map(remote.local_path, traces.paths(recipe.trace)):
        files = path.rglob("*") if path.is_dir() else [path]
        n_bytes += sum(file.stat().st_size for file in files if file.is_file())
    return n_bytes


def blame_input(error: Exception) -> None:
    """Raise the cause of a failed task where a workload is wrong."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, InputError):
        raise cause from None
