"""MLflow's own UI: the command that serves it, its addresses, and the runs of sweeps in it."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import sqlite3
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import quote

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid.tracking_uri import check_tracking_uri, sqlite_file, sqlite_uri
from sweep.track.run_data import CURVE
from sweep.track.runs import VIEW, VIEW_TAG

HOST, PORT, N_TRIES = "127.0.0.1", 5000, 50
DATABASE, RESULTS = "mlflow.db", "results"
MAX_COMPARED = 10
"""Runs that MLflow compares: beyond, its page is too wide."""
_WORKFLOW = "workflowType=machine_learning"


def is_installed() -> bool:
    """Tell whether MLflow's server is installed, and not only its part that logs."""
    try:  # both have the same modules
        metadata.distribution("mlflow")
    except metadata.PackageNotFoundError:
        return False
    return True


def command(uri: str, port: int = PORT) -> list[str]:
    """Return the command that serves a tracking database to a browser on this machine."""
    words = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    words += ["--registry-store-uri", uri, "--host", HOST, "--port", str(port), "--workers", "1"]
    words += ["--uvicorn-opts", "--log-level warning"]
    if file := sqlite_file(uri):
        artifacts = file.absolute().parent / "mlflow-artifacts"
        words += ["--artifacts-destination", artifacts.as_uri()]
    return words


def hint(uri: str) -> str:
    """Return the way to see the results in MLflow: a command, or an address to open."""
    file = sqlite_file(uri)
    if file is None:
        return f"open {mask(uri)}"
    path = file.absolute()
    if path == (Path.cwd() / RESULTS / DATABASE):
        return "python -m sweep ui"
    folder = path.parent if path.name == DATABASE else path
    with contextlib.suppress(ValueError):
        folder = folder.relative_to(Path.cwd())
    return shlex.join(["python", "-m", "sweep", "ui", str(folder)])


def address(uri: str, port: int = PORT) -> str:
    """Return the address of the runs table of the latest sweep's experiment.

    The view with verdicts, if there is one. MLflow's front page shows its features for language
    models; without ``workflowType`` so does the page of an experiment.
    """
    latest = _rows(uri, "runs.start_time DESC LIMIT 1")
    if not latest:
        return f"http://{HOST}:{port}/#/experiments?{_WORKFLOW}"
    _, experiment, _, view = latest[0]
    page = f"http://{HOST}:{port}/#/experiments/{experiment}/runs?{_WORKFLOW}"
    return page + (f"&viewStateShareKey={VIEW}" if view else "")


def tracking_uri(source: str) -> str:
    """Return the tracking URI of a results folder, of a database file, or the URI itself."""
    if source.lower().startswith(("http://", "https://")):
        raise InputError(f"{mask(source)} is a server with a UI of its own: open it in a browser")
    file = sqlite_file(source)
    if "://" in source and file is None:
        check_tracking_uri(source)
        return source
    path = (file or Path(source)).expanduser().resolve()
    path = path / DATABASE if path.is_dir() else path
    if not path.is_file():
        raise InputError(
            f"there is no folder of results or MLflow database {path}; run `python -m sweep` "
            "first, or name another"
        )
    return sqlite_uri(path)


def ports(first: int, n_tries: int = N_TRIES) -> Sequence[int]:
    """Return the ports to try, from `first` on."""
    return range(first, max(first + 1, min(first + n_tries, 2**16)))


def free_port(first: int = PORT, n_tries: int = N_TRIES) -> int:
    """Return the first port from `first` on that nothing listens on."""
    for port in ports(first, n_tries):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise InputError(f"no port from {first} to {first + n_tries - 1} is free; name one: --port N")


def sweep_links(uri: str, port: int) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the addresses of each sweep's pages, with a word for each, by the sweep's id.

    They are its run, and the comparison of its curves: a run a policy and trace.
    """
    base = f"http://{HOST}:{port}/#"
    links: dict[str, tuple[tuple[str, str], ...]] = {}
    for sweep, experiment, run, _ in _rows(uri, "runs.start_time"):
        page = f"{base}/experiments/{experiment}/runs/{run}?{_WORKFLOW}"
        links[str(sweep)] = ((page, "MLflow"),)
    curves: dict[tuple[str, str], list[str]] = {}
    for sweep, experiment, run, _ in _rows(uri, "runs.start_time", CURVE):
        curves.setdefault((str(sweep), str(experiment)), []).append(str(run))
    for (sweep, experiment), runs in curves.items():
        if len(runs) > 1 and sweep in links:
            query = quote(json.dumps(runs[:MAX_COMPARED], separators=(",", ":")), safe=",")
            page = f"{base}/compare-runs?runs={query}&experiments=%5B%22{experiment}%22%5D"
            links[sweep] = (*links[sweep], (f"{page}&{_WORKFLOW}", "compare"))
    return links


def _rows(uri: str, order: str, kind: str = "sweep") -> list[tuple[object, ...]]:
    """Read the runs of a kind: (sweep, experiment, run, view); none if unreadable."""
    file = sqlite_file(uri)
    if file is None:
        return []
    query = (
        "SELECT ids.value, runs.experiment_id, runs.run_uuid, views.value FROM runs "
        "JOIN tags ON tags.run_uuid = runs.run_uuid "
        "LEFT JOIN experiment_tags AS views "
        f"ON views.experiment_id = runs.experiment_id AND views.key = '{VIEW_TAG}' "
        "LEFT JOIN tags AS ids ON ids.run_uuid = runs.run_uuid AND ids.key = 'sweep_id' "
        "WHERE tags.key = 'kind' AND tags.value = ? AND runs.lifecycle_stage = 'active' "
        f"ORDER BY {order}"
    )
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(connection):
            return connection.execute(query, (kind,)).fetchall()
    return []
