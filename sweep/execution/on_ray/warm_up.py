"""Each node compiles what the cells will need, before they fan out."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.on_ray.connection import Connection

if TYPE_CHECKING:
    from sweep.execution.task import Variant

WARM_UP_S = 300.0
HEARTBEAT_S = 1.0


def warm_up(
    connection: Connection,
    few_jobs: Any,
    variants: Sequence[Variant],
    python_path: Sequence[str],
    most_s: float | None,
) -> Iterator[str]:
    """Let each node compile what cells like these need, each variant once, side by side.

    The few jobs are a reference: the driver never opens them.
    """
    import ray

    missing, compile_for = ray.remote(task.missing), ray.remote(task.compile_for)
    with connection.guarded():
        nodes = connection.nodes.good()
        there = [_on(key) for key, node in nodes.items() if node.n_cpus >= 1]
        asked = [missing.options(**on).remote(python_path, few_jobs, variants) for on in there]
    silent = yield from _wait(connection, asked, "", most_s)
    with connection.guarded():
        for ref in silent:  # a policy that hangs as it prepares would keep its worker
            ray.cancel(ref, force=True)
    compiling = []
    with connection.guarded():
        for on, ref in zip(there, asked, strict=True):
            for one in _answer(ref):
                there_only = compile_for.options(**on)
                compiling.append(there_only.remote(python_path, few_jobs, one))
    yield from _wait(connection, compiling, task.COMPILING, None)


def _on(node_id: str) -> dict[str, Any]:
    """Return the options of a task for one node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return {"max_retries": 0, "num_cpus": 1, "scheduling_strategy": where}


def _wait(
    connection: Connection, refs: Sequence[Any], doing: str, most_s: float | None
) -> Generator[str, None, list[Any]]:
    """Wait until all tasks are over, for some minutes at most; say what is going on.

    Return those that are not.
    """
    import ray

    waiting, end = list(refs), time.monotonic() + min(WARM_UP_S, most_s or WARM_UP_S)
    while waiting and time.monotonic() < end:
        yield doing
        with connection.guarded():
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=HEARTBEAT_S)
    return waiting


def _answer(ref: Any) -> list[Any]:
    """Return what a task found; nothing if it failed, as its cells will then."""
    import ray

    try:
        found: list[Any] = ray.get(ref, timeout=HEARTBEAT_S)
    except (ray.exceptions.RayError, OSError):
        return []
    return found
