"""Is the tracking store there? MLflow itself would try for minutes before it said no."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

PROBE_S = 3.0
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def probe(uri: str) -> None:
    """Find out within seconds whether a tracking store can be used."""
    parts = urlsplit(uri)
    scheme = parts.scheme.lower().partition("+")[0]
    if scheme == "sqlite":
        _probe_file(Path(uri.partition(":///")[2]))
    elif parts.hostname and scheme in _PORTS:
        try:
            address = (parts.hostname, parts.port or _PORTS[scheme])
            socket.create_connection(address, timeout=PROBE_S).close()
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
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise PermissionError(f"{place} cannot be written")
