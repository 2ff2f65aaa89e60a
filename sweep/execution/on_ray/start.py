"""Start of Ray on this machine, or of a connection to a cluster, with the workers' environment."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, summary_line
from sim.base.kernel_cache import cache_dir
from sweep.execution.notes import note
from sweep.execution.on_ray import code_archive
from sweep.execution.on_ray.environment import (
    ADDRESS,
    PORT,
    PORT_WAIT,
    check_text,
    last_log_line,
    prepared,
    restored,
    suspects,
    temp_folder,
)

CONNECT_TIMEOUT_S = 5.0
GREETING_TIMEOUT_S = 20.0
LOOPBACK = "127.0.0.1"
MAX_RESTARTS = 3
_FRAME_BYTES, _SETTINGS = 9, 4
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, *[0] * 5))
"""First bytes of a client of HTTP/2, and empty settings (RFC 9113, §3.4)."""
_STANDARD_ERROR = 2
_NO_TOKEN = b"InvalidAuthToken"
_NO_ANSWER = "no Ray cluster answers at"
_START_ONE = "start one with `ray start --head`, or leave launcher= out to run on this machine"
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


def start_local(workers: int | None, environment: Mapping[str, str]) -> None:
    """Start Ray on this machine, for this process and its children alone."""
    if "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        # a token in no file: only this process and its children can talk to the cluster.
        # Ray reads these variables once, when it is imported
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    if "ray" not in sys.modules:
        # to Ray: no other machine takes part; otherwise it listens on every address
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    with prepared():
        check_text(environment)
        os.environ.update(environment)
        _start(workers)


def _start(workers: int | None) -> None:
    """Start Ray, again if it does not come up in time, unless it fails twice in the same way."""
    options: dict[str, Any] = {
        "address": "local",
        "num_cpus": workers,
        "include_dashboard": False,
        "_node_ip_address": LOOPBACK,
    }
    failure, way_out = "Ray does not start on this machine", "launcher=inline runs without it"
    previous = ""
    with restored(PORT, PORT_WAIT):
        for trial in range(1, MAX_RESTARTS + 2):
            try:
                with _without_dashboard():
                    return _init(failure, way_out, **options)
            except StartTimeoutError as error:
                is_same = bool(error.log_line) and error.log_line == previous
                previous = error.log_line
                if trial > MAX_RESTARTS or is_same:
                    raise InputError(
                        f"{failure}: it did not come up in time in {trial} attempts ({error})"
                        f"{_guess(error)}; {way_out}",
                        rule="no cluster",
                    ) from error
                note(f"Ray did not come up in time ({error}); retry {trial} of {MAX_RESTARTS}")
            # a fixed port need not be waited for; Ray has no other setting but more time
            os.environ.update({PORT: str(_free_port()), PORT_WAIT: str(60 * trial)})


def _guess(error: StartTimeoutError) -> str:
    """Return the last line of Ray's logs, or a guess without one, and what may be the reason."""
    busy = "; the machine may be too busy or short of memory: try again later, or with "
    return f"{_log_end(error.log_line) or busy + 'launcher.workers=1'}{suspects()}"


def _log_end(line: str) -> str:
    return f"; Ray's log ends: {line}" if line else ""


@contextlib.contextmanager
def _without_dashboard() -> Iterator[None]:
    """Keep Ray from starting processes for a dashboard, an autoscaler or logs on a terminal.

    It starts them even where they are not used, and waits for them: half of its time to start.
    `ray.init` has no option for that; ``ray start`` has, but its processes outlive this one.
    """
    from unittest import mock  # Ray has loaded it already

    from ray._private import node, utils

    def nothing(self: Any, **_: Any) -> None:
        self._webui_url = ""

    no_more = mock.patch.object(utils, "get_dashboard_dependency_error", ImportError)  # of an agent
    names = "start_api_server", "start_log_monitor", "start_monitor"
    helpers: dict[str, Any] = dict.fromkeys(names, nothing)
    with mock.patch.multiple(node.Node, **helpers), no_more:
        yield  # afterwards Ray may be used by other code


class StartTimeoutError(Exception):
    """Ray did not come up in time; the text is the first line of its error.

    ``log_line`` is the last error in the logs of the node that did not come up; empty for none.
    """

    def __init__(self, text: str, log_line: str = "") -> None:
        super().__init__(text)
        self.log_line = log_line


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _is_timeout(error: Exception) -> bool:
    """Tell whether a node did not come up in time; for most causes Ray raises a bare Exception."""
    late = type(error) is Exception or isinstance(error, TimeoutError)
    return late or "timed out" in str(error).lower()


def _half_started(error: BaseException) -> list[Any]:
    """Return the nodes of Ray that an error left behind."""
    owners = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    return [owner for owner in owners if hasattr(owner, "kill_all_processes")]


def _log_line(nodes: Iterable[Any]) -> str:
    """Return the last error in the logs of nodes; empty if there is none."""
    lines = [""]
    for node in nodes:
        with contextlib.suppress(Exception):  # it may have no folder yet
            lines.append(last_log_line(Path(node.get_logs_dir_path())))
    return max(lines, key=bool)


def _end_half_started(nodes: Iterable[Any]) -> None:
    """End the processes of nodes that did not come up; Ray would end them at our exit."""
    import ray

    for node in nodes:
        with contextlib.suppress(Exception):
            node.kill_all_processes(check_alive=False, allow_graceful=False)
    with contextlib.suppress(Exception):
        ray.shutdown()


def join(
    address: str, environment: Mapping[str, str], modules: Sequence[str] | None = None
) -> None:
    """Join an existing cluster; with `modules`, those of the cells, send our code along."""
    source, way_out = f"launcher.address={address}", _START_ONE
    try:
        if address == "auto":
            source, way_out = _last_started()[1:]
        check_speaks_grpc(address)
    except OSError as error:
        raise InputError(f"{_NO_ANSWER} {source}: {error}; {way_out}", rule="no cluster") from error
    with tempfile.TemporaryDirectory(prefix="sweep-code-") as folder:
        runtime_env: dict[str, Any] = {"env_vars": dict(environment)}
        if modules is not None and not code_archive.is_sent_by_job():
            archive = Path(folder, "code.zip")
            code_archive.pack(archive, modules, environment)
            runtime_env["working_dir"] = str(archive)
        failure = f"can't join the Ray cluster at {source}"
        try:
            with _refused_token(source):
                _init(failure, way_out, address=address, runtime_env=runtime_env)
        except StartTimeoutError as error:
            raise InputError(
                f"{_NO_ANSWER} {source}: {error}{suspects()}; {way_out}", rule="no cluster"
            ) from error


@contextlib.contextmanager
def _refused_token(source: str) -> Iterator[None]:
    """Raise InputError in one line if a cluster refuses our token.

    Ray's own libraries print a line a second on standard error meanwhile, and name no token in the
    exception. Anything else that they print is printed afterwards.
    """
    printed = b""
    try:
        with tempfile.TemporaryFile() as file:
            own = os.dup(_STANDARD_ERROR)
            os.dup2(file.fileno(), _STANDARD_ERROR)
            try:
                yield
            finally:
                os.dup2(own, _STANDARD_ERROR)
                os.close(own)
                file.seek(0)
                printed = file.read()
    except (InputError, StartTimeoutError) as error:
        if _NO_TOKEN not in printed:
            os.write(_STANDARD_ERROR, printed)
            raise
        raise InputError(
            f"{source}: the cluster takes only those who have its token: copy ~/.ray/auth_token "
            "from its head, or set RAY_AUTH_TOKEN, and export RAY_AUTH_MODE=token"
            f"{suspects()}",
            rule="no cluster",
        ) from error
    os.write(_STANDARD_ERROR, printed)


def knock(address: str) -> None:
    """Raise OSError if no process listens at an address: Ray itself would wait for minutes."""
    if (listener := _host_and_port(address)) is not None:
        socket.create_connection(listener, timeout=CONNECT_TIMEOUT_S).close()


def check_speaks_grpc(address: str) -> None:
    """Raise OSError if no process listens at an address, or another than Ray's head.

    A server of gRPC greets with its settings. Ray itself would wait for minutes for one, and then
    end this process.
    """
    listener = _host_and_port(address)
    if listener is None or os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return knock(address)
    with socket.create_connection(listener, timeout=CONNECT_TIMEOUT_S) as connection:
        connection.settimeout(GREETING_TIMEOUT_S)
        connection.sendall(_HTTP2_PREFACE)
        frame = connection.recv(_FRAME_BYTES, socket.MSG_WAITALL)
    if len(frame) < _FRAME_BYTES or frame[3] != _SETTINGS:
        raise ConnectionError("another server than Ray listens there")


def _host_and_port(address: str) -> tuple[str, int] | None:
    """Split an address; None if it has no port."""
    if address == "auto":
        address = _last_started()[0]
    host, _, port = address.removeprefix("ray://").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdigit() else None


def _last_started() -> tuple[str, str, str]:
    """Return the address that ``auto`` means, where it stands, and the way out if nobody answers.

    It is RAY_ADDRESS, or the address of the last ``ray start``.
    """
    if address := os.environ.get(ADDRESS):
        way_out = (
            f"unset {ADDRESS}, or name a cluster with launcher.address=HOST:PORT; {_START_ONE}"
        )
        return address, f"launcher.address=auto, which is {ADDRESS}={address}", way_out
    file = temp_folder() / "ray" / "ray_current_cluster"
    if not file.is_file():
        # Ray would search all processes, and join any user's cluster
        raise FileNotFoundError(f"neither {ADDRESS} nor {file} has an address")
    address = file.read_text().strip()
    return address, f"launcher.address=auto, which is {address} by {file}", _START_ONE


def _init(failure: str, way_out: str, **options: Any) -> None:
    import ray

    own_handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options, **_QUIET)
        # Ray prints half a page on standard output for each worker that dies; the runner reports
        # it in a line. log_to_driver=False covers the workers' own lines alone, and no option this
        vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
    except Exception as error:
        nodes = _half_started(error)
        log_line = _log_line(nodes)
        if _is_timeout(error):
            _end_half_started(nodes)
            raise StartTimeoutError(summary_line(error), log_line) from None
        known = (OSError, ValueError, RuntimeError, ray.exceptions.RayError)
        if not isinstance(error, known):
            raise
        raise InputError(
            f"{failure}: {summary_line(error)}{_log_end(log_line)}{suspects()}; {way_out}",
            rule="no cluster",
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, own_handler)  # Ray has installed its own


def worker_environment(python_path: Sequence[str]) -> dict[str, str]:
    """Build the environment of workers: folders of modules and of compiled kernels."""
    root = Path(__file__).resolve().parents[3]
    checkout = [] if root.name in ("site-packages", "dist-packages") else [str(root)]
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [*checkout, *(folder for folder in inherited if folder), *python_path]
    path = dict.fromkeys(str(Path(folder).absolute()) for folder in folders)
    return {
        "NUMBA_CACHE_DIR": str(cache_dir()),
        "PYTHONPATH": os.pathsep.join(path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "SIM_VARIANTS": os.environ.get("SIM_VARIANTS", "exact"),
    }
