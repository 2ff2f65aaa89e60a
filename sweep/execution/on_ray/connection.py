"""The way to Ray: opened, watched, closed; its failures, told from those of tasks."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sweep.execution.on_ray import nodes
from sweep.execution.on_ray.start import join, knock, start_local, worker_environment
from sweep.execution.on_ray.task_queue import Loss

if TYPE_CHECKING:
    from sweep.store.cell import CellSpec

LOOK_S = 2.0
CHECK_S = 0.2
HEAD_GONE_S = 30.0
"""After a minute without the head, Ray ends the processes that miss it."""

_NO_IMPORT = "failed to import on the worker"


class DisconnectedError(Exception):
    """The node of this process, or the cluster's head, is gone; the text says which."""


class Connection:
    """Where the tasks of a sweep are sent to."""

    def __init__(self, launcher: Mapping[str, Any], python_path: Sequence[str]) -> None:
        self._launcher = launcher
        self._python_path = python_path
        self.slots = 1
        self.n_cpus = 0
        self.is_open = False
        self.nodes = nodes.Nodes()
        self._own: list[str] = []
        self._looked_s = self._heard_s = 0.0

    def open(self) -> None:
        """Start Ray, or join the cluster."""
        self.is_open = True
        environment = worker_environment(self._python_path)
        if self._launcher["kind"] == "local":
            start_local(self._launcher.get("workers"), environment)
        else:
            sent = self.nodes.modules if self._launcher.get("send_code", True) else None
            join(str(self._launcher.get("address") or "auto"), environment, sent)
        self.nodes.forget()
        self._own = []
        self._looked_s = 0.0
        self._heard_s = time.monotonic()
        self.look()

    def expect(self, specs: Iterable[CellSpec]) -> None:
        """Say which cells are to be run, before `open`: other machines are checked for them."""
        if self._launcher["kind"] == "ray":
            is_sent = self._launcher.get("send_code", True)
            self.nodes.expect(specs, self._python_path, is_sent=is_sent)

    def look(self, *, at_once: bool = False) -> bool:
        """Every few seconds, see which nodes are up; tell whether it was time to."""
        now = time.monotonic()
        if now < self._looked_s + LOOK_S and not at_once:
            return False
        self._looked_s = now
        import ray

        self._knock_at_own_node()
        try:
            knock(self._head())
        except OSError as error:
            if now > self._heard_s + HEAD_GONE_S:
                raise DisconnectedError(f"the head of the cluster is gone: {error}") from error
            return False
        with self.guarded():
            up = [node for node in ray.nodes() if node["Alive"]]
            own = ray.get_runtime_context().get_node_id()
            self.nodes.take_in(up, nodes.going() if self._launcher["kind"] == "ray" else ())
        self._own = [
            f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
            for node in up
            if node["NodeID"] == own and not self._head().startswith("ray://")
        ]
        self._heard_s = time.monotonic()
        self.n_cpus = int(sum(node.n_cpus for node in self.nodes.good().values()))
        self.slots = max(1, min(self._launcher.get("workers") or self.n_cpus, self.n_cpus))
        return True

    def until_checked(self) -> Iterator[str]:
        """Wait until a node may be given cells, or none can answer any more; say what goes on."""
        while self.nodes.waits():
            yield "checking the nodes"
            time.sleep(CHECK_S)
            self.look(at_once=True)
        yield from self.nodes.news()
        self.nodes.insist()

    def stays_up(self) -> bool:
        """Tell whether it joined a cluster, one that is there and will be afterwards."""
        if self._launcher["kind"] != "ray" or "ray" not in sys.modules:
            return False
        import ray  # which would join the address again, were it asked before it has

        return ray.is_initialized() and self.answers()

    def answers(self) -> bool:
        """Tell whether the head does: Ray itself would wait for it, for a minute."""
        try:
            knock(self._head())
        except OSError:
            return False
        return True

    @property
    def is_afar(self) -> bool:
        """Whether this process is on no node of the cluster, which runs nothing beside it then."""
        return str(self._launcher.get("address") or "").startswith("ray://")

    def here(self) -> dict[str, Any]:
        """Give the options of a task that runs on this process's node alone."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node_id = ray.get_runtime_context().get_node_id()
        node = self.nodes.good().get(node_id)
        return {
            "num_cpus": int(node is not None and node.n_cpus >= 1),  # a head may have none
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False),
        }

    def close(self) -> None:
        """Stop Ray if it was started here, else leave the cluster."""
        if self.is_open and "ray" in sys.modules:
            import ray

            # an ObjectRef that is freed while another thread shuts down ends the process, silently
            gc.collect()
            ray.shutdown()
        self.is_open = False

    def leave(self) -> None:
        """Leave a cluster; what was started here stays up."""
        if self._launcher["kind"] == "ray":
            self.close()

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn what a broken connection raises into one exception."""
        import ray

        try:
            yield
        except (OSError, ray.exceptions.RpcError, ray.exceptions.RaySystemError) as error:
            raise DisconnectedError(f"the connection to Ray broke: {error}") from error

    @property
    def largest_memory(self) -> float:
        """Memory of the largest node that is up, bytes."""
        return max((node.memory for node in self.nodes.good().values()), default=0.0)

    @property
    def doubled_memory(self) -> int:
        """Twice a slot's part of the memory, bytes, but no more than any node has."""
        every = sum(node.memory for node in self.nodes.good().values())
        return int(min(self.largest_memory, 2 * every / self.slots))

    def _knock_at_own_node(self) -> None:
        """Find out by ourselves: Ray may wait for a minute, and then ends this process."""
        for address in self._own:
            try:
                knock(address)
            except OSError as error:
                raise DisconnectedError(f"the node of this process is gone: {error}") from error

    def _head(self) -> str:
        import ray

        address = str(self._launcher.get("address") or "")
        if address.startswith("ray://"):
            return address
        return str(ray.get_runtime_context().gcs_address)


def put(workload: Any) -> Any:
    """Put a workload into the object store."""
    import ray

    try:
        return ray.put(workload)
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
        raise InputError(
            "a workload does not fit into this node's object store: start the node with a larger "
            "one (`ray start --object-store-memory=BYTES`) or make room on its disk",
            rule="object store",
        ) from error


def ran_nothing(error: Exception) -> bool:
    """Tell whether a worker could not load the platform, or its arguments, and so ran nothing."""
    from ray.exceptions import RaySystemError

    cause = getattr(error, "cause", None)
    is_unimported = isinstance(cause, RuntimeError) and _NO_IMPORT in str(cause)
    return is_unimported or isinstance(cause, RaySystemError)


def judge(error: Exception) -> Loss:
    """Attribute the loss of a task to its worker, the memory, the task itself, or nobody."""
    from ray import exceptions as ray_errors

    if isinstance(error, ray_errors.OutOfMemoryError):
        return "memory"
    if isinstance(error, ray_errors.TaskCancelledError):
        return "away"  # by the runner: it fits on no node any more
    if isinstance(error, ray_errors.RayTaskError):
        cause = error.cause
        if isinstance(cause, MemoryError):
            return "memory"
        is_lost = isinstance(cause, ray_errors.ObjectLostError) or ran_nothing(error)
        return "lost" if is_lost else "broken"
    lost = (
        ray_errors.WorkerCrashedError,
        ray_errors.NodeDiedError,
        ray_errors.LocalRayletDiedError,
        ray_errors.ObjectLostError,
        ray_errors.RuntimeEnvSetupError,  # the node's agent is gone, or its disk is full
        ray_errors.GetTimeoutError,
        ray_errors.RpcError,
    )
    return "lost" if isinstance(error, lost) else "broken"
