"""The way to Ray: started or joined, watched, closed; its failures, told from those of tasks."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, in_a_line
from sim.base.kernel_cache import cache_dir
from sweep.execution.notes import note
from sweep.execution.on_ray import nodes, parcel
from sweep.execution.on_ray.batches import Loss

if TYPE_CHECKING:
    from sweep.store.cell import CellSpec

KNOCK_S = 5.0
LOOPBACK = "127.0.0.1"
START_AGAIN = 3
_PORT, _PORT_WAIT = "RAY_GCS_SERVER_PORT", "RAY_gcs_server_port_wait_time_s"
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


def start_local(workers: int | None, environment: Mapping[str, str]) -> None:
    """Start Ray on this machine, for this process and its children alone."""
    if "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        # a token of our own, in no file: nobody but our children can talk to the cluster.
        # Ray reads these once, when it is imported
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    if "ray" not in sys.modules:
        # Ray's word for "no other machine takes part": else it listens on every address
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.update(environment)
    options: dict[str, Any] = {
        "address": "local",
        "num_cpus": workers,
        "include_dashboard": False,
        "_node_ip_address": LOOPBACK,
    }
    what, way_out = "Ray does not start on this machine", "launcher=inline runs without it"
    given = {name: os.environ.get(name) for name in (_PORT, _PORT_WAIT)}
    try:
        for trial in range(1, START_AGAIN + 2):
            try:
                with _without_helpers():
                    return _init(what, way_out, **options)
            except NotInTimeError as error:
                if trial > START_AGAIN:
                    raise InputError(
                        f"{what}: {trial} times it did not come up in time ({error}), so the "
                        "machine is too busy or short of memory: try again once it is less so, or "
                        f"with launcher.workers=1; {way_out}",
                        rule="no cluster",
                    ) from error
                note(f"Ray is not up in time ({error}); trying again, {trial} of {START_AGAIN}")
            # a port that is fixed need not be waited for; more time is all else that Ray allows
            os.environ.update({_PORT: str(_free_port()), _PORT_WAIT: str(60 * trial)})
    finally:
        for name, value in given.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


@contextlib.contextmanager
def _without_helpers() -> Iterator[None]:
    """Let Ray start nothing for a dashboard, an autoscaler or logs on a terminal.

    It does even where there are none, and waits for it: half of its time to start.
    """
    from unittest import mock  # with Ray, which has loaded what it is made of

    from ray._private import node, utils

    def nothing(self: Any, **_: Any) -> None:
        self._webui_url = ""

    names = "start_api_server", "start_log_monitor", "start_monitor"
    helpers: dict[str, Any] = dict.fromkeys(names, nothing)
    no_more = mock.patch.object(utils, "get_dashboard_dependency_error", ImportError)  # of an agent
    with mock.patch.multiple(node.Node, **helpers), no_more:
        yield  # Ray may be somebody else's afterwards


class NotInTimeError(Exception):
    """Ray was started and did not come up in time; the text is the first line of what it says."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_late(error: Exception) -> bool:
    """Tell whether a node did not come up in time; of most of it Ray says a bare Exception."""
    late = type(error) is Exception or isinstance(error, TimeoutError)
    return late or "timed out" in str(error).lower()


def _end_half_started(error: BaseException) -> None:
    """End the processes of a node that did not come up: Ray itself would when we end."""
    import ray

    for frame, _ in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            with contextlib.suppress(Exception):
                node.kill_all_processes(check_alive=False, allow_graceful=False)
    with contextlib.suppress(Exception):
        ray.shutdown()


def join(address: str, environment: Mapping[str, str], own: Sequence[str] | None = None) -> None:
    """Join an existing cluster; with `own`, the names of the cells' modules, send it our code."""
    what = f"no Ray cluster answers at launcher.address={address}"
    way_out = "start one with `ray start --head`, or leave launcher= out to run on this machine"
    try:
        knock(address)
    except OSError as error:
        raise InputError(f"{what}: {error}; {way_out}", rule="no cluster") from error
    with tempfile.TemporaryDirectory(prefix="sweep-code-") as folder:
        goes_along: dict[str, Any] = {"env_vars": dict(environment)}
        if own is not None and not parcel.travels_already():
            archive = Path(folder, "code.zip")
            parcel.pack(archive, own)
            goes_along["working_dir"] = str(archive)
        try:
            _init(what, way_out, address=address, runtime_env=goes_along)
        except NotInTimeError as error:
            raise InputError(f"{what}: {error}; {way_out}", rule="no cluster") from error


def knock(address: str) -> None:
    """Raise OSError if nobody listens at an address: Ray itself would wait for minutes."""
    if address == "auto":
        address = _latest()
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def _latest() -> str:
    """Address that ``auto`` means: RAY_ADDRESS, or what the last ``ray start`` wrote down."""
    if given := os.environ.get("RAY_ADDRESS"):
        return given
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    if not note.is_file():
        # Ray would look through all processes, and join the cluster of anybody
        raise FileNotFoundError(f"neither RAY_ADDRESS nor {note} says where it is")
    return note.read_text().strip()


def _init(what: str, way_out: str, **options: Any) -> None:
    import ray

    ours = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options, **_QUIET)
        # Ray prints half a page on standard output for each worker that dies; the runner says it
        vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
    except Exception as error:
        if _is_late(error):
            _end_half_started(error)
            raise NotInTimeError(in_a_line(error)) from None
        known = (OSError, ValueError, RuntimeError, ray.exceptions.RayError)
        if not isinstance(error, known):
            raise
        raise InputError(f"{what}: {in_a_line(error)}; {way_out}", rule="no cluster") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ours)  # Ray has put its own there


def environment_of(python_path: Sequence[str]) -> dict[str, str]:
    """Build the environment that workers need: where modules and compiled kernels lie."""
    here = Path(__file__).resolve().parents[3]
    checkout = [] if here.name in ("site-packages", "dist-packages") else [str(here)]
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [*checkout, *(folder for folder in inherited if folder), *python_path]
    path = dict.fromkeys(str(Path(folder).absolute()) for folder in folders)
    return {
        "NUMBA_CACHE_DIR": str(cache_dir()),
        "PYTHONPATH": os.pathsep.join(path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "SIM_VARIANTS": os.environ.get("SIM_VARIANTS", "exact"),
    }


LOOK_S = 2.0
CHECK_S = 0.2
HEAD_GONE_S = 30.0
"""After a minute without the head, Ray ends the processes that miss it."""


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
        environment = environment_of(self._python_path)
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


def judge(error: Exception) -> Loss:
    """Sort an exception: who lost the task, its worker, the memory, or the task itself."""
    from ray import exceptions as ray_errors

    if isinstance(error, ray_errors.OutOfMemoryError):
        return "memory"
    if isinstance(error, ray_errors.RayTaskError):
        cause = error.cause
        if isinstance(cause, MemoryError):
            return "memory"
        return "lost" if isinstance(cause, ray_errors.ObjectLostError) else "broken"
    lost = (
        ray_errors.WorkerCrashedError,
        ray_errors.NodeDiedError,
        ray_errors.LocalRayletDiedError,
        ray_errors.ObjectLostError,
        ray_errors.TaskCancelledError,
        ray_errors.RuntimeEnvSetupError,  # the node's agent is gone, or its disk is full
        ray_errors.GetTimeoutError,
        ray_errors.RpcError,
    )
    return "lost" if isinstance(error, lost) else "broken"
