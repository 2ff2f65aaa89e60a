"""Cells as Ray tasks, on this machine or on an existing cluster."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, summary_line
from sweep.execution import task
from sweep.execution.cell import describe_error
from sweep.execution.compute import (
    FIRST,
    ExcludeCached,
    InlineRunner,
    MakeStoreSpec,
    Runner,
    Workloads,
)
from sweep.execution.memory import collecting_seldom
from sweep.execution.on_ray import heartbeats
from sweep.execution.on_ray.connection import Connection, DisconnectedError, judge
from sweep.execution.on_ray.conversion import blame_input, convert
from sweep.execution.on_ray.shared_workloads import SharedWorkloads
from sweep.execution.on_ray.task_queue import MAX_LOST, Batch, TaskQueue
from sweep.execution.on_ray.warm_up import HEARTBEAT_S, warm_up
from sweep.execution.plan import PlannedCell
from sweep.execution.progress import Line
from sweep.execution.result_batch import ResultBatch, TaskPayload
from sweep.execution.watch import GRACE_S, Watched, too_long
from sweep.execution.workload_build import Recipe
from sweep.store.cell import CellError, CellResult

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate

AHEAD = 32
"""How many tasks wait for a slot, so that none is idle, beside one for every eighth slot."""
PARTS_AHEAD = 2
"""How many parts of a task may wait to be taken in, before it waits itself."""
GET_S = 60.0
AGAIN_S = 1.0
MAX_IN_VAIN = 10
ASK_S = 10.0
MOST_NAMED = 3


class RayRunner:
    """Runs cells as Ray tasks that are never retried by Ray itself.

    When the cluster's head goes, it joins again once there is a cluster, and hands out anew what
    was on its way. So it does when this process's node goes, unless Ray ends the process first.
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
        self._shared = SharedWorkloads(self._connection, python_path)
        self._tasks: dict[Any, Batch] = {}  # by the generator of its parts
        self._names: dict[Any, str] = {}  # under which tasks say what runs for long
        self._heard_s: dict[Any, float] = {}  # when it was handed out, or a part of it came
        self._board = f"{secrets.token_hex(8)}:"
        self._n_named = itertools.count()
        self._asked_s = 0.0
        self._long = ""
        self._memory: dict[Any, int] = {}
        self._is_ready = False
        self._keep: MakeStoreSpec | None = None

    slots = property(lambda self: self._connection.slots)  # tasks that run at once

    def convert(self, recipe: Recipe) -> dict[str, Any]:
        """Have a trace read by a task; return what is known of it then."""
        return convert(self._connection, recipe, self._python_path)

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        keep: MakeStoreSpec | None = None,
        wanted: ExcludeCached = list,
    ) -> Iterator[ResultBatch | str]:
        """Yield each cell's outcome once, in parts as they come; a text every second without one.

        Ray stays up afterwards, for more work, until `close`.
        """
        self._keep = keep
        batches = TaskQueue(work, slots=1, drawn=self._shared.expect, wanted=wanted)
        if not self._is_ready:
            yield from self._open(batches.draw(FIRST), workloads)
        n_in_vain = 0
        while True:
            try:
                with collecting_seldom():
                    for outcome in self._run(batches, workloads):
                        n_in_vain *= isinstance(outcome, str)
                        yield outcome
                return
            except DisconnectedError as error:
                why = str(error)  # and not its traceback, which holds on to objects
            n_in_vain += 1
            if n_in_vain > MAX_IN_VAIN:
                raise InputError(f"{why}, {n_in_vain} times in a row", rule="no cluster")
            yield from self._lose_all(batches, why)
            yield from self._come_back(why)

    def _open(self, work: Sequence[PlannedCell], workloads: Workloads) -> Iterator[str]:
        yield "starting Ray" if self._launcher["kind"] == "local" else "joining the cluster"
        if self._simulate is None:
            self._connection.expect(cell.spec for cell in work)
        if not self._connection.is_open:
            self._connection.open()
        self._is_ready = True
        try:
            yield from self._connection.until_checked()
            if self._simulate is None:
                yield from self._warm_up(work, workloads)
        except DisconnectedError as error:
            yield from self._come_back(str(error))

    def close(self) -> None:
        """Stop Ray if it was started for this runner, else leave the cluster."""
        self._forget_tasks()
        if self._connection.stays_up():
            heartbeats.clear(self._board)
        self._connection.close()
        self._is_ready = False

    def _run(self, batches: TaskQueue, workloads: Workloads) -> Iterator[ResultBatch | str]:
        import ray

        run_batch = ray.remote(task.run_batch)
        while True:
            if self._connection.look():
                self._forget_what_fits_nowhere()
                yield from self._connection.nodes.news()
                self._connection.nodes.insist()
            batches.slots = self._connection.slots
            placed = cache(partial(self._placed, run_batch))  # until nodes are looked at again
            self._fill(placed, batches, workloads)
            if not self._tasks:
                yield from self._connection.nodes.news()
                return
            waiting = list(self._tasks)
            with self._connection.guarded():
                # all that is there, in one look: of many tasks each look takes milliseconds
                ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
                if not ready:
                    ready, _ = ray.wait(waiting, num_returns=1, timeout=HEARTBEAT_S)
            if not ready:
                doing = self._running_long()
                yield doing if self._connection.n_cpus else "waiting for a node to come up"
            for ref in ready:
                yield from self._collect(ref, batches, workloads)
                # at once: while the next thousand are taken in, slots would wait
                self._fill(placed, batches, workloads)

    def _fill(self, placed: Any, batches: TaskQueue, workloads: Workloads) -> None:
        most = _most_tasks(batches.slots)
        while len(self._tasks) < most and (batch := batches.next()) is not None:
            self._submit(placed, batch, batches, workloads)

    def _warm_up(self, work: Sequence[PlannedCell], workloads: Workloads) -> Iterator[str]:
        import ray

        try:
            made, first_jobs = yield from self._shared.first(work[0].input, workloads)
        except ray.exceptions.RayError as error:
            blame_input(error)
            return  # the cells will say what it is
        specs = [cell.spec for cell in work]
        few_jobs, variants = task.sample(specs, lambda: (first_jobs, made.clusters))
        if few_jobs is not None:
            how = (few_jobs, variants, self._python_path, self._timeout_s)
            yield from warm_up(self._connection, *how)

    def _placed(self, run_batch: Any, memory: int, ahead: int, but: str) -> Any:
        # Ray places it where the workload lies, if there is a slot, else elsewhere
        return run_batch.options(
            max_retries=0,
            num_cpus=1,
            memory=memory or None,
            _generator_backpressure_num_objects=ahead,
            **self._connection.nodes.where(but),
        )

    def _submit(self, placed: Any, batch: Batch, batches: TaskQueue, workloads: Workloads) -> None:
        specs = [tuple(cell.spec) for cell in batch.work]
        memory = self._connection.doubled_memory if batch.doubled else 0
        keeping = None if self._keep is None else self._keep(batch.work)
        try:
            workload, made = self._shared.get(batch.input, workloads)
            with self._connection.guarded():
                remote = placed(memory, 1 if batch.careful else PARTS_AHEAD, batch.but)
                name = f"{self._board}{next(self._n_named):09d}"
                watched = Watched(name, self._timeout_s, heartbeats.post)
                how = (batches.pace(batch), self._python_path, self._simulate, watched, keeping)
                ref = remote.remote(workload, TaskPayload(specs, *how), made)
        except DisconnectedError:
            batches.put_back(batch)
            raise
        self._tasks[ref] = batch
        self._names[ref] = name
        self._heard_s[ref] = time.monotonic()
        if memory:
            self._memory[ref] = memory

    def _forget_what_fits_nowhere(self) -> None:
        """Cancel tasks that ask for more memory than any node has, or for a node that is gone."""
        import ray

        largest, nodes = self._connection.largest_memory, self._connection.nodes
        for ref, batch in self._tasks.items():
            is_too_large = self._memory.get(ref, 0) > largest
            if is_too_large or (batch.but and not nodes.has(batch.but)):
                with self._connection.guarded():
                    ray.cancel(ref)

    def _collect(
        self, ref: Any, batches: TaskQueue, workloads: Workloads
    ) -> Iterator[ResultBatch | Line]:
        """Take in the next part of a task, or that it is over."""
        import ray

        batch = self._tasks[ref]
        try:
            part: ResultBatch = ray.get(next(ref), timeout=GET_S)
            self._shared.learn(batch.input, workloads, GET_S)
        except StopIteration:
            batches.left(self._pop(ref))
        except (ray.exceptions.RayError, MemoryError) as error:
            blame_input(error)
            yield from self._lose(ref, error, batches)
        except OSError as error:
            raise DisconnectedError(f"the connection to Ray broke: {error}") from error
        else:
            results, cells = part.results, batch.work
            self._heard_s[ref] = time.monotonic()
            batches.done(batch, len(results), sum(result.seconds for result in results))
            pairs = zip(cells, results, strict=False)
            there = [result for cell, result in pairs if self._counts(cell, result, batches)]
            yield ResultBatch(there, part.kept, self._connection.nodes.name(results[0].node))
        for name in batches.over():
            self._shared.forget(name)

    def _counts(self, cell: PlannedCell, result: CellResult, batches: TaskQueue) -> bool:
        """Tell whether a cell is settled; one that failed may have to be tried elsewhere."""
        nodes = self._connection.nodes
        is_plain = result.error is None and not nodes.but(result.key)
        if is_plain or not nodes.is_tried_elsewhere(result, str(cell.cell.policy.get("name"))):
            return True
        batches.elsewhere(cell, nodes.but(result.key))
        return False

    def _pop(self, ref: Any) -> Batch:
        self._memory.pop(ref, None)
        self._names.pop(ref)
        self._heard_s.pop(ref)
        return self._tasks.pop(ref)

    def _lose(self, ref: Any, error: Exception, batches: TaskQueue) -> Iterator[ResultBatch | Line]:
        verdict = judge(error)
        if verdict in ("lost", "broken"):
            self._connection.look(at_once=True)  # it may have joined just now
            with self._connection.guarded():
                is_at_fault = self._connection.nodes.is_at_fault(error)
            verdict = "away" if is_at_fault else verdict
        over = self._ended(ref) if verdict == "lost" else None
        batch = self._pop(ref)
        if over is not None:
            cell = batches.ended(batch, over["key"])
            if cell is not None:
                text = too_long(self._timeout_s or 0.0)
                about = CellError(
                    stage="worker", type="CellTimeoutError", message=text, traceback=over["stack"]
                )
                yield ResultBatch([CellResult(cell.key, error=about, seconds=over["seconds"])])
            return
        if verdict in ("lost", "away") and _is_for_good(error):
            self._shared.forget(batch.input)
        if not batch.work:  # all of its cells had come back
            return
        one, many = batch.work[0], len(batch.work) > 1 and not batch.careful
        given_up = batches.lost(batch, verdict)
        if verdict == "lost" and (many or batches.n_lost(one) == 1):
            what = f"{len(batch.work)} cells" if many else one.name
            yield Line(f"a worker died while it ran {what}; trying again, {MAX_LOST} times")
        for cell in given_up:
            about = _as_error(error)
            if verdict == "lost":
                n = batches.n_lost(cell)
                about["message"] = (
                    f"its worker died {n} times: ended for its memory, or by what the cell does; "
                    f"launcher=inline shows it ({about['message']})"
                )
            yield ResultBatch([CellResult(cell.key, error=about)])

    def _ended(self, ref: Any) -> dict[str, Any] | None:
        """Return what a worker said that ended itself at the limit of time; None if it did not.

        One that can say nothing, as its cell lets no other thread run, is told by its time.
        """
        name = self._names[ref]
        entry = heartbeats.read(name).get(name) if self._connection.answers() else None
        if entry is not None and entry["over"]:
            return entry
        seconds, batch = time.monotonic() - self._heard_s[ref], self._tasks[ref]
        is_known = len(batch.work) == 1 or bool(batch.careful and batch.work)
        if self._timeout_s is None or not is_known or seconds < self._timeout_s + GRACE_S:
            return None
        return {"key": batch.work[0].key, "seconds": seconds, "stack": ""}

    def _running_long(self) -> str:
        """Name the cells that run for long; the texts change once in a while only."""
        if time.monotonic() < self._asked_s + ASK_S:
            return self._long
        self._asked_s = time.monotonic()
        posted = heartbeats.read(self._board) if self._connection.answers() else {}
        keys = {entry["key"] for entry in posted.values()}
        out = (cell for batch in self._tasks.values() for cell in batch.work) if keys else ()
        names = {cell.key: cell.name for cell in out if cell.key in keys}
        # what has come back since may be posted still
        its = [entry for entry in posted.values() if entry["key"] in names]
        running = [(entry["seconds"], names[entry["key"]]) for entry in its]
        shown = [f"{name} for {_duration(seconds)}" for seconds, name in sorted(running)[::-1]]
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        self._long = f"still running: {', '.join(shown[:MOST_NAMED])}{more}" if shown else ""
        return self._long

    def _forget_tasks(self) -> None:
        self._shared.forget()
        for kept in (self._tasks, self._memory, self._names, self._heard_s):
            kept.clear()

    def _lose_all(self, batches: TaskQueue, why: str) -> Iterator[ResultBatch]:
        """Let what was on its way wait again."""
        on_their_way = list(self._tasks.values())
        self._forget_tasks()
        for batch in on_their_way:
            for cell in batches.lost(batch, "lost"):
                yield ResultBatch([CellResult(cell.key, error=_as_error(DisconnectedError(why)))])

    def _come_back(self, why: str) -> Iterator[str]:
        """Join again, or start Ray again, as soon as it can be done."""
        patience = float(self._launcher.get("patience_s") or 0.0)
        end = time.monotonic() + patience
        while True:
            yield f"{why}; joining again"
            self._connection.close()
            try:
                self._connection.open()
            except (InputError, DisconnectedError) as error:
                if time.monotonic() > end:
                    raise InputError(
                        f"{why}; it did not come back within {patience:g} s "
                        f"(launcher.patience_s): {error}; what is done is kept, the same command "
                        "again goes on",
                        rule="no cluster",
                    ) from error
            else:
                return
            time.sleep(AGAIN_S)


def _most_tasks(slots: int) -> int:
    return slots + min(slots, AHEAD + slots // 8)


def _is_for_good(error: Exception) -> bool:
    import ray

    lost = (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError)
    return isinstance(error, lost) or isinstance(getattr(error, "cause", None), lost)


def _as_error(error: Exception) -> CellError:
    return {**describe_error("worker", error), "message": summary_line(error)}


def _duration(seconds: float) -> str:
    return f"{seconds // 60:.0f} min" if seconds >= 60 else f"{seconds // 10 * 10:.0f} s"


def make_runner(
    launcher: Mapping[str, Any],
    python_path: Sequence[str] = (),
    simulate: Simulate | None = None,
    timeout_s: float | None = None,
) -> Runner:
    """Make the runner that a launcher's configuration names; nothing is started yet.

    A cell that runs for longer than `timeout_s` is ended.
    """
    if launcher["kind"] == "inline":
        return InlineRunner(simulate, timeout_s)
    return RayRunner(launcher, python_path, simulate, timeout_s)
