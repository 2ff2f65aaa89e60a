"""Traces read by a task before their cells have keys, and converted: the driver parses none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sweep.execution import task
from sweep.execution.notes import note
from sweep.execution.on_ray.connection import Connection, DisconnectedError, ran_nothing
from sweep.execution.workload_build import Recipe
from sweep.grid import remote

LARGE = 2**24
"""Bytes of a trace whose reader's process is not kept for more work, for its memory."""


def convert(connection: Connection, recipe: Recipe, python_path: Sequence[str]) -> dict[str, Any]:
    """Have a trace read and converted on this machine; return what is known of it then.

    Ray is started for it. A cluster is left again, so that its nodes are checked for the cells when
    it is joined to run them. Raises what the trace's reader did.
    """
    if connection.is_afar:
        return task.convert(recipe, python_path)
    import ray

    broken = (ray.exceptions.RpcError, ray.exceptions.RaySystemError)
    was_open = connection.is_open
    path = mask(str(recipe.trace["path"]))
    is_large = _n_bytes(recipe) > LARGE
    if is_large:
        note(f"reading {path}")
    try:
        if not was_open:
            connection.open()
        with connection.guarded():
            options = {"max_retries": 0, **connection.here()}
            if is_large:
                options["max_calls"] = 1  # what reading took goes with its process
            ref = ray.remote(**options)(task.convert).remote(recipe, python_path)
        found: dict[str, Any] = ray.get(ref)
        return found
    except ray.exceptions.RayTaskError as error:  # which is of the kind of its cause, too
        blame_input(error)
        if not ran_nothing(error):
            raise
        *_, last = str(error.cause).strip().splitlines()
        raise InputError(
            f"the trace can't be read: a worker here can't load the sweep's code ({last}); give "
            "the node a --temp-dir that no other node shares; the same command again goes on",
            rule="no node",
        ) from error
    except (DisconnectedError, OSError, *broken) as error:
        what = f"{summary_line(error)}; the same command again goes on"
        raise InputError(what, rule="no cluster") from error
    except ray.exceptions.RayError as error:
        raise InputError(
            f"the trace can't be read: the process that did ended ({summary_line(error)}), for its "
            "memory or by what the reader does; launcher=inline shows it",
            file=path,
        ) from error
    finally:
        if not was_open:
            connection.leave()


def _n_bytes(recipe: Recipe) -> int:
    path = remote.here(str(recipe.trace["path"]))
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def blame_input(error: Exception) -> None:
    """Raise what is wrong with a workload, where that is why a task has no outcome."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, InputError):
        raise cause from None
