"""Ray started on this machine, or a cluster joined that is there, with what its workers need."""

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, summary_line
from sim.base.kernel_cache import cache_dir
from sweep.execution.notes import note
from sweep.execution.on_ray import code_archive

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

    It does even where there are none, and waits for it: half of its time to start. `ray.init` has
    no option for them; ``ray start`` has, and leaves processes that outlive this one.
    """
    from unittest import mock  # with Ray, which has loaded what it is made of

    from ray._private import node, utils

    def nothing(self: Any, **_: Any) -> None:
        self._webui_url = ""

    no_more = mock.patch.object(utils, "get_dashboard_dependency_error", ImportError)  # of an agent
    names = "start_api_server", "start_log_monitor", "start_monitor"
    helpers: dict[str, Any] = dict.fromkeys(names, nothing)
    with mock.patch.multiple(node.Node, **helpers), no_more:
        yield  # Ray may be somebody else's afterwards


class NotInTimeError(Exception):
    """Ray was started and did not come up in time; the text is the first line of what it says."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


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
        if own is not None and not code_archive.travels_already():
            archive = Path(folder, "code.zip")
            code_archive.pack(archive, own, environment)
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
        # Ray prints half a page on standard output for each worker that dies; the runner says it.
        # log_to_driver=False is of workers' own lines alone, and nothing else turns it off
        vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
    except Exception as error:
        if _is_late(error):
            _end_half_started(error)
            raise NotInTimeError(summary_line(error)) from None
        known = (OSError, ValueError, RuntimeError, ray.exceptions.RayError)
        if not isinstance(error, known):
            raise
        raise InputError(f"{what}: {summary_line(error)}; {way_out}", rule="no cluster") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ours)  # Ray has put its own there


def worker_environment(python_path: Sequence[str]) -> dict[str, str]:
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
