"""Cells as Ray tasks, on this machine or on an existing cluster."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.cell import CellError, CellResult, error_of
from sweep.runner import Work, Workloads
from sweep.runner.batches import Batch, Batches
from sweep.runner.losses import judge
from sweep.runner.start import join, start_local

if TYPE_CHECKING:
    from sweep.cell import Simulate

PENDING_PER_SLOT = 3
HEARTBEAT_S = 1.0


class RayRunner:
    """Runs cells as Ray tasks that are never retried by Ray itself.

    Parameters
    ----------
    launcher : mapping
        ``kind`` ("local" or "ray"), ``workers`` (None: one a CPU), ``address``.
    python_path : sequence of str
        Folders that workers find modules in.
    simulate : callable, optional
        Stands in for `sim.simulate`.
    """

    slots = 0

    def __init__(
        self,
        launcher: Mapping[str, Any],
        python_path: Sequence[str] = (),
        simulate: Simulate | None = None,
    ) -> None:
        self._launcher = launcher
        self._python_path = list(python_path)
        self._simulate = simulate
        self._refs: dict[str, Any] = {}
        self._tasks: dict[Any, Batch] = {}

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome once, as it comes; a text every second without one."""
        yield "starting Ray" if self._launcher["kind"] == "local" else "joining the cluster"
        self._start()
        if self._simulate is None:
            yield from self._warm_up()
        import ray

        from sweep.runner import task

        run_batch = ray.remote(task.run_batch).options(max_retries=0, num_cpus=1)
        batches = Batches(work, self.slots)
        while True:
            while len(self._tasks) < PENDING_PER_SLOT * self.slots:
                batch = batches.next()
                if batch is None:
                    break
                self._submit(run_batch, batch, workloads)
            if not self._tasks:
                return
            waiting = list(self._tasks)
            ready, _ = ray.wait(waiting, num_returns=1, timeout=HEARTBEAT_S)
            if not ready:
                yield ""
                continue
            ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
            for ref in ready:
                yield from self._collect(ref, batches)

    def close(self) -> None:
        """Stop Ray if it was started for this runner, else leave the cluster."""
        if "ray" in sys.modules:
            import ray

            self._refs.clear()
            self._tasks.clear()
            # an ObjectRef that is freed while another thread shuts down ends the process, silently
            gc.collect()
            ray.shutdown()

    def _start(self) -> None:
        """Start Ray, or join the cluster, and learn how many cells run at once."""
        workers = self._launcher.get("workers")
        environment = environment_of(self._python_path)
        if self._launcher["kind"] == "local":
            start_local(workers, environment)
        else:
            join(str(self._launcher.get("address") or "auto"), environment)
        import ray

        n_cpus = int(ray.cluster_resources().get("CPU", 0))
        self.slots = max(1, min(workers or n_cpus, n_cpus))

    def _warm_up(self) -> Iterator[str]:
        """Let one task a node compile the kernels, so that its other workers only load them."""
        from sweep.runner import task

        if self._launcher["kind"] == "local" and task.kernels_are_compiled():
            return
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        warm_up = ray.remote(task.warm_up)
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
        waiting = [
            warm_up.options(
                max_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote(self._python_path)
            for node in nodes
        ]
        # what goes wrong here goes wrong in every cell, and becomes the cell's error there
        while waiting:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=HEARTBEAT_S)
            yield task.COMPILING

    def _submit(self, run_batch: Any, batch: Batch, workloads: Workloads) -> None:
        import ray

        if batch.input not in self._refs:
            workload = workloads.workload(batch.input)
            _ = workload.columns  # computed once here, shared by all
            self._refs[batch.input] = ray.put(workload)
            del workload
            workloads.release(batch.input)
        task = run_batch
        if batch.doubled:
            task = run_batch.options(memory=_doubled_memory(self.slots))
        specs = [one.spec for one in batch.work]
        ref = task.remote(self._refs[batch.input], specs, self._python_path, self._simulate)
        self._tasks[ref] = batch

    def _collect(self, ref: Any, batches: Batches) -> Iterator[CellResult]:
        """Take in what became of one task."""
        import ray

        batch = self._tasks.pop(ref)
        try:
            results: list[CellResult] = ray.get(ref)
        except (ray.exceptions.RayError, MemoryError) as error:
            yield from self._lose(batch, error, batches)
        else:
            batches.done(batch, sum(result.seconds for result in results))
            yield from results
        if batches.is_over(batch.input):
            self._refs.pop(batch.input, None)

    def _lose(self, batch: Batch, error: Exception, batches: Batches) -> Iterator[CellResult]:
        verdict = judge(error)
        if verdict == "lost":
            # the workload may have gone with its node: put it again
            self._refs.pop(batch.input, None)
        given_up = batches.lost(batch, verdict)
        for one in given_up:
            yield CellResult(one.spec.key, error=_as_error(error))


def _as_error(error: Exception) -> CellError:
    described = error_of("worker", error)
    described["message"] = described["message"].strip().splitlines()[0]
    return described


def _doubled_memory(slots: int) -> int:
    """Twice a slot's part of a node's memory, in bytes, but no more than any node has."""
    import ray

    memory = [node["Resources"].get("memory", 0.0) for node in ray.nodes() if node["Alive"]]
    largest = max(memory, default=0.0)
    return int(min(largest, 2 * sum(memory) / slots))


def environment_of(python_path: Sequence[str]) -> dict[str, str]:
    """Build the environment that workers need: where modules and compiled kernels lie."""
    from sim.kernels import _jit

    here = Path(__file__).resolve().parent.parent.parent
    checkout = [] if here.name in ("site-packages", "dist-packages") else [str(here)]
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [*checkout, *(folder for folder in inherited if folder), *python_path]
    path = dict.fromkeys(str(Path(folder).absolute()) for folder in folders)
    return {
        "NUMBA_CACHE_DIR": str(_jit.cache_dir()),
        "PYTHONPATH": os.pathsep.join(path),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
