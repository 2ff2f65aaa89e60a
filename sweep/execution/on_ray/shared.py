"""Where the workloads of a sweep lie: made by tasks from their recipes, or put by the driver."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.made import Made, wanted_by
from sweep.execution.on_ray.connection import Connection, put
from sweep.execution.on_ray.warm import HEARTBEAT_S

if TYPE_CHECKING:
    from sweep.execution.compute import Work, Workloads

MAKE_AGAIN = 5
"""How often Ray makes a workload again whose worker or node was lost; see its lineage."""


class Shared:
    """References to workloads, each there once for all nodes, and to what is known of the made."""

    def __init__(self, connection: Connection, python_path: Sequence[str]) -> None:
        self._connection = connection
        self._python_path = python_path
        self._refs: dict[str, tuple[Any, Any]] = {}
        self._wanted: dict[str, dict[str, None]] = {}
        self._unknown: set[str] = set()  # made ones that the driver knows nothing of yet

    def expect(self, work: Iterable[Work]) -> None:
        """Note which clusters are to be sized for each workload."""
        for cell in work:
            wanted = wanted_by(cell.spec)
            if wanted is not None:
                self._wanted.setdefault(cell.input, {})[wanted] = None

    def get(self, name: str, workloads: Workloads) -> tuple[Any, Any]:
        """Give references to a workload and to its `Made`, None of one that was not made."""
        import ray

        if name in self._refs:
            return self._refs[name]
        recipe = workloads.recipe(name)
        if recipe is None:
            workload = workloads.workload(name)
            _ = workload.columns  # computed once here, shared by all
            with self._connection.guarded():
                self._refs[name] = put(workload), None
            del workload
            workloads.release(name)
            _give_back()
        else:
            with self._connection.guarded():
                make: Any = ray.remote(task.make).options(
                    num_cpus=1,
                    num_returns=2,
                    max_retries=MAKE_AGAIN,
                    **self._connection.nodes.where(),
                )
                wanted = list(self._wanted.get(name, ()))
                made, workload = make.remote(recipe, wanted, self._python_path)
            self._refs[name] = workload, made
            self._unknown.add(name)
        return self._refs[name]

    def first(self, name: str, workloads: Workloads) -> Generator[str, None, Made]:
        """Have a workload made; say so meanwhile, and return what is known of it."""
        import ray

        _, made = self.get(name, workloads)
        waiting = [made]
        while waiting:
            yield "making the first workload"
            with self._connection.guarded():
                _, waiting = ray.wait(waiting, timeout=HEARTBEAT_S)
        found: Made = ray.get(made)
        return found

    def learn(self, name: str, workloads: Workloads, timeout_s: float) -> None:
        """Let the driver know what a workload is that was made.

        Raises what its making did.
        """
        import ray

        if name in self._unknown:
            made: Made = ray.get(self._refs[name][1], timeout=timeout_s)
            workloads.learn(name, made.about)
            self._unknown.discard(name)

    def lost(self, name: str, *, for_good: bool) -> None:
        """Note that a workload may have gone with a node: Ray makes one again, we put the other.

        `for_good` where Ray says that it can't be had.
        """
        if for_good or (name in self._refs and self._refs[name][1] is None):
            self.forget(name)

    def forget(self, name: str | None = None) -> None:
        """Let go of a workload, of all without a name."""
        for each in [name] if name is not None else list(self._refs):
            self._refs.pop(each, None)
            self._unknown.discard(each)


def _give_back() -> None:
    """Give the memory of what was let go back to the machine."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
