"""Runner of cells as Ray tasks, on this machine or on an existing cluster."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, summary_line
from sweep.execution import compute, task
from sweep.execution.cell import describe_error
from sweep.execution.compute import ExcludeCached, MakeStoreSpec, Workloads
from sweep.execution.memory import rare_full_collections
from sweep.execution.on_ray import heartbeats
from sweep.execution.on_ray.connection import (
    Connection,
    DisconnectedError,
    classify_loss,
    describe_loss,
    is_object_lost,
    name_loss,
)
from sweep.execution.on_ray.conversion import blame_input, convert
from sweep.execution.on_ray.shared_workloads import SharedWorkloads
from sweep.execution.on_ray.task_queue import MAX_LOST, Batch, TaskQueue
from sweep.execution.on_ray.warm_up import HEARTBEAT_S, find_by_task, warm_up
from sweep.execution.plan import PlannedCell
from sweep.execution.progress import Line
from sweep.execution.result_batch import ResultBatch, TaskPayload
from sweep.execution.watch import GRACE_S, Watched, timeout_message
from sweep.execution.workload_build import Recipe
from sweep.store.cell import CellError, CellResult

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate

N_QUEUED = 32
"""Tasks that wait for a slot, so that none is idle, besides one for every eighth slot."""
BATCHES_AHEAD = 2
"""Result batches of a task that may wait to be collected, before the task itself waits."""
GET_S = 60.0
RETRY_S = 1.0
MAX_RECONNECTS = 10
HEARTBEAT_EVERY_S = 10.0

Outcomes = Iterator[ResultBatch | str]
"""Result batches, and texts (`Line` or the current activity) in between."""


@dataclass
class _Task:
    """A task that was submitted."""

    batch: Batch
    heartbeat: str  # name of its heartbeats
    last_result_s: float  # submission or last result batch
    memory: int  # that it reserves, bytes
    node: str  # chosen for it; empty: Ray chooses


class RayRunner:
    """Runs cells as Ray tasks that are never retried by Ray itself.

    When the cluster's head is lost, it joins again once there is a cluster, and requeues the tasks
    that ran. So it does when this process's node is lost, unless Ray ends the process first.
    """

    def __init__(
        self,
        launcher: Mapping[str, Any],
        python_path: Sequence[str] = (),
        simulate: Simulate | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._launcher = launcher
        self._timeout_s = timeout_s
        self._python_path = list(python_path)
        self._simulate = simulate
        self._connection = Connection(launcher, python_path)
        self._workloads = SharedWorkloads(self._connection, python_path)
        self._tasks: dict[Any, _Task] = {}  # by their generators
        self._heartbeat_prefix = f"{secrets.token_hex(8)}:"
        self._task_numbers = itertools.count()
        self._heartbeats_read_s = 0.0
        self._long_cells = ""
        self._is_ready = False
        self._make_store_spec: MakeStoreSpec | None = None

    slots = property(lambda self: self._connection.slots)  # tasks that run at once

    def convert(self, recipe: Recipe) -> dict[str, Any]:
        """Read and convert a trace by a task; return the workload's description."""
        return convert(self._connection, recipe, self._python_path)

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        make_store_spec: MakeStoreSpec | None = None,
        exclude_cached: ExcludeCached = list,
    ) -> Outcomes:
        """Yield each cell's outcome once, in batches as they arrive; a text every second meanwhile.

        Ray stays up afterwards, for more work, until `close`.
        """
        self._make_store_spec = make_store_spec
        queue = TaskQueue(
            work, slots=1, on_draw=self._workloads.expect, exclude_cached=exclude_cached
        )
        if not self._is_ready:
            yield from self._open(queue.draw(compute.N_FIRST), workloads)
        n_reconnects = 0
        while True:
            try:
                with rare_full_collections():
                    for outcome in self._run(queue, workloads):
                        n_reconnects *= isinstance(outcome, str)
                        yield outcome
                return
            except DisconnectedError as error:
                reason = str(error)  # not the error: its traceback keeps objects alive
            n_reconnects += 1
            if n_reconnects > MAX_RECONNECTS:
                raise InputError(f"{reason}, {n_reconnects} times in a row", rule="no cluster")
            yield from self._requeue_all(queue, reason)
            yield from self._reconnect(reason)

    def _open(self, work: Sequence[PlannedCell], workloads: Workloads) -> Iterator[str]:
        yield "starting Ray" if self._launcher["kind"] == "local" else "joining the cluster"
        if self._simulate is None:
            self._connection.expect(
                (cell.spec for cell in work), {cell.cell.trace.get("module") for cell in work}
            )
        if not self._connection.is_open:
            self._connection.open()
        self._is_ready = True
        try:
            yield from self._connection.until_checked()
            if self._simulate is None:
                yield from self._warm_up(work, workloads)
        except DisconnectedError as error:
            yield from self._reconnect(str(error))

    def close(self) -> None:
        """Stop Ray if it was started for this runner, else leave the cluster."""
        self._clear_tasks()
        if self._connection.stays_up():
            heartbeats.clear(self._heartbeat_prefix)
        self._connection.close()
        self._is_ready = False

    def _run(self, queue: TaskQueue, workloads: Workloads) -> Outcomes:
        import ray

        run_batch = ray.remote(task.run_batch)
        while True:
            if self._connection.update():
                self._cancel_unplaceable()
                yield from self._connection.nodes.pop_lines()
                self._connection.nodes.check_any_usable()
            queue.slots = self._connection.slots
            # until the nodes are updated again
            with_options = cache(partial(self._with_options, run_batch))
            self._fill(with_options, queue, workloads)
            if not self._tasks:
                yield from self._connection.nodes.pop_lines()
                return
            waiting = list(self._tasks)
            with self._connection.guarded():
                # all ready ones in one call: with many tasks each call takes milliseconds
                ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
                if not ready:
                    ready, _ = ray.wait(waiting, num_returns=1, timeout=HEARTBEAT_S)
            if not ready:
                activity = self._read_heartbeats()
                yield activity if self._connection.n_cpus else "waiting for a node to come up"
            for ref in ready:
                yield from self._collect(ref, queue, workloads)
                # at once: while the next thousand are collected, slots would be idle
                self._fill(with_options, queue, workloads)

    def _fill(self, with_options: Any, queue: TaskQueue, workloads: Workloads) -> None:
        max_tasks = queue.slots + min(queue.slots, N_QUEUED + queue.slots // 8)
        while len(self._tasks) < max_tasks and (batch := queue.next()) is not None:
            self._submit(with_options, batch, queue, workloads)

    def _warm_up(self, work: Sequence[PlannedCell], workloads: Workloads) -> Iterator[str]:
        import ray

        try:
            built, first_jobs = yield from self._workloads.build_first(work[0].workload, workloads)
        except ray.exceptions.RayError as error:
            blame_input(error)
            return  # the cells will report it
        specs = [cell.spec for cell in work]
        few_jobs, variants = task.sample_variants(specs, lambda: (first_jobs, built.clusters))
        if few_jobs is not None:
            arguments = (few_jobs, variants, self._python_path, self._timeout_s)
            yield from warm_up(self._connection, *arguments)
            if self._workloads.is_large(work[0].workload, workloads):
                self._workloads.by_task = yield from find_by_task(self._connection, *arguments[:3])

    def _with_options(
        self, run_batch: Any, memory: int, ahead: int, exclude: str, node: str
    ) -> Any:
        # Ray prefers the node that stores the workload, if a slot is free there
        return run_batch.options(
            max_retries=0,
            num_cpus=1,
            memory=memory or None,
            _generator_backpressure_num_objects=ahead,
            **self._connection.nodes.placement_options(exclude, node),
        )

    def _submit(
        self, with_options: Any, batch: Batch, queue: TaskQueue, workloads: Workloads
    ) -> None:
        specs = [tuple(cell.spec) for cell in batch.cells]
        n_bytes = self._workloads.run_bytes(batch, workloads)
        memory = self._connection.memory_to_reserve(n_bytes, double=batch.double_memory)
        store_spec = None if self._make_store_spec is None else self._make_store_spec(batch.cells)
        try:
            node = self._workloads.place(batch.workload, workloads, memory, batch.exclude)
            workload, built = self._workloads.get(batch.workload, workloads, node)
            with self._connection.guarded():
                n_ahead = 1 if batch.one_by_one else BATCHES_AHEAD
                remote = with_options(memory, n_ahead, batch.exclude, node)
                name = f"{self._heartbeat_prefix}{next(self._task_numbers):09d}"
                watched = Watched(name, self._timeout_s, heartbeats.post)
                payload = TaskPayload(
                    specs,
                    queue.flush_policy(batch),
                    self._python_path,
                    self._simulate,
                    watched,
                    store_spec,
                )
                ref = remote.remote(workload, payload, built)
        except DisconnectedError:
            queue.put_back(batch)
            raise
        self._tasks[ref] = _Task(batch, name, time.monotonic(), memory, node)
        self._workloads.n_placed[node] += 1

    def _cancel_unplaceable(self) -> None:
        """Cancel tasks that need more memory than any node has, or a node that is gone."""
        import ray

        largest, nodes = self._connection.largest_memory, self._connection.nodes
        for ref, running in self._tasks.items():
            exclude = running.batch.exclude
            if running.memory > largest or (exclude and not nodes.has_other(exclude)):
                with self._connection.guarded():
                    ray.cancel(ref)

    def _collect(self, ref: Any, queue: TaskQueue, workloads: Workloads) -> Outcomes:
        """Collect the next result batch of a task, or its end."""
        import ray

        batch = self._tasks[ref].batch
        try:
            result_batch: ResultBatch = ray.get(next(ref), timeout=GET_S)
            self._workloads.report(batch.workload, workloads, GET_S)
        except StopIteration:
            queue.requeue(self._pop(ref))
        except (ray.exceptions.RayError, MemoryError) as error:
            blame_input(error)
            yield from self._handle_loss(ref, error, queue)
        except OSError as error:
            raise DisconnectedError(f"the connection to Ray broke: {error}") from error
        else:
            results, cells = result_batch.results, batch.cells
            self._tasks[ref].last_result_s = time.monotonic()
            queue.done(batch, len(results), sum(result.seconds for result in results))
            pairs = zip(cells, results, strict=False)
            final = [result for cell, result in pairs if self._is_final(cell, result, queue)]
            node = self._connection.nodes.name(results[0].node)
            yield ResultBatch(final, result_batch.shards, node)
        for name in queue.pop_completed():
            self._workloads.release(name)

    def _is_final(self, cell: PlannedCell, result: CellResult, queue: TaskQueue) -> bool:
        """Tell whether a result is final; requeue a failed cell that another node must try."""
        nodes = self._connection.nodes
        has_succeeded = result.error is None and not nodes.excluded_node(result.key)
        if has_succeeded or not nodes.must_retry(result, str(cell.cell.policy.get("name"))):
            return True
        queue.retry_elsewhere(cell, nodes.excluded_node(result.key))
        return False

    def _pop(self, ref: Any) -> Batch:
        running = self._tasks.pop(ref)
        self._workloads.n_placed[running.node] -= 1
        return running.batch

    def _handle_loss(self, ref: Any, error: Exception, queue: TaskQueue) -> Outcomes:
        loss = classify_loss(error)
        if loss in ("lost", "broken"):
            self._connection.update(at_once=True)  # a node may have joined just now
            with self._connection.guarded():
                was_excluded = self._connection.nodes.was_excluded(error)
            loss = "excluded" if was_excluded else loss
        entry = self._timed_out(ref) if loss == "lost" else None
        node, batch = self._tasks[ref].node, self._pop(ref)
        if entry is not None:
            cell = queue.timed_out(batch, entry["key"])
            if cell is not None:
                text = timeout_message(self._timeout_s or 0.0)
                details = CellError(
                    stage="worker", type="CellTimeoutError", message=text, traceback=entry["stack"]
                )
                yield ResultBatch([CellResult(cell.key, error=details, seconds=entry["seconds"])])
            return
        if loss in ("lost", "excluded"):
            self._workloads.lost(batch.workload, node, is_object_lost(error))
        if not batch.cells:  # all of its cells had finished
            return
        first_cell, is_batch = batch.cells[0], len(batch.cells) > 1 and not batch.one_by_one
        failed = queue.lost(batch, loss)
        if loss == "lost" and (is_batch or queue.n_losses(first_cell) == 1):
            subject = f"{len(batch.cells)} cells" if is_batch else first_cell.name
            yield Line(f"{name_loss(error)} {subject}; retrying up to {MAX_LOST} times")
        for cell in failed:
            details = _worker_error(error)
            if loss == "lost":
                details["message"] = describe_loss(error, queue.n_losses(cell))
            yield ResultBatch([CellResult(cell.key, error=details)])

    def _timed_out(self, ref: Any) -> dict[str, Any] | None:
        """Return the last heartbeat of a worker that ended itself at the time limit, else None.

        A worker whose cell blocks all other threads posts none: it is recognized by its run time.
        """
        running = self._tasks[ref]
        name, batch = running.heartbeat, running.batch
        entry = heartbeats.read(name).get(name) if self._connection.answers() else None
        if entry is not None and entry["over"]:
            return entry
        seconds = time.monotonic() - running.last_result_s
        is_known = len(batch.cells) == 1 or bool(batch.one_by_one and batch.cells)
        if self._timeout_s is None or not is_known or seconds < self._timeout_s + GRACE_S:
            return None
        return {"key": batch.cells[0].key, "seconds": seconds, "stack": ""}

    def _read_heartbeats(self) -> str:
        """Describe the cells that run for long; the text changes every few seconds at most."""
        if time.monotonic() < self._heartbeats_read_s + HEARTBEAT_EVERY_S:
            return self._long_cells
        self._heartbeats_read_s = time.monotonic()
        posted = heartbeats.read(self._heartbeat_prefix) if self._connection.answers() else {}
        keys = {entry["key"] for entry in posted.values()}
        batches = [running.batch for running in self._tasks.values()] if keys else []
        in_flight = (cell for batch in batches for cell in batch.cells)
        names = {cell.key: cell.name for cell in in_flight if cell.key in keys}
        self._long_cells = heartbeats.describe(posted.values(), names)
        return self._long_cells

    def _clear_tasks(self) -> None:
        self._workloads.release()
        self._workloads.n_placed.clear()
        self._tasks.clear()

    def _requeue_all(self, queue: TaskQueue, reason: str) -> Iterator[ResultBatch]:
        """Requeue the cells of all running tasks."""
        batches = [running.batch for running in self._tasks.values()]
        self._clear_tasks()
        error = _worker_error(DisconnectedError(reason))
        failed = (cell for batch in batches for cell in queue.lost(batch, "lost"))
        yield from (ResultBatch([CellResult(cell.key, error=error)]) for cell in failed)

    def _reconnect(self, reason: str) -> Iterator[str]:
        """Join the cluster again, or start Ray again, as soon as possible."""
        patience_s = float(self._launcher.get("patience_s") or 0.0)
        deadline_s = time.monotonic() + patience_s
        while True:
            yield f"{reason}; reconnecting"
            self._connection.close()
            try:
                self._connection.open()
            except (InputError, DisconnectedError) as error:
                if time.monotonic() > deadline_s:
                    raise InputError(
                        f"{reason}; it did not come back within {patience_s:g} s "
                        f"(launcher.patience_s): {error}; finished cells are stored, the same "
                        "command resumes",
                        rule="no cluster",
                    ) from error
            else:
                return
            time.sleep(RETRY_S)


def _worker_error(error: Exception) -> CellError:
    return {**describe_error("worker", error), "message": summary_line(error)}
