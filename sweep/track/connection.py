"""Connection to MLflow: a quiet client that fails within seconds if no server answers.

A memo of logged runs saves queries. It is stored with the journal, outside the sweep's folder,
whose bytes must not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import socket
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sim.base import files
from sim.base.errors import SimError
from sim.base.masking import mask
from sweep.grid.request import Settings
from sweep.grid.tracking_uri import sqlite_file, sqlite_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


def tracking_uri(settings: Settings) -> str | None:
    """Return the tracking URI: as configured, or sqlite in the results folder; None for none."""
    if settings.tracking["kind"] == "none":
        return None
    uri = settings.tracking.get("uri")
    return str(uri) if uri else sqlite_uri(settings.results / "mlflow.db")


def target_id(settings: Settings) -> str | None:
    """Return a digest that identifies the tracking target without the secrets of its URI."""
    uri = tracking_uri(settings)
    if uri is None:
        return None
    text = f"{uri}\n{settings.tracking['experiment']}"
    granularity = settings.tracking.get("granularity")
    return hashlib.sha256(text.encode()).hexdigest()[:16] + (f"-{granularity}" * bool(granularity))


def is_logged(settings: Settings, logged: object) -> bool:
    """Tell whether `logged`, a target id or None, is the target that the settings name."""
    target = target_id(settings)
    return target is None or (isinstance(logged, str) and logged.startswith(target))


def memo_path(folder: Path) -> Path:
    """Return the path of the memo of the sweep in `folder` (``<results>/sweeps/<sweep id>``)."""
    return folder.parent.parent / "journal" / f"{folder.name}.tracked.json"


def known_run(folder: Path, uri: str, experiment: str, digest: str) -> tuple[str, str] | None:
    """Return (experiment id, parent run id) if this digest was logged there and still exists."""
    try:
        memo = files.read_checked_json(memo_path(folder)) or {}
        same = memo["digest"] == digest and memo["target"] == _target_digest(uri, experiment)
        run = str(memo["experiment_id"]), str(memo["run_id"])
    except (KeyError, TypeError):
        return None
    return run if same and _run_exists(uri, run[1]) else None


def remember(folder: Path, uri: str, experiment: str, digest: str, run: tuple[str, str]) -> None:
    """Write the memo that `digest` was logged, replacing the previous one."""
    memo = {
        "target": _target_digest(uri, experiment),
        "digest": digest,
        "experiment_id": run[0],
        "run_id": run[1],
    }
    files.write_checked_json(memo_path(folder), memo)


def _target_digest(uri: str, experiment: str) -> str:
    return hashlib.sha256(f"{uri}\n{experiment}".encode()).hexdigest()


def _run_exists(uri: str, run_id: str) -> bool:
    """Query the run in an sqlite file (milliseconds); for other stores trust the memo."""
    path = sqlite_file(uri)
    if path is None:
        return True
    if not path.is_file():
        return False
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(connection):
            query = "SELECT 1 FROM runs WHERE run_uuid = ? AND lifecycle_stage = 'active'"
            return connection.execute(query, (run_id,)).fetchone() is not None
    return False


PROBE_S = 3.0
EARLY_PROBE_S = 1.0
"""Timeout of the probe before the cells, which must not be delayed."""
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
_NO_TELEMETRY = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
_DEFAULTS = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # MLflow's defaults: seven retries of up to two minutes each
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


class TrackingDown(SimError):  # noqa: N818 - a state of the server, as the callers read it
    """MLflow could not be reached or refused the request; all results are on disk nevertheless."""

    def __init__(self, uri: str, reason: str, way_out: str) -> None:
        super().__init__(uri, reason, way_out)
        self.uri, self.reason, self.way_out = mask(uri), mask(reason), way_out

    def __str__(self) -> str:
        """Describe the failure and the command that logs later."""
        return (
            f"could not log to MLflow at {self.uri}: {self.reason}. "
            f"The results are on disk; log them later with: {self.way_out}"
        )


@dataclass(frozen=True)
class RunStore:
    """Store of runs: the MLflow client, its URI, and a scratch folder for uploads."""

    client: MlflowClient
    uri: str
    scratch: Path

    def put_text(self, run: Run, name: str, text: str) -> None:
        """Store a text as artifact `name` of the run."""
        path = self.scratch / name
        path.write_text(text, encoding="utf-8")
        self.put_file(run, path)

    def put_file(self, run: Run, path: Path) -> None:
        """Store a file as an artifact of the run.

        `MlflowClient.log_artifact` would first query the run, which is known here: that takes as
        long as the copy itself.
        """
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        repository = get_artifact_repository(run.info.artifact_uri, tracking_uri=self.uri)
        repository.log_artifact(str(path))


def is_http(uri: str) -> bool:
    """Tell whether the URI names a tracking server."""
    return uri.lower().startswith(("http://", "https://"))


def unreachable_warning(settings: Settings) -> str:
    """Return a warning if no tracking server answers; '' if one does, or none is needed."""
    uri = tracking_uri(settings)
    try:
        if uri is not None and sqlite_file(uri) is None:
            _probe(uri, EARLY_PROBE_S)
    except ConnectionError as error:
        return (
            f"no MLflow at {mask(uri or '')} yet: {_reason(error)}; the sweep runs, and is logged "
            "at its end if MLflow answers then"
        )
    return ""


_IMPORTING: list[threading.Thread] = []
"""The thread that imports MLflow: two threads that import it find it half imported."""


def warm_up() -> threading.Thread:
    """Import MLflow in a background thread, so that it is ready when the first cell is done."""
    thread = threading.Thread(target=_import_mlflow, name="import-mlflow", daemon=True)
    thread.start()
    _IMPORTING[:] = [thread]
    return thread


@contextlib.contextmanager
def connected(uri: str, way_out: str) -> Iterator[MlflowClient]:
    """Yield a client of the tracking store; errors of MLflow inside become TrackingDown.

    MLflow and Alembic log nothing inside, and MLflow's telemetry is off.
    """
    for thread in _IMPORTING:
        thread.join()
    with _environment(_NO_TELEMETRY | _DEFAULTS), _silence():
        try:
            _probe(uri)
            yield _client(uri)
        except Exception as error:
            if not _is_mlflow_error(error):
                raise
            raise TrackingDown(uri, _reason(error), way_out) from error


def _probe(uri: str, patience_s: float = PROBE_S) -> None:
    """Check within seconds that a store is usable: MLflow itself would retry for minutes."""
    if file := sqlite_file(uri):
        _probe_file(file)
        return
    parts = urlsplit(uri)
    scheme = parts.scheme.lower().partition("+")[0]
    if parts.hostname and scheme in _PORTS:
        try:
            address = (parts.hostname, parts.port or _PORTS[scheme])
            socket.create_connection(address, timeout=patience_s).close()
        except (OSError, ValueError) as error:
            raise ConnectionError(f"nothing answers there ({error})") from error


def _probe_file(path: Path) -> None:
    """Open an sqlite database, creating it if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=PROBE_S)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        raise ConnectionError(str(error)) from error
    for folder in (path, path.parent):
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} cannot be written")


def _client(uri: str) -> MlflowClient:
    from mlflow import MlflowClient

    with _silence():  # importing MLflow sets its log level anew
        return MlflowClient(tracking_uri=uri)


def _import_mlflow() -> None:
    with _environment(_NO_TELEMETRY), _silence(), contextlib.suppress(Exception):
        import mlflow.store.tracking.sqlalchemy_store
        import mlflow.tracking.client  # noqa: F401


def _is_mlflow_error(error: Exception) -> bool:
    """Tell whether the error comes from MLflow, its database, its transport or the disk."""
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError) or module in ("mlflow", "sqlalchemy", "alembic", "requests")


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:300]


@contextlib.contextmanager
def _environment(defaults: dict[str, str]) -> Iterator[None]:
    """Set environment variables that the user has not set, inside this context."""
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the logs and warnings of MLflow and its libraries off the terminal."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic", "sqlalchemy", "urllib3")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
