"""Starting Ray on this machine, or joining a cluster; quietly, and closed to others."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, in_a_line
from sim.base.kernel_cache import cache_dir

KNOCK_S = 5.0
LOOPBACK = "127.0.0.1"
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
    _init(
        "Ray does not start on this machine",
        "launcher=inline runs without it",
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        _node_ip_address=LOOPBACK,
    )


def join(address: str, environment: Mapping[str, str]) -> None:
    """Join an existing cluster."""
    what = f"no Ray cluster answers at launcher.address={address}"
    way_out = "start one with `ray start --head`, or leave launcher= out to run on this machine"
    try:
        knock(address)
    except OSError as error:
        raise InputError(f"{what}: {error}; {way_out}", rule="no cluster") from error
    _init(what, way_out, address=address, runtime_env={"env_vars": dict(environment)})


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
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
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
    }
