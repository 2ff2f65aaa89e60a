"""What was logged where, so that a rerun that changes nothing need not ask MLflow.

The memo lies beside the journal, outside the sweep's folder, whose bytes must not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path

from sim.base import files


def path_of(folder: Path) -> Path:
    """Place of the memo of the sweep in `folder` (``<results>/sweeps/<sweep id>``)."""
    return folder.parent.parent / "journal" / f"{folder.name}.tracked.json"


def is_logged(folder: Path, uri: str, experiment: str, digest: str) -> tuple[str, str] | None:
    """Give (experiment id, parent run id) if exactly this was logged there and is there still."""
    try:
        memo = json.loads(path_of(folder).read_text(encoding="utf-8"))
        same = memo["digest"] == digest and memo["target"] == _target(uri, experiment)
        found = str(memo["experiment_id"]), str(memo["run_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if same and _is_there(uri, found[1]) else None


def write(folder: Path, uri: str, experiment: str, digest: str, found: tuple[str, str]) -> None:
    """Remember that `digest` was logged; replaces the memo as a whole."""
    memo = {
        "target": _target(uri, experiment),
        "digest": digest,
        "experiment_id": found[0],
        "run_id": found[1],
    }
    files.write_json(path_of(folder), memo)


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
