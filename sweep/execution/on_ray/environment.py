"""Environment variables that keep Ray from starting: dropped, checked, or named in an error.

Ray's processes inherit this one's environment. Python's switches break Ray's agents, an outer job's
variables send them to another cluster, and Ray reports each as a node that did not come up in time.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sim.base.errors import InputError
from sim.base.text import not_utf8

_PYTHON = (
    *("PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONDEBUG", "PYTHONDEVMODE", "PYTHONINSPECT"),
    *("PYTHONPROFILEIMPORTTIME", "PYTHONSTARTUP", "PYTHONTRACEMALLOC", "PYTHONVERBOSE"),
)
"""Switches of Python that change no numbers; with some of them Ray's agents fail."""
JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Configuration of the submitted job that this process is, such as its packages."""
_OUTER_CLUSTER = (
    *(JOB_CONFIG, "RAY_OVERRIDE_JOB_RUNTIME_ENV", "RAY_JOB_ID", "RAY_NODE_ID", "RAY_RAYLET_PID"),
    *("RAY_ADDRESS", "RAY_REDIS_ADDRESS"),
)
DROPPED = (*_PYTHON, *_OUTER_CLUSTER)
"""Variables without which Ray is started on this machine."""
PORT, PORT_WAIT = "RAY_GCS_SERVER_PORT", "RAY_gcs_server_port_wait_time_s"
SET_HERE = frozenset(
    (
        *("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"),
        *("RAY_USAGE_STATS_ENABLED", "RAY_TMPDIR", "RAY_CLIENT_MODE", PORT, PORT_WAIT),
    )
)
"""Variables that this package sets, or Ray itself."""
_SUSPECT = re.compile(r"RAY_.+|LD_PRELOAD|LD_LIBRARY_PATH|(?i:(?:all|grpc|https?)_proxy)")
ADDRESS, TEMP = "RAY_ADDRESS", "RAY_TMPDIR"
_MAX_SOCKET_BYTES = 107
"""Longest path of a socket on Linux."""
_SOCKET = "ray/session_2026-01-31_12-00-00_000000_{pid}/sockets/plasma_store"
_SEVERE = re.compile(r"\[[^]]* [ECF] \d+ \d+\]\s*(?:\([^)]*\)\s*)?(?:[\w.]+:\d+:\s*)?(.+)")
_FAILED_AGENT = re.compile(r"agent_name = (\w+)")
_CHECK = "Check failed: "  # after two sentences on a bug in Ray
_MAX_LINE = 300


@contextlib.contextmanager
def restored(*names: str) -> Iterator[None]:
    """Restore environment variables at the end of this context."""
    saved = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Drop what Ray must not inherit, and set its temporary folder, inside this context.

    Raises
    ------
    InputError
        If that folder's path is too long for a socket.
    """
    check_temp_folder()
    folder = temp_folder()
    with restored(*DROPPED, TEMP):
        for name in DROPPED:
            os.environ.pop(name, None)
        os.environ[TEMP] = str(folder)
        yield


def temp_folder() -> Path:
    """Return the folder in which Ray puts its sockets and logs, absolute.

    Ray itself takes an empty or relative path as it is, which each of its processes resolves from
    a working folder of its own.
    """
    folder = Path(os.environ.get(_temp_variable(), "/tmp")).absolute()
    return Path(os.path.normpath(folder))  # a symbolic link stays, as it may be the shorter path


def _temp_variable() -> str:
    return next((name for name in (TEMP, "TMPDIR") if os.environ.get(name)), "")


def check_temp_folder() -> None:
    """Raise InputError if the path of Ray's temporary folder is too long for a socket in it."""
    folder = temp_folder()
    socket = folder / _SOCKET.format(pid=os.getpid())
    n_bytes, n_excess = len(os.fsencode(folder)), len(os.fsencode(socket)) - _MAX_SOCKET_BYTES
    if n_excess > 0:
        raise InputError(
            f"{_temp_variable()}={folder} has {n_bytes} bytes, and Ray's sockets need a path of at "
            f"most {n_bytes - n_excess}: set RAY_TMPDIR to a shorter one, as RAY_TMPDIR=/tmp",
            rule="no cluster",
        )


def check_text(environment: Mapping[str, str]) -> None:
    """Raise InputError for a variable that Ray's processes could not read as UTF-8."""
    for name, value in environment.items():
        if reason := not_utf8(value):
            raise InputError(f"{name}={value!r}, for Ray's workers, {reason}", rule="no cluster")


def suspects() -> str:
    """Name the variables that are set here and may keep Ray from working; empty if none is."""
    names = sorted(name for name in os.environ.keys() - SET_HERE if _SUSPECT.fullmatch(name))
    if not names:
        return ""
    verb, pronoun = ("is", "it") if len(names) == 1 else ("are", "them")
    return f"; {', '.join(names)} {verb} set here and may be the reason: try without {pronoun}"


def last_log_line(folder: Path) -> str:
    """Return the last error in the logs of a node that did not come up; empty if there is none.

    That of the agent that failed, if the node names one, as its own line tells only that.
    """
    severe: list[str] = []
    for name in ("gcs_server.out", "raylet.out"):
        severe += _SEVERE.findall(_read(folder / name))
    agents = [match[1] for line in severe if (match := _FAILED_AGENT.search(line))]
    for agent in reversed(agents):
        for suffix in ("err", "log"):
            if lines := _read(folder / f"{agent}.{suffix}").split("\n"):
                severe += [lines[-1]] * bool(lines[-1])
    line = severe[-1].strip() if severe else ""
    return line[max(line.find(_CHECK), 0) :][:_MAX_LINE]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").rstrip()
    except OSError:
        return ""
