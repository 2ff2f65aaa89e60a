"""Tracking URIs that MLflow can be given, told from others before anything runs."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from urllib.parse import urlsplit

from sim.base.errors import InputError, unknown
from sim.base.masking import mask
from sim.base.parameters import check

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SERVERS = ("http", "https")
_OTHERS = ("file", "databricks", "databricks-uc", "uc")
SCHEMES = (*_SERVERS, *_DATABASES, *_OTHERS)
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+(?:/.*)?")


def check_tracking_uri(uri: object) -> None:
    """Refuse what MLflow would refuse once all cells are done.

    Raises
    ------
    InputError
        Naming the schemes that there are, the nearest first, or what is missing.
    """
    if uri is None or uri == "":
        return
    check("tracking.uri", uri, str | None)
    uri = str(uri)
    if _HOST_AND_PORT.fullmatch(uri):
        raise _wrong(uri, f"it has no scheme; did you mean http://{uri}?")
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:  # a folder, or one of Databricks' names
        return
    head, _, driver = scheme.lower().partition("+")
    known = SCHEMES if not driver else _DATABASES
    if head not in known and scheme.lower() not in _added():
        raise _wrong(uri, unknown("scheme", head, [f"{name}://" for name in known]))
    if head == "sqlite" and not rest.startswith("///"):
        raise _wrong(uri, "it names no file; write sqlite:////folder/mlflow.db")
    if head in _SERVERS:
        _check_server(uri)


def _check_server(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # a port that is none, brackets that don't close
        raise _wrong(uri, f"it is no address: {error}; write http://HOST:PORT") from None
    if not has_host:
        raise _wrong(uri, "it names no host; write http://HOST:PORT")


def _added() -> list[str]:
    """Schemes that installed packages add to MLflow's."""
    return [point.name for point in entry_points(group="mlflow.tracking_store")]


def _wrong(uri: str, what: str) -> InputError:
    return InputError(f"tracking.uri={mask(uri)}: {what}", rule="tracking URI")
