"""Open the results in a browser: ``python -m sweep.ui [RESULTS]``.

An index of all sweeps with their reports, and MLflow's own UI, each on a port of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import socket
import sqlite3
import sys
from collections.abc import Callable, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid.tracking_uri import check_tracking_uri
from sweep.report import index
from sweep.track.runs import VIEW, VIEW_TAG

HOST, PORT, N_TRIES = "127.0.0.1", 5000, 50
DATABASE, RESULTS = "mlflow.db", "results"
_SQLITE = "sqlite:///"
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # three more processes that nothing here needs
    "PYTHONWARNINGS": "ignore",
}


def command(uri: str, port: int = PORT) -> list[str]:
    """Return the command that serves a tracking database to a browser on this machine."""
    words = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    words += ["--registry-store-uri", uri, "--host", HOST, "--port", str(port), "--workers", "1"]
    words += ["--uvicorn-opts", "--log-level warning"]
    if uri.startswith(_SQLITE):
        artifacts = Path(uri.removeprefix(_SQLITE)).absolute().parent / "mlflow-artifacts"
        words += ["--artifacts-destination", artifacts.as_uri()]
    return words


def hint(uri: str) -> str:
    """Return the way to see the results in MLflow: a command, or an address to open."""
    if not uri.startswith(_SQLITE):
        return f"open {mask(uri)}"
    path = Path(uri.removeprefix(_SQLITE)).absolute()
    if path == (Path.cwd() / RESULTS / DATABASE):
        return "python -m sweep.ui"
    folder = path.parent if path.name == DATABASE else path
    with contextlib.suppress(ValueError):
        folder = folder.relative_to(Path.cwd())
    return shlex.join(["python", "-m", "sweep.ui", str(folder)])


def address(uri: str, port: int = PORT) -> str:
    """Return the address of the runs table of the latest sweep's experiment.

    The view with verdicts, if there is one. MLflow's front page shows its features for language
    models; without ``workflowType`` so does the page of an experiment.
    """
    base = f"http://{HOST}:{port}"
    latest = _rows(uri, "runs.start_time DESC LIMIT 1")
    if not latest:
        return f"{base}/#/experiments"
    _, experiment, _, view = latest[0]
    page = f"/{experiment}/runs?workflowType=machine_learning"
    return f"{base}/#/experiments{page}" + (f"&viewStateShareKey={VIEW}" if view else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the index and MLflow's UI until interrupted."""
    about = "Serve an index of all sweeps, and MLflow's UI on them, to a browser on this machine."
    parser = argparse.ArgumentParser(prog="python -m sweep.ui", description=about)
    parser.add_argument(
        "source",
        nargs="?",
        default=RESULTS,
        metavar="RESULTS",
        help="folder of results, an MLflow database, or its URI (default: %(default)s)",
    )
    parser.add_argument(
        "--port", type=int, help=f"MLflow's; default: the first free one from {PORT} on"
    )
    parser.add_argument("--index-port", type=int, help="the index's; default: the next free one")
    args = parser.parse_args(arguments)
    try:
        results = results_folder(args.source)
        if results is not None and not (results / DATABASE).is_file():
            return _index_alone(results, args.index_port)
        uri = tracking_uri(args.source)
        port = args.port if args.port is not None else free_port()
        index = None if results is None else Index(results, args.index_port, port)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if index is not None:
        print(f"Sweeps and their verdicts\n\n    {index.address}\n")
    print(f"MLflow UI of {mask(uri)}\n\n    {address(uri, port)}\n\nCtrl-C ends it.", flush=True)
    if index is not None:
        _serve_beside(index)
    os.environ.update({k: v for k, v in _ENVIRONMENT.items() if k not in os.environ})
    words = command(uri, port)
    os.execv(words[0], words)


def _index_alone(results: Path, port: int | None) -> int:
    """Serve the index of results without an MLflow database."""
    index = Index(results, port, None)
    print(f"Sweeps and their verdicts\n\n    {index.address}\n\nCtrl-C ends it.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        index.serve()
    return 0


def _serve_beside(index: Index) -> None:
    """Serve the index in a process of its own, which ends when this one does."""
    parent = os.getpid()
    if os.fork():
        return
    with contextlib.suppress(KeyboardInterrupt):
        index.serve(while_true=lambda: os.getppid() == parent)
    os._exit(0)


def results_folder(source: str) -> Path | None:
    """Return the results folder that `source` names; None for a database or a server."""
    if "://" in source:
        return None
    path = Path(source).expanduser().resolve()
    if path.name == DATABASE:
        path = path.parent
    has_sweeps = any((path / name).is_dir() for name in ("sweeps", "journal"))
    return path if has_sweeps else None


class _Server(ThreadingHTTPServer):
    """HTTP server that does not report a browser that hangs up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of anything but a lost connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Index:
    """The index of a folder of results, ready to be served at `address`."""

    def __init__(self, results: Path, port: int | None, mlflow_port: int | None) -> None:
        self.results, self.mlflow_port = results, mlflow_port
        first = PORT if mlflow_port is None else mlflow_port + 1
        self._server = _listening(self._handler(), [port] if port else _ports(first))
        self.port: int = self._server.server_port
        self.address = f"http://localhost:{self.port}/"

    def serve(self, while_true: Callable[[], bool] = lambda: True) -> None:
        """Answer until interrupted or until `while_true`, called every second, returns False."""
        self._server.timeout = 1.0
        with self._server:
            while while_true():
                self._server.handle_request()

    def page(self) -> str:
        """Return the current index as HTML."""
        if self.mlflow_port is None:
            return index.to_html(self.results)
        uri = f"{_SQLITE}{self.results / DATABASE}"
        base = f"http://{HOST}:{self.mlflow_port}/#/experiments"
        runs = {
            sweep: f"{base}/{experiment}/runs/{run}?workflowType=machine_learning"
            for sweep, (experiment, run) in sweep_runs(uri).items()
        }
        return index.to_html(self.results, address(uri, self.mlflow_port), runs)

    def _handler(self) -> Callable[..., BaseHTTPRequestHandler]:
        served = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                if not served._is_allowed_host(self.headers.get("Host", "")):
                    self.send_error(403)  # a foreign page whose name resolves to this machine
                elif self._path() == "/":
                    self._answer(served.page().encode())
                elif self._path() and served.is_public(Path(self.translate_path(self.path))):
                    super().do_GET()
                else:
                    self.send_error(404)

            def _path(self) -> str:
                with contextlib.suppress(ValueError):  # http://[ is no URL
                    return urlsplit(self.path).path
                return ""

            def _answer(self, content: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_HEAD(self) -> None:
                self.send_error(405)

            def log_message(self, *_: object) -> None:
                pass

        types = SimpleHTTPRequestHandler.extensions_map | {".md": "text/plain; charset=utf-8"}
        Handler.extensions_map = types
        return partial(Handler, directory=str(self.results))

    def _is_allowed_host(self, host: str) -> bool:
        return host in (f"{HOST}:{self.port}", f"localhost:{self.port}")

    def is_public(self, path: Path) -> bool:
        """Tell whether a file is part of a sweep's, report's or comparison's folder."""
        folders = [self.results / name for name in ("sweeps", "reports", "comparisons")]
        # a null byte, half a surrogate, a name that is too long, links without end
        with contextlib.suppress(ValueError, OSError, RuntimeError):
            path = path.resolve()
            return path.is_file() and any(path.is_relative_to(folder) for folder in folders)
        return False


def _listening(
    handler: Callable[..., BaseHTTPRequestHandler], ports: Sequence[int]
) -> ThreadingHTTPServer:
    """Listen on the first port that is free: another process may take one at any moment."""
    reason = "none is left"
    for port in ports:
        try:
            return _Server((HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    ports_tried = f"port {ports[0]}" if len(ports) == 1 else f"a port from {ports[0]} on"
    raise InputError(f"{ports_tried}: {reason}; name another: --index-port N")


def tracking_uri(source: str) -> str:
    """Return the tracking URI of a results folder, of a database file, or the URI itself."""
    if source.lower().startswith(("http://", "https://")):
        raise InputError(f"{mask(source)} is a server with a UI of its own: open it in a browser")
    if "://" in source and not source.startswith(_SQLITE):
        check_tracking_uri(source)
        return source
    path = Path(source.removeprefix(_SQLITE)).expanduser().resolve()
    path = path / DATABASE if path.is_dir() else path
    if not path.is_file():
        raise InputError(
            f"there is no MLflow database {path}; run `python -m sweep` first, "
            f"or name a folder of results"
        )
    return f"{_SQLITE}{path}"


def _ports(first: int, n_tries: int = N_TRIES) -> Sequence[int]:
    return range(first, max(first + 1, min(first + n_tries, 2**16)))


def free_port(first: int = PORT, n_tries: int = N_TRIES) -> int:
    """Return the first port from `first` on that nothing listens on."""
    for port in _ports(first, n_tries):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise InputError(f"no port from {first} to {first + n_tries - 1} is free; name one: --port N")


def sweep_runs(uri: str) -> dict[str, tuple[str, str]]:
    """Return each sweep's experiment and run in a tracking database, by the sweep's id."""
    rows = _rows(uri, "runs.start_time")
    return {str(sweep): (str(experiment), str(run)) for sweep, experiment, run, _ in rows}


def _rows(uri: str, order: str) -> list[tuple[object, ...]]:
    """Read the runs that stand for sweeps: (sweep, experiment, run, view); none if unreadable."""
    if not uri.startswith(_SQLITE):
        return []
    path = Path(uri.removeprefix(_SQLITE)).absolute()
    query = (
        "SELECT ids.value, runs.experiment_id, runs.run_uuid, views.value FROM runs "
        "JOIN tags ON tags.run_uuid = runs.run_uuid "
        "LEFT JOIN experiment_tags AS views "
        f"ON views.experiment_id = runs.experiment_id AND views.key = '{VIEW_TAG}' "
        "LEFT JOIN tags AS ids ON ids.run_uuid = runs.run_uuid AND ids.key = 'sweep_id' "
        "WHERE tags.key = 'kind' AND tags.value = 'sweep' AND runs.lifecycle_stage = 'active' "
        f"ORDER BY {order}"
    )
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(connection):
            return connection.execute(query).fetchall()
    return []


if __name__ == "__main__":
    sys.exit(main())
