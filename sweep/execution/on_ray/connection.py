"""Connection to Ray: opened, watched, closed; its failures are told from those of tasks."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, summary_line
from sim.base.memory import NEGLIGIBLE_BYTES
from sweep.execution.on_ray import nodes
from sweep.execution.on_ray.environment import suspects
from sweep.execution.on_ray.start import join, knock, start_local, worker_environment
from sweep.execution.on_ray.task_queue import Loss

if TYPE_CHECKING:
    from sweep.store.cell import CellSpec

UPDATE_EVERY_S = 2.0
CHECK_POLL_S = 0.2
PROCESS_BYTES = 300_000_000
"""Memory of a worker beside its run: libraries and kernels, also while it compiles."""
HEAD_TIMEOUT_S = 30.0
"""Ray ends processes that miss the head for a minute: give up before."""

_NO_IMPORT = "failed to import on the worker"


class DisconnectedError(Exception):
    """The node of this process, or the cluster's head, is gone; the text names it."""


class Connection:
    """Connection to the Ray that runs a sweep's tasks."""

    def __init__(self, launcher: Mapping[str, Any], python_path: Sequence[str]) -> None:
        self._launcher = launcher
        self._python_path = python_path
        self.slots = 1
        self.n_cpus = 0
        self.is_open = False
        self.nodes = nodes.Nodes()
        self._own_addresses: list[str] = []
        self._last_update_s = self._head_seen_s = 0.0

    def open(self) -> None:
        """Start Ray, or join the cluster."""
        self.is_open = True
        environment = worker_environment(self._python_path)
        if self._launcher["kind"] == "local":
            start_local(self._launcher.get("workers"), environment)
        else:
            modules_to_send = self.nodes.modules if self._launcher.get("send_code", True) else None
            join(str(self._launcher.get("address") or "auto"), environment, modules_to_send)
        self.nodes.forget()
        self._own_addresses = []
        self._last_update_s = 0.0
        self._head_seen_s = time.monotonic()
        self.update()

    def expect(self, specs: Iterable[CellSpec], trace_modules: Collection[str | None]) -> None:
        """Set the cells to run, and the user's modules that read or draw their traces.

        Before `open`: the nodes of a cluster are checked for them.
        """
        if self._launcher["kind"] == "ray":
            is_sent = self._launcher.get("send_code", True)
            own = sorted(filter(None, trace_modules))
            self.nodes.expect(specs, self._python_path, own, is_sent=is_sent)

    def update(self, *, at_once: bool = False) -> bool:
        """Update the nodes that are up, at intervals; tell whether the interval was over."""
        now_s = time.monotonic()
        if now_s < self._last_update_s + UPDATE_EVERY_S and not at_once:
            return False
        self._last_update_s = now_s
        import ray

        self._knock_at_own_node()
        try:
            knock(self._head())
        except OSError as error:
            if now_s > self._head_seen_s + HEAD_TIMEOUT_S:
                raise DisconnectedError(f"the head of the cluster is gone: {error}") from error
            return False
        with self.guarded():
            up = [node for node in ray.nodes() if node["Alive"]]
            own_id = ray.get_runtime_context().get_node_id()
            self.nodes.update(up, nodes.draining_nodes() if self._launcher["kind"] == "ray" else ())
        self._own_addresses = [
            f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
            for node in up
            if node["NodeID"] == own_id and not self._head().startswith("ray://")
        ]
        self._head_seen_s = time.monotonic()
        self.n_cpus = int(sum(node.n_cpus for node in self.nodes.good().values()))
        self.slots = max(1, min(self._launcher.get("workers") or self.n_cpus, self.n_cpus))
        return True

    def until_checked(self) -> Iterator[str]:
        """Wait until a node may run cells, or none can answer any more; yield the activity."""
        while self.nodes.waits():
            yield "checking the nodes"
            time.sleep(CHECK_POLL_S)
            self.update(at_once=True)
        yield from self.nodes.pop_lines()
        self.nodes.check_any_usable()

    def stays_up(self) -> bool:
        """Tell whether it has joined a cluster that is up and outlives it."""
        if self._launcher["kind"] != "ray" or "ray" not in sys.modules:
            return False
        import ray  # asked before it has joined, it would join the address again

        return ray.is_initialized() and self.answers()

    def answers(self) -> bool:
        """Tell whether the head answers: Ray itself would wait for it, for a minute."""
        try:
            knock(self._head())
        except OSError:
            return False
        return True

    @property
    def is_remote_driver(self) -> bool:
        """True if this process is on no node of the cluster, so no task can run on its machine."""
        return str(self._launcher.get("address") or "").startswith("ray://")

    def own_node_options(self) -> dict[str, Any]:
        """Return the options of a task that runs on this process's node alone."""
        import ray

        node_id = ray.get_runtime_context().get_node_id()
        node = self.nodes.good().get(node_id)
        n_cpus = int(node is not None and node.n_cpus >= 1)  # a head may have no CPUs
        return {"num_cpus": n_cpus, **nodes.pinned(node_id)}

    def close(self) -> None:
        """Stop Ray if it was started here, else leave the cluster."""
        if self.is_open and "ray" in sys.modules:
            import ray

            # an ObjectRef freed while another thread shuts down would end the process silently
            gc.collect()
            ray.shutdown()
        self.is_open = False

    def leave(self) -> None:
        """Leave a cluster; keep a Ray up that was started here."""
        if self._launcher["kind"] == "ray":
            self.close()

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Raise DisconnectedError for the errors of a broken connection."""
        import ray

        try:
            yield
        except (OSError, ray.exceptions.RpcError, ray.exceptions.RaySystemError) as error:
            raise DisconnectedError(f"the connection to Ray broke: {error}") from error

    @property
    def largest_memory(self) -> float:
        """Memory of the largest node that is up, bytes."""
        return max((node.memory for node in self.nodes.good().values()), default=0.0)

    def memory_to_reserve(self, run_bytes: int, *, double: bool = False) -> int:
        """Return the memory that a task reserves, bytes, no more than the largest node has.

        0 if a run, with its process, needs no more than the share of a slot on every node. If it is
        to `double`, twice what the run needs, but at least twice the mean share.
        """
        good = [node for node in self.nodes.good().values() if node.n_cpus >= 1]
        share = min((node.memory / int(node.n_cpus) for node in good), default=0.0)
        needed = float(PROCESS_BYTES + run_bytes) if run_bytes > NEGLIGIBLE_BYTES else 0.0
        if double:
            needed = 2 * max(needed, sum(node.memory for node in good) / self.slots)
        return int(min(self.largest_memory, needed)) if needed > share else 0

    def _knock_at_own_node(self) -> None:
        """Raise DisconnectedError if the own node is gone.

        Ray itself may wait for a minute, and then ends this process.
        """
        for address in self._own_addresses:
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


def could_not_load(error: Exception) -> bool:
    """Tell whether a worker could not load the platform or its arguments, and so ran no cell."""
    from ray.exceptions import RaySystemError

    cause = getattr(error, "cause", None)
    is_unimported = isinstance(cause, RuntimeError) and _NO_IMPORT in str(cause)
    return is_unimported or isinstance(cause, RaySystemError)


def classify_loss(error: Exception) -> Loss:
    """Classify the loss of a task: its worker, the memory, the task itself, or an excluded node."""
    from ray import exceptions as ray_errors

    if isinstance(error, ray_errors.OutOfMemoryError):
        return "memory"
    if isinstance(error, ray_errors.TaskCancelledError):
        return "excluded"  # cancelled by the runner: it fits on no node any more
    if isinstance(error, ray_errors.RayTaskError):
        cause = error.cause
        if isinstance(cause, MemoryError):
            return "memory"
        is_lost = isinstance(cause, ray_errors.ObjectLostError) or could_not_load(error)
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


def name_loss(error: Exception) -> str:
    """Name the loss of a task in words that its cells follow."""
    from ray.exceptions import RuntimeEnvSetupError

    if isinstance(error, RuntimeEnvSetupError):
        return "Ray could not set up a worker for"
    return "a worker died while running"


def describe_loss(error: Exception, n_losses: int) -> str:
    """Describe why a cell's task was lost for good; what Ray does not tell is called a guess."""
    from ray import exceptions as ray_errors

    if isinstance(error, ray_errors.RuntimeEnvSetupError):
        return (
            f"Ray could not set up the environment of its worker, {n_losses} times: "
            f"{last_line(error)}{suspects()}"
        )
    return (
        f"its worker died {n_losses} times: it may have been killed for its memory, or crashed by "
        f"the cell; launcher=inline shows it ({summary_line(error)})"
    )


def last_line(error: Exception) -> str:
    """Return the last line of an error's text, where Ray has the cause of a traceback."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1].strip()


def is_object_lost(error: Exception) -> bool:
    """Tell whether an object that a task needed is lost for good."""
    import ray

    lost = (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError)
    return isinstance(error, lost) or isinstance(getattr(error, "cause", None), lost)
