"""Driver with thousands of slots: a fake Ray ends tasks in virtual time.

It stands in for Ray under `sweep.execution.on_ray.pool`. Its clock is the processor time of the
driver's thread, and what a driver pays within Ray on top (`TASK_S`, `PART_S`, `WAIT_S`, measured on
this project's machine); while the driver waits, it jumps to when something is ready.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa

from sweep.execution import compute, plan
from sweep.execution.on_ray import connection
from sweep.execution.on_ray.pool import RayRunner
from sweep.execution.result_batch import ResultBatch, TaskPayload
from sweep.execution.workload_build import BuiltWorkload, Clusters
from sweep.grid import grid
from sweep.grid.request import Request
from sweep.store import shards
from sweep.store.cell import CellResult
from sweep.store.journal import Journal
from sweep.store.shard_writer import PendingShard
from sweep.store.shards import Row

TASK_S, PART_S, WAIT_S = 0.4e-3, 0.4e-3, 3e-6
"""For handing out a task; for a part of one; for each task that is looked at while waiting."""
DISPATCH_S = 0.01
"""From when a task is handed out to when an idle slot begins it."""
MADE = ()
"""Stands for a reference to a workload."""
METRICS = {f"metric_{time_s}": float(time_s) for time_s in range(20)}


class Task:
    """The parts of a task as they come."""

    def __init__(self, fleet: Fleet, chunk: TaskPayload, most_ahead: int) -> None:
        self._fleet = fleet
        self._keys = [spec[0] for spec in chunk.specs]
        self.n_left = len(self._keys)
        self.flush_policy = chunk.flush_policy
        self.most_ahead = most_ahead
        self.ready: deque[int] = deque()  # cells of parts that were not taken
        self.begun_s = 0.0
        self.is_over = self.is_stalled = False

    def __next__(self) -> list[str]:
        """Take the next part: the keys of its cells."""
        if not self.ready:
            raise StopIteration
        n_cells = self.ready.popleft()
        keys, self._keys = self._keys[:n_cells], self._keys[n_cells:]
        self._fleet.charged_s += PART_S
        if self.is_stalled:
            self.is_stalled = False
            self._fleet.go_on(self, self._fleet.now())
        return keys


class Fleet:
    """Slots that take a second a cell."""

    exceptions: Any

    def __init__(self, n_nodes: int, slots_each: int, cell_s: float) -> None:
        import ray

        self.exceptions = ray.exceptions
        self.cell_s = cell_s
        self.n_nodes, self.slots_each = n_nodes, slots_each
        self.charged_s = self._aside_s = 0.0
        self._free = n_nodes * slots_each
        self._queue: deque[Task] = deque()
        self._events: list[tuple[float, int, Task, int]] = []
        self._order = itertools.count()
        self._schema = pa.schema([]).serialize().to_pybytes()
        self._began_s = 0.0
        self._worked: list[tuple[float, float]] = []
        self._full_s = self._handed_out_s = self._last_s = 0.0

    def begin(self) -> None:
        """Let time begin."""
        self._began_s = time.thread_time()

    def now(self) -> float:
        """Time of the fleet, s."""
        return time.thread_time() - self._began_s - self._aside_s + self.charged_s

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Do what only the fake has to do: it takes no time."""
        begin = time.thread_time()
        try:
            yield
        finally:
            self._aside_s += time.thread_time() - begin

    def remote(self, function: Any = None, **_: Any) -> Any:
        """Stand for ``ray.remote``; what makes the workload is there at once."""
        if function is None:
            return lambda _: SimpleNamespace(remote=lambda *_: (MADE, MADE, MADE))

        def submit(workload: Any, chunk: TaskPayload, built_ref: Any, ahead: int) -> Task:
            with self.aside():
                self.charged_s += TASK_S
                task = Task(self, chunk, ahead)
                self._happen(self.now())  # a slot that is free since began none of later tasks
                self._queue.append(task)
                self._handed_out_s = self.now()
                self._start(self._handed_out_s)
            return task

        def options(**settings: Any) -> Any:
            ahead = settings["_generator_backpressure_num_objects"]
            return SimpleNamespace(remote=lambda *args: submit(*args, ahead=ahead))

        return SimpleNamespace(options=options)

    def _start(self, at_s: float) -> None:
        while self._free and self._queue:
            self._free -= 1
            task = self._queue.popleft()
            task.begun_s = at_s + DISPATCH_S
            if not self._free:
                self._full_s = self._full_s or task.begun_s
            self.go_on(task, task.begun_s)

    def go_on(self, task: Task, time_s: float) -> None:
        """Let a task work on its next part."""
        left_s = task.flush_policy.stop_s - (time_s - task.begun_s)
        most_s = max(self.cell_s, min(task.flush_policy.flush_s, left_s))
        n_cells = min(task.n_left, max(1, -int(-most_s // self.cell_s)))
        end = time_s + n_cells * self.cell_s
        self._worked.append((time_s, end))
        heapq.heappush(self._events, (end, next(self._order), task, n_cells))

    def _happen(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            time_s, _, task, n_cells = heapq.heappop(self._events)
            self._last_s = time_s
            task.n_left -= n_cells
            task.ready.append(n_cells)
            if not task.n_left or time_s - task.begun_s >= task.flush_policy.stop_s:
                task.is_over = True
                self._free += 1
                self._start(time_s)
            elif len(task.ready) >= task.most_ahead:
                task.is_stalled = True
            else:
                self.go_on(task, time_s)

    def wait(
        self, refs: Sequence[Task], num_returns: int = 1, timeout: float = 0.0, **_: Any
    ) -> tuple[list[Task], list[Task]]:
        """Stand for ``ray.wait``."""
        with self.aside():
            self.charged_s += WAIT_S * len(refs)
            self._happen(self.now())
            ready = [task for task in refs if task.ready or task.is_over]
            if not ready and timeout and self._events:
                self.charged_s += min(timeout, max(0.0, self._events[0][0] - self.now()))
                self._happen(self.now())
                ready = [task for task in refs if task.ready or task.is_over]
        return ready[:num_returns], []

    def get(self, keys: Sequence[str], **_: Any) -> Any:
        """Stand for ``ray.get``: of a part what its cells came to, their shard put."""
        if not keys:
            return BuiltWorkload({"n_tasks": 1}, Clusters())
        with self.aside():
            rows = [Row(bytes.fromhex(key), "{}", self._schema, b"", METRICS) for key in keys]
            shard, about = shards.encode(rows)
            results = [CellResult(key, seconds=self.cell_s, node=f"{0:056x}") for key in keys]
            return ResultBatch(results, [PendingShard(about, shards.digest_name(shard), None)])

    def put(self, value: Any) -> Any:
        """Stand for ``ray.put``."""
        return value

    def busy(self) -> tuple[float, float]:
        """Return which part of the slots' time they worked: of all, and of that while cells wait.

        All is from the first begin to the last end. Cells wait from when every slot has begun one
        until the last task is handed out.
        """
        slots = self.n_nodes * self.slots_each
        begin = min(time_s for time_s, _ in self._worked)

        def part(low: float, high: float) -> float:
            overlap_s = sum(
                max(0.0, min(end, high) - max(time_s, low)) for time_s, end in self._worked
            )
            return overlap_s / (slots * (high - low))

        return part(begin, self._last_s), part(self._full_s, self._handed_out_s)

    def nodes(self) -> list[dict[str, Any]]:
        """Stand for ``ray.nodes``."""
        resources = {"CPU": float(self.slots_each), "memory": 1e9}
        up = {"Alive": True, "NodeManagerAddress": "", "NodeManagerPort": 1, "Resources": resources}
        return [{**up, "NodeID": f"{time_s:056x}"} for time_s in range(self.n_nodes)]

    def get_runtime_context(self) -> Any:
        """Stand for ``ray.get_runtime_context``."""
        return SimpleNamespace(gcs_address="head:1", get_node_id=lambda: f"{0:056x}")

    def is_initialized(self) -> bool:
        """Stand for ``ray.is_initialized``."""
        return True

    def shutdown(self) -> None:
        """Stand for ``ray.shutdown``."""


def busy(
    n_nodes: int, slots_each: int, grid_request: Request, cell_s: float = 1.0
) -> tuple[float, float]:
    """Run the cells that are asked for, and keep them; return what `Fleet.busy` does."""
    fleet = Fleet(n_nodes, slots_each, cell_s)
    prepared = plan.prepare(grid.build(grid_request))
    rows = prepared.missing_rows()
    journal = Journal(prepared.cache.results, prepared.sweep)
    with (
        mock.patch.dict(sys.modules, {"ray": fleet}),
        mock.patch.object(connection, "join"),
        mock.patch.object(connection, "knock"),
    ):
        launcher = {"kind": "ray", "address": "auto"}
        runner = RayRunner(launcher, simulate=lambda *_, **__: None)  # type: ignore[arg-type,return-value]
        fleet.begin()
        errors = compute.run(prepared, prepared.by_workload(rows), len(rows), journal, runner)
    if errors or len(prepared.missing_rows()):
        left = len(prepared.missing_rows())
        raise RuntimeError(f"{left} of {len(rows)} cells did not come back")
    return fleet.busy()
