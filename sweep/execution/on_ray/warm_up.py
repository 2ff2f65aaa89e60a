"""Warm-up: each node compiles the kernels of the cells before they fan out."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.on_ray.connection import Connection
from sweep.execution.on_ray.nodes import pinned

if TYPE_CHECKING:
    from sweep.execution.task import Variant

MAX_WARM_UP_S = 300.0
HEARTBEAT_S = 1.0


def warm_up(
    connection: Connection,
    few_jobs: Any,
    variants: Sequence[Variant],
    python_path: Sequence[str],
    limit_s: float | None,
) -> Iterator[str]:
    """Compile on each node the kernel variants that the cells need, each once, in parallel.

    The few jobs are a reference; the driver never loads them.
    """
    import ray

    find_missing = ray.remote(task.missing_variants)
    compile_variant = ray.remote(task.compile_variant)
    with connection.guarded():
        nodes = connection.nodes.good()
        node_options = [_options_for(key) for key, node in nodes.items() if node.n_cpus >= 1]
        requests = [
            find_missing.options(**options).remote(python_path, few_jobs, variants)
            for options in node_options
        ]
    unanswered = yield from _wait(connection, requests, "", limit_s)
    with connection.guarded():
        for ref in unanswered:  # a policy that hangs while it prepares would occupy its worker
            ray.cancel(ref, force=True)
    compiling = []
    with connection.guarded():
        for options, ref in zip(node_options, requests, strict=True):
            for cell in _result_or_none(ref):
                pinned = compile_variant.options(**options)
                compiling.append(pinned.remote(python_path, few_jobs, cell))
    yield from _wait(connection, compiling, task.COMPILING, None)


def find_by_task(
    connection: Connection, few_jobs: Any, variants: Sequence[Variant], python_path: Sequence[str]
) -> Generator[str, None, set[str]]:
    """Return the keys of cells whose runs move each task by itself, and so need more memory.

    All cells, if that is not known in time.
    """
    import ray

    with connection.guarded():
        options = {"max_retries": 0, **connection.nodes.placement_options()}
        find = ray.remote(num_cpus=1, **options)(task.find_by_task)
        ref = find.remote(python_path, few_jobs, variants)
    yield from _wait(connection, [ref], "", None)
    try:
        keys: set[str] = ray.get(ref, timeout=HEARTBEAT_S)
    except (ray.exceptions.RayError, OSError):
        return {task.variant_key(spec) for spec, _ in variants}
    return keys


def _options_for(node_id: str) -> dict[str, Any]:
    """Return the options of a task that runs on one node."""
    return {"max_retries": 0, "num_cpus": 1, **pinned(node_id)}


def _wait(
    connection: Connection, refs: Sequence[Any], activity: str, limit_s: float | None
) -> Generator[str, None, list[Any]]:
    """Wait until all tasks are done, for `MAX_WARM_UP_S` at most; yield the activity meanwhile.

    Return the tasks that are not done.
    """
    import ray

    waiting, deadline_s = (
        list(refs),
        time.monotonic() + min(MAX_WARM_UP_S, limit_s or MAX_WARM_UP_S),
    )
    while waiting and time.monotonic() < deadline_s:
        yield activity
        with connection.guarded():
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=HEARTBEAT_S)
    return waiting


def _result_or_none(ref: Any) -> list[Any]:
    """Return the result of a task; empty if it failed, as its cells will then."""
    import ray

    try:
        result: list[Any] = ray.get(ref, timeout=HEARTBEAT_S)
    except (ray.exceptions.RayError, OSError):
        return []
    return result
