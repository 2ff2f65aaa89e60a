"""Open the results in the MLflow UI: ``python -m sweep.ui [RESULTS]``."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import socket
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.base.errors import InputError
from sim.base.masking import mask

HOST, PORT = "127.0.0.1", 5000
DATABASE, RESULTS = "mlflow.db", "results"
_SQLITE = "sqlite:///"
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # three more processes that nothing here needs
    "PYTHONWARNINGS": "ignore",
}


def command(uri: str, port: int = PORT) -> list[str]:
    """Give the command that serves a tracking database to a browser on this machine."""
    words = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    words += ["--registry-store-uri", uri, "--host", HOST, "--port", str(port), "--workers", "1"]
    words += ["--uvicorn-opts", "--log-level warning"]
    if uri.startswith(_SQLITE):
        artifacts = Path(uri.removeprefix(_SQLITE)).absolute().parent / "mlflow-artifacts"
        words += ["--artifacts-destination", artifacts.as_uri()]
    return words


def hint(uri: str) -> str:
    """Give the one thing to do to see the results in MLflow: a command, or an address to open."""
    if not uri.startswith(_SQLITE):
        return f"open {mask(uri)}"
    path = Path(uri.removeprefix(_SQLITE)).absolute()
    if path == (Path.cwd() / RESULTS / DATABASE):
        return "python -m sweep.ui"
    where = path.parent if path.name == DATABASE else path
    with contextlib.suppress(ValueError):
        where = where.relative_to(Path.cwd())
    return shlex.join(["python", "-m", "sweep.ui", str(where)])


def address(uri: str, port: int = PORT) -> str:
    """Give the address of the runs table: that of the latest sweep's experiment, if it is known.

    MLflow's front page shows its features for language models; without ``workflowType`` so does
    the page of an experiment.
    """
    base = f"http://{HOST}:{port}"
    experiment = _latest_experiment(uri)
    page = f"/{experiment}/runs?workflowType=machine_learning" if experiment else ""
    return f"{base}/#/experiments{page}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the UI until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m sweep.ui", description=__doc__)
    parser.add_argument(
        "where",
        nargs="?",
        default=RESULTS,
        metavar="RESULTS",
        help="folder of results, an MLflow database, or its URI (default: %(default)s)",
    )
    parser.add_argument("--port", type=int, help=f"default: the first free one from {PORT} on")
    given = parser.parse_args(arguments)
    try:
        uri = uri_of(given.where)
        port = given.port if given.port is not None else free_port()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"MLflow UI of {mask(uri)}\n\n    {address(uri, port)}\n\nCtrl-C ends it.", flush=True)
    os.environ.update({k: v for k, v in _ENVIRONMENT.items() if k not in os.environ})
    words = command(uri, port)
    os.execv(words[0], words)


def uri_of(where: str) -> str:
    """Give the tracking URI of a folder of results, of a database file, or the URI itself."""
    if where.lower().startswith(("http://", "https://")):
        raise InputError(f"{mask(where)} is a server with a UI of its own: open it in a browser")
    if "://" in where and not where.startswith(_SQLITE):
        return where
    path = Path(where.removeprefix(_SQLITE)).expanduser().resolve()
    path = path / DATABASE if path.is_dir() else path
    if not path.is_file():
        raise InputError(
            f"there is no MLflow database {path}; run `python -m sweep` first, "
            f"or name a folder of results"
        )
    return f"{_SQLITE}{path}"


def free_port(first: int = PORT, n_tries: int = 50) -> int:
    """Give the first port from `first` on that nothing listens on."""
    for port in range(first, first + n_tries):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise InputError(f"no port from {first} to {first + n_tries - 1} is free; name one: --port N")


def _latest_experiment(uri: str) -> str | None:
    if not uri.startswith(_SQLITE):
        return None
    path = Path(uri.removeprefix(_SQLITE)).absolute()
    query = (
        "SELECT runs.experiment_id FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid "
        "WHERE tags.key = 'kind' AND tags.value = 'sweep' AND runs.lifecycle_stage = 'active' "
        "ORDER BY runs.start_time DESC LIMIT 1"
    )
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(connection):
            row = connection.execute(query).fetchone()
            return None if row is None else str(row[0])
    return None


if __name__ == "__main__":
    sys.exit(main())
