"""Where the workloads of a sweep lie: made by tasks from their recipes, in the object store.

A trace is read on the machine of the driver, as others may not see it, by a task: the driver never
holds it. Only a driver that is no part of the cluster reads it itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.on_ray.connection import Connection, put
from sweep.execution.on_ray.warm_up import HEARTBEAT_S
from sweep.execution.workload_build import BuiltWorkload, Recipe, World

if TYPE_CHECKING:
    from sweep.execution.compute import Workloads
    from sweep.execution.plan import PlannedCell

MAKE_AGAIN = 5
"""How often Ray makes a workload again whose worker or node was lost; see its lineage."""
LARGE = 1_000_000
"""Tasks of a workload whose reader's process is not kept for more work, for its memory."""


class SharedWorkloads:
    """References to workloads, each there once for all nodes, and to what is known of them."""

    def __init__(self, connection: Connection, python_path: Sequence[str]) -> None:
        self._connection = connection
        self._python_path = python_path
        self._refs: dict[str, tuple[Any, Any, Any]] = {}
        self._wanted: dict[str, dict[tuple[int, float], World]] = {}
        self._unknown: set[str] = set()  # made ones that the driver knows nothing of yet

    def expect(self, work: Iterable[PlannedCell]) -> None:
        """Note which clusters are to be built for each workload."""
        for each in work:
            config, capacity = each.cell.cluster, each.cell.capacity
            of_input = self._wanted.setdefault(each.input, {})
            of_input[id(config), capacity] = (config, capacity)

    def get(self, name: str, workloads: Workloads) -> tuple[Any, Any]:
        """Give references to a workload and to its `BuiltWorkload`."""
        if name not in self._refs:
            recipe = workloads.recipe(name)
            wanted = list(self._wanted.get(name, {}).values())
            with self._connection.guarded():
                self._refs[name] = self._make(recipe, wanted)
            self._unknown.add(name)
        made, workload, _ = self._refs[name]
        return workload, made

    def _make(self, recipe: Recipe, wanted: Sequence[World]) -> Any:
        """Have a workload made by a task, which Ray repeats if what came of it is lost."""
        import ray

        if not recipe.is_read:
            options = {"num_cpus": 1, **self._connection.nodes.where()}
        elif self._connection.is_afar:
            made, workload, few_jobs = task.make(recipe, wanted, self._python_path)
            return ray.put(made), put(workload), ray.put(few_jobs)
        else:  # here, where the files are
            options = self._connection.here()
        if recipe.n_tasks > LARGE:
            options["max_calls"] = 1  # what reading took goes with its process
        make = ray.remote(num_returns=3, max_retries=MAKE_AGAIN, **options)(task.make)
        return make.remote(recipe, wanted, self._python_path)

    def first(
        self, name: str, workloads: Workloads
    ) -> Generator[str, None, tuple[BuiltWorkload, Any]]:
        """Have a workload made; say so meanwhile.

        Return what is known of it, and a reference to its few first jobs.
        """
        import ray

        _, made = self.get(name, workloads)
        waiting = [made]
        while waiting:
            yield "making the first workload"
            with self._connection.guarded():
                _, waiting = ray.wait(waiting, timeout=HEARTBEAT_S)
        return ray.get(made), self._refs[name][2]

    def learn(self, name: str, workloads: Workloads, timeout_s: float) -> None:
        """Let the driver know what a workload is that was made.

        Raises what its making did.
        """
        import ray

        if name in self._unknown:
            made: BuiltWorkload = ray.get(self._refs[name][0], timeout=timeout_s)
            workloads.learn(name, made.about)
            self._unknown.discard(name)

    def forget(self, name: str | None = None) -> None:
        """Let go of a workload, of all without a name."""
        for each in [name] if name is not None else list(self._refs):
            self._refs.pop(each, None)
            self._unknown.discard(each)
