"""Where a sweep is tracked, and what is known to be there, so that MLflow need not be asked.

The memo lies beside the journal, outside the sweep's folder, whose bytes must not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path

from sim.base import files
from sweep.grid.settings import Settings


def uri_of(settings: Settings) -> str | None:
    """Tracking URI: as configured, or sqlite in the results folder; None for no tracking."""
    if settings.tracking["kind"] == "none":
        return None
    uri = settings.tracking.get("uri")
    return str(uri) if uri else f"sqlite:///{settings.results / 'mlflow.db'}"


def target_of(settings: Settings) -> str | None:
    """Name where the settings track to, without the secrets that a URI may hold."""
    uri = uri_of(settings)
    if uri is None:
        return None
    text = f"{uri}\n{settings.tracking['experiment']}"
    granularity = settings.tracking.get("granularity")
    return hashlib.sha256(text.encode()).hexdigest()[:16] + (f"-{granularity}" * bool(granularity))


def is_logged(settings: Settings, logged: object) -> bool:
    """Tell whether what was logged to a target, if to any, is all that the settings ask for."""
    target = target_of(settings)
    return target is None or (isinstance(logged, str) and logged.startswith(target))


def memo_of(folder: Path) -> Path:
    """Place of the memo of the sweep in `folder` (``<results>/sweeps/<sweep id>``)."""
    return folder.parent.parent / "journal" / f"{folder.name}.tracked.json"


def known_run(folder: Path, uri: str, experiment: str, digest: str) -> tuple[str, str] | None:
    """Give (experiment id, parent run id) if exactly this was logged there and is there still."""
    try:
        memo = files.read_json(memo_of(folder)) or {}
        same = memo["digest"] == digest and memo["target"] == _target(uri, experiment)
        run = str(memo["experiment_id"]), str(memo["run_id"])
    except (KeyError, TypeError):
        return None
    return run if same and _is_there(uri, run[1]) else None


def remember(folder: Path, uri: str, experiment: str, digest: str, run: tuple[str, str]) -> None:
    """Remember that `digest` was logged; replaces the memo as a whole."""
    memo = {
        "target": _target(uri, experiment),
        "digest": digest,
        "experiment_id": run[0],
        "run_id": run[1],
    }
    files.write_json(memo_of(folder), memo)


def _target(uri: str, experiment: str) -> str:
    return hashlib.sha256(f"{uri}\n{experiment}".encode()).hexdigest()


def _is_there(uri: str, run_id: str) -> bool:
    """Look the run up in an sqlite file (milliseconds); elsewhere the memo is trusted."""
    if not uri.startswith("sqlite:///"):
        return True
    path = Path(uri.removeprefix("sqlite:///"))
    if not path.is_file():
        return False
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(connection):
            query = "SELECT 1 FROM runs WHERE run_uuid = ? AND lifecycle_stage = 'active'"
            return connection.execute(query, (run_id,)).fetchone() is not None
    return False
