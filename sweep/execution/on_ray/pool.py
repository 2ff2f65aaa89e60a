"""Cells as Ray tasks, on this machine or on an existing cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, in_a_line
from sweep.execution import task
from sweep.execution.cell import error_of
from sweep.execution.compute import InlineRunner, Runner, Work, Workloads
from sweep.execution.on_ray.batches import Batch, Batches
from sweep.execution.on_ray.connection import Connection, DisconnectedError, judge, put
from sweep.store.cell import CellError, CellResult

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate

PENDING_PER_SLOT = 3
HEARTBEAT_S = 1.0
GET_S = 60.0
WARM_UP_S = 300.0
AGAIN_S = 1.0
MAX_IN_VAIN = 10


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
    ) -> None:
        self._launcher = launcher
        self._python_path = list(python_path)
        self._simulate = simulate
        self._connection = Connection(launcher, python_path)
        self._refs: dict[str, Any] = {}
        self._tasks: dict[Any, Batch] = {}
        self._memory: dict[Any, int] = {}

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome once, as it comes; a text every second without one.

        Ray stays up afterwards, for more work, until `close`.
        """
        batches = Batches(work, slots=1)
        if not self._connection.is_open:
            yield from self._open(work, workloads)
        n_in_vain = 0
        while True:
            try:
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

    def _open(self, work: Sequence[Work], workloads: Workloads) -> Iterator[str]:
        yield "starting Ray" if self._launcher["kind"] == "local" else "joining the cluster"
        self._connection.open()
        try:
            if self._simulate is None:
                yield from self._warm_up(work, workloads)
        except DisconnectedError as error:
            yield from self._come_back(str(error))

    def close(self) -> None:
        """Stop Ray if it was started for this runner, else leave the cluster."""
        self._refs.clear()
        self._tasks.clear()
        self._connection.close()

    def _run(self, batches: Batches, workloads: Workloads) -> Iterator[CellResult | str]:
        import ray

        run_batch = ray.remote(task.run_batch)
        while True:
            if self._connection.look():
                self._forget_what_fits_nowhere()
            batches.slots = self._connection.slots
            while len(self._tasks) < PENDING_PER_SLOT * self._connection.slots:
                batch = batches.next()
                if batch is None:
                    break
                self._submit(run_batch, batch, batches, workloads)
            if not self._tasks:
                return
            waiting = list(self._tasks)
            with self._connection.guarded():
                ready, _ = ray.wait(waiting, num_returns=1, timeout=HEARTBEAT_S)
                if ready:
                    ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
            if not ready:
                yield "" if self._connection.n_cpus else "waiting for a node to come up"
            for ref in ready:
                yield from self._collect(ref, batches)

    def _warm_up(self, work: Sequence[Work], workloads: Workloads) -> Iterator[str]:
        """Let each node compile what the cells will need, each variant once, side by side."""
        import ray

        few_jobs, specs = task.sample(
            [cell.spec for cell in work], lambda: workloads.workload(work[0].input)
        )
        if few_jobs is None:
            return
        missing, compile_for = ray.remote(task.missing), ray.remote(task.compile_for)
        with self._connection.guarded():
            shared = ray.put(few_jobs)
            nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
            there = [_on(node["NodeID"]) for node in nodes]
            asked = [missing.options(**on).remote(self._python_path, shared, specs) for on in there]
        yield from _wait(self._connection, asked, "")
        compiling = []
        with self._connection.guarded():
            for on, ref in zip(there, asked, strict=True):
                for spec in _answer(ref):
                    there_only = compile_for.options(**on)
                    compiling.append(there_only.remote(self._python_path, shared, spec))
        yield from _wait(self._connection, compiling, task.COMPILING)

    def _submit(self, run_batch: Any, batch: Batch, batches: Batches, workloads: Workloads) -> None:
        workload = None
        if batch.input not in self._refs:
            workload = workloads.workload(batch.input)
            _ = workload.columns  # computed once here, shared by all
        specs = [cell.spec for cell in batch.work]
        memory = self._connection.doubled_memory if batch.doubled else 0
        try:
            with self._connection.guarded():
                if workload is not None:
                    self._refs[batch.input] = put(workload)
                remote = run_batch.options(max_retries=0, num_cpus=1, memory=memory or None)
                shared = self._refs[batch.input]
                ref = remote.remote(shared, specs, self._python_path, self._simulate)
        except DisconnectedError:
            batches.put_back(batch)
            raise
        self._tasks[ref] = batch
        if memory:
            self._memory[ref] = memory
        if workload is not None:
            del workload
            workloads.release(batch.input)

    def _forget_what_fits_nowhere(self) -> None:
        """Cancel tasks that ask for more memory than any node that is left has."""
        import ray

        for ref, memory in self._memory.items():
            if memory > self._connection.largest_memory:
                with self._connection.guarded():
                    ray.cancel(ref)

    def _collect(self, ref: Any, batches: Batches) -> Iterator[CellResult]:
        """Take in what became of one task."""
        import ray

        try:
            results: list[CellResult] = ray.get(ref, timeout=GET_S)
        except (ray.exceptions.RayError, MemoryError) as error:
            batch = self._pop(ref)
            yield from self._lose(batch, error, batches)
        except OSError as error:
            raise DisconnectedError(f"the connection to Ray broke: {error}") from error
        else:
            batch = self._pop(ref)
            batches.done(batch, sum(result.seconds for result in results))
            yield from results
        if batches.is_over(batch.input):
            self._refs.pop(batch.input, None)

    def _pop(self, ref: Any) -> Batch:
        self._memory.pop(ref, None)
        return self._tasks.pop(ref)

    def _lose(self, batch: Batch, error: Exception, batches: Batches) -> Iterator[CellResult]:
        verdict = judge(error)
        if verdict == "lost":
            # the workload may have gone with its node: put it again
            self._refs.pop(batch.input, None)
        given_up = batches.lost(batch, verdict)
        for cell in given_up:
            yield CellResult(cell.spec.key, error=_as_error(error))

    def _lose_all(self, batches: Batches, why: str) -> Iterator[CellResult]:
        """Let what was on its way wait again."""
        on_their_way = list(self._tasks.values())
        self._tasks.clear()
        self._memory.clear()
        self._refs.clear()
        for batch in on_their_way:
            for cell in batches.lost(batch, "lost"):
                yield CellResult(cell.spec.key, error=_as_error(DisconnectedError(why)))

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


def _as_error(error: Exception) -> CellError:
    return {**error_of("worker", error), "message": in_a_line(error)}


def _on(node_id: str) -> dict[str, Any]:
    """Return the options of a task for one node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return {"max_retries": 0, "num_cpus": 1, "scheduling_strategy": where}


def _wait(connection: Connection, refs: Sequence[Any], doing: str) -> Iterator[str]:
    """Wait until all tasks are over, for some minutes at most; say what is going on."""
    import ray

    waiting, end = list(refs), time.monotonic() + WARM_UP_S
    while waiting and time.monotonic() < end:
        yield doing
        with connection.guarded():
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=HEARTBEAT_S)


def _answer(ref: Any) -> list[Any]:
    """Return what a task found; nothing if it failed, as its cells will then."""
    import ray

    try:
        found: list[Any] = ray.get(ref, timeout=HEARTBEAT_S)
    except (ray.exceptions.RayError, OSError):
        return []
    return found


def make_runner(
    launcher: Mapping[str, Any],
    python_path: Sequence[str] = (),
    simulate: Simulate | None = None,
) -> Runner:
    """Make the runner that a launcher's configuration names; nothing is started yet."""
    if launcher["kind"] == "inline":
        return InlineRunner(simulate)
    return RayRunner(launcher, python_path, simulate)
