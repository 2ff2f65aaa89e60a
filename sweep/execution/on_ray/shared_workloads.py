"""Workloads of a sweep in Ray's object store, built by tasks from their recipes.

A trace is read by a task on the driver's machine, as other machines may not see its files. The
driver never holds it; only a driver outside the cluster reads it itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.on_ray.connection import Connection, put
from sweep.execution.on_ray.warm_up import HEARTBEAT_S
from sweep.execution.workload_build import BuiltWorkload, ClusterConfig, Recipe

if TYPE_CHECKING:
    from sweep.execution.compute import Workloads
    from sweep.execution.plan import PlannedCell

MAX_REBUILDS = 5
"""Times that Ray rebuilds a workload whose worker or node was lost, by its lineage."""
LARGE_TASKS = 1_000_000
"""Tasks of a workload from which its reader's process is ended, to free the memory."""


class SharedWorkloads:
    """References to workloads, each stored once for all nodes, and to their descriptions."""

    def __init__(self, connection: Connection, python_path: Sequence[str]) -> None:
        self._connection = connection
        self._python_path = python_path
        self._refs: dict[str, tuple[Any, Any, Any]] = {}
        self._cluster_configs: dict[str, dict[tuple[int, float], ClusterConfig]] = {}
        self._unreported: set[str] = set()  # built, description not yet at the driver

    def expect(self, work: Iterable[PlannedCell]) -> None:
        """Note which clusters each workload needs."""
        for cell in work:
            config, capacity = cell.cell.cluster, cell.cell.capacity
            workload_numbers = self._cluster_configs.setdefault(cell.workload, {})
            workload_numbers[id(config), capacity] = (config, capacity)

    def get(self, name: str, workloads: Workloads) -> tuple[Any, Any]:
        """Return references to a workload and to its `BuiltWorkload`; build it if needed."""
        if name not in self._refs:
            recipe = workloads.recipe(name)
            cluster_configs = list(self._cluster_configs.get(name, {}).values())
            with self._connection.guarded():
                self._refs[name] = self._make(recipe, cluster_configs)
            self._unreported.add(name)
        built, workload, _ = self._refs[name]
        return workload, built

    def _make(self, recipe: Recipe, cluster_configs: Sequence[ClusterConfig]) -> Any:
        """Submit a task that builds a workload; Ray repeats it if its output is lost."""
        import ray

        if not recipe.is_from_files:
            options = {"num_cpus": 1, **self._connection.nodes.placement_options()}
        elif self._connection.is_remote_driver:
            built, workload, few_jobs = task.make(recipe, cluster_configs, self._python_path)
            return ray.put(built), put(workload), ray.put(few_jobs)
        else:  # on this machine, which has the files
            options = self._connection.own_node_options()
        if recipe.n_tasks > LARGE_TASKS:
            options["max_calls"] = 1  # the memory of reading is freed with its process
        make = ray.remote(num_returns=3, max_retries=MAX_REBUILDS, **options)(task.make)
        return make.remote(recipe, cluster_configs, self._python_path)

    def build_first(
        self, name: str, workloads: Workloads
    ) -> Generator[str, None, tuple[BuiltWorkload, Any]]:
        """Build a workload; yield the activity meanwhile.

        Return its description with its clusters, and a reference to its first few jobs.
        """
        import ray

        _, built = self.get(name, workloads)
        waiting = [built]
        while waiting:
            yield "building the first workload"
            with self._connection.guarded():
                _, waiting = ray.wait(waiting, timeout=HEARTBEAT_S)
        return ray.get(built), self._refs[name][2]

    def report(self, name: str, workloads: Workloads, timeout_s: float) -> None:
        """Report a built workload's description to the driver; raise the error of its build."""
        import ray

        if name in self._unreported:
            built: BuiltWorkload = ray.get(self._refs[name][0], timeout=timeout_s)
            workloads.add_description(name, built.description)
            self._unreported.discard(name)

    def release(self, name: str | None = None) -> None:
        """Release the references to a workload; to all without a name."""
        for workload in [name] if name is not None else list(self._refs):
            self._refs.pop(workload, None)
            self._unreported.discard(workload)
