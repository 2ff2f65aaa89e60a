"""Workloads of a sweep in Ray's object store, built by tasks from their recipes.

A trace is read by a task on the driver's machine, as other machines may not see its files. The
driver never holds it; only a driver outside the cluster reads it itself.

A small workload is built once, and Ray copies it to the nodes whose cells need it. A large one is
built on several nodes at the same time, where they can: it is synthesized, or its Parquet copy lies
in a shared folder. A node that needs it later builds it, or takes it from another, if that is
faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweep.execution import task
from sweep.execution.on_ray import placement
from sweep.execution.on_ray.connection import Connection, put
from sweep.execution.on_ray.warm_up import HEARTBEAT_S
from sweep.execution.workload_build import BuiltWorkload, ClusterConfig, Recipe

if TYPE_CHECKING:
    from sweep.execution.compute import Workloads
    from sweep.execution.on_ray.task_queue import Batch
    from sweep.execution.plan import PlannedCell

MAX_REBUILDS = 5
"""Times that Ray rebuilds a workload whose worker or node was lost, by its lineage."""
LARGE_TASKS = 1_000_000
"""Tasks from which a workload is large; the process that built it is ended, to free its memory."""
BYTES_PER_S = 100e6
"""Of a network of 1 Gbit/s."""


@dataclass(frozen=True)
class Size:
    """Size of a workload: its tasks, and the memory of a run, bytes, see `BuiltWorkload`."""

    n_tasks: int = 0
    run_bytes: int = 0
    by_task_bytes: int = 0


@dataclass
class _Shared:
    """References to a workload: its description, itself, its first jobs; its copy on each node."""

    built: Any
    workload: Any
    first_jobs: Any
    copies: dict[str, Any] = field(default_factory=dict)
    is_sent: bool = False  # further nodes take it from another one


class SharedWorkloads:
    """References to workloads, and to their descriptions."""

    def __init__(self, connection: Connection, python_path: Sequence[str]) -> None:
        self._connection = connection
        self._python_path = python_path
        self._shared: dict[str, _Shared] = {}
        self._cluster_configs: dict[str, dict[tuple[int, float], ClusterConfig]] = {}
        self._n_cells: Counter[str] = Counter()  # that were drawn, of each workload
        self._unreported: set[str] = set()  # built, description not yet at the driver
        self._sizes: dict[str, Size] = {}
        self._last_size = Size()  # that is known, for workloads that are being built
        self.n_placed: Counter[str] = Counter()  # tasks of large workloads on each node
        self.by_task: Collection[str] = ()  # cells whose runs move each task by itself

    def expect(self, work: Iterable[PlannedCell]) -> None:
        """Note which clusters each workload needs."""
        for cell in work:
            self._n_cells[cell.workload] += 1
            config, capacity = cell.cell.cluster, cell.cell.capacity
            workload_numbers = self._cluster_configs.setdefault(cell.workload, {})
            workload_numbers[id(config), capacity] = (config, capacity)

    def size(self, name: str, workloads: Workloads) -> Size:
        """Return the size of a workload; while it is not known, as that of the last one."""
        if name not in self._sizes:
            last = self._last_size
            n_tasks = workloads.recipe(name).n_tasks or last.n_tasks
            scale = n_tasks / max(1, last.n_tasks)
            n_bytes = int(scale * last.run_bytes), int(scale * last.by_task_bytes)
            self._sizes[name] = Size(n_tasks, *n_bytes)
        return self._sizes[name]

    def is_large(self, name: str, workloads: Workloads) -> bool:
        """Tell whether a workload has more than `LARGE_TASKS`."""
        return self.size(name, workloads).n_tasks > LARGE_TASKS

    def run_bytes(self, batch: Batch, workloads: Workloads) -> int:
        """Return the memory of a run of the largest cell of a batch, bytes."""
        size = self.size(batch.workload, workloads)
        is_large = self.is_large(batch.workload, workloads)
        if is_large and any(task.variant_key(cell.spec) in self.by_task for cell in batch.cells):
            return size.by_task_bytes
        return size.run_bytes

    def place(self, name: str, workloads: Workloads, memory: int, exclude: str) -> str:
        """Choose the node for a task of a large workload; empty for a small one: Ray chooses.

        The task reserves `memory`, bytes, and must not run on the node `exclude`.
        """
        if not self.is_large(name, workloads):
            return ""
        nodes = {key: n for key, n in self._connection.nodes.good().items() if key != exclude}
        if len(nodes) < 2:
            return ""
        copies = self._shared[name].copies if name in self._shared else {}
        return placement.choose(nodes, self.n_placed, copies, memory)

    def get(self, name: str, workloads: Workloads, node: str = "") -> tuple[Any, Any]:
        """Return references to a workload and to its `BuiltWorkload`; build it if needed.

        On `node`, if it is not empty.
        """
        if name not in self._shared:
            recipe = workloads.recipe(name)
            cluster_configs = list(self._cluster_configs.get(name, {}).values())
            with self._connection.guarded():
                self._shared[name] = self._make(recipe, cluster_configs, node)
            self._unreported.add(name)
        shared = self._shared[name]
        if not node:
            return shared.workload, shared.built
        if node not in shared.copies and shared.is_sent:
            shared.copies[node] = shared.workload
        elif node not in shared.copies:
            with self._connection.guarded():
                shared.copies[node] = self._make_again(workloads.recipe(name), shared, node)
        return shared.copies[node], shared.built

    def _make(self, recipe: Recipe, cluster_configs: Sequence[ClusterConfig], node: str) -> _Shared:
        """Submit a task that builds a workload; Ray repeats it if its output is lost."""
        import ray

        if not recipe.is_from_files:
            options = {"num_cpus": 1, **self._connection.nodes.placement_options(node=node)}
        elif self._connection.is_remote_driver:
            built, workload, few_jobs = task.make(recipe, cluster_configs, self._python_path)
            return _Shared(ray.put(built), put(workload), ray.put(few_jobs))
        else:  # on this machine, which has the files
            options = self._connection.own_node_options()
            node = ray.get_runtime_context().get_node_id()
        make = self._remote(3, recipe, options)(task.make)
        shared = _Shared(*make.remote(recipe, cluster_configs, self._python_path))
        if node:
            shared.copies[node] = shared.workload
        return shared

    def _make_again(self, recipe: Recipe, shared: _Shared, node: str) -> Any:
        options = {"num_cpus": 1, **self._connection.nodes.placement_options(node=node)}
        make_again = self._remote(1, recipe, options)(task.make_again)
        return make_again.remote(recipe, (shared.built, shared.workload), self._python_path)

    def _remote(self, num_returns: int, recipe: Recipe, options: dict[str, Any]) -> Any:
        import ray

        if recipe.n_tasks > LARGE_TASKS:
            options = {**options, "max_calls": 1}  # memory is freed with its process
        return ray.remote(num_returns=num_returns, max_retries=MAX_REBUILDS, **options)

    def build_first(
        self, name: str, workloads: Workloads
    ) -> Generator[str, None, tuple[BuiltWorkload, Any]]:
        """Build a workload, on as many nodes as have slots for its cells; yield the activity.

        Return its description with its clusters, and a reference to its first few jobs.
        """
        import ray

        good = self._connection.nodes.good()
        if self.is_large(name, workloads) or not workloads.recipe(name).n_tasks:  # or unknown
            for node in placement.enough(good, self._n_cells[name]):
                self.get(name, workloads, node)
        _, built_ref = self.get(name, workloads)
        waiting = [built_ref]
        while waiting:
            yield "building the first workload"
            with self._connection.guarded():
                _, waiting = ray.wait(waiting, timeout=HEARTBEAT_S)
        built = ray.get(built_ref)
        self._note(name, built)
        return built, self._shared[name].first_jobs

    def report(self, name: str, workloads: Workloads, timeout_s: float) -> None:
        """Report a built workload's description to the driver; raise the error of its build."""
        import ray

        if name in self._unreported:
            built: BuiltWorkload = ray.get(self._shared[name].built, timeout=timeout_s)
            workloads.add_description(name, built.description)
            self._note(name, built)
            self._unreported.discard(name)

    def _note(self, name: str, built: BuiltWorkload) -> None:
        """Note the size of a workload, and the node that has it."""
        n_tasks = built.description["n_tasks"]
        self._last_size = Size(n_tasks, built.run_bytes, built.by_task_bytes)
        self._sizes[name] = self._last_size
        shared = self._shared[name]
        shared.is_sent = built.seconds > built.n_bytes / BYTES_PER_S
        if built.node:
            shared.copies.setdefault(built.node, shared.workload)

    def lost(self, name: str, node: str, is_object_lost: bool) -> None:
        """Release the workload of a lost task, or the copy on its node: it may be the cause."""
        shared = self._shared.get(name)
        if is_object_lost:
            self.release(name)
        elif shared is not None and shared.copies.get(node) is not shared.workload:
            shared.copies.pop(node, None)

    def release(self, name: str | None = None) -> None:
        """Release the references to a workload; to all without a name."""
        for workload in [name] if name is not None else list(self._shared):
            self._shared.pop(workload, None)
            self._unreported.discard(workload)
