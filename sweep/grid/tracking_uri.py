"""Check of MLflow tracking URIs before anything runs."""

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
    """Refuse a URI that MLflow would refuse after all cells are done.

    Raises
    ------
    InputError
        It names the valid schemes, the closest first, or the missing part.
    """
    if uri is None or uri == "":
        return
    check("tracking.uri", uri, str | None)
    uri = str(uri)
    if _HOST_AND_PORT.fullmatch(uri):
        raise _error(uri, f"it has no scheme; did you mean http://{uri}?")
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:  # a folder, or a name of Databricks
        return
    head, _, driver = scheme.lower().partition("+")
    known = SCHEMES if not driver else _DATABASES
    if head not in known and scheme.lower() not in _plugin_schemes():
        raise _error(uri, unknown("scheme", head, [f"{name}://" for name in known]))
    if head == "sqlite" and not rest.startswith("///"):
        raise _error(uri, "it names no file; write sqlite:////folder/mlflow.db")
    if head in _SERVERS:
        _check_server(uri)


def _check_server(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # an invalid port, or brackets that don't close
        raise _error(uri, f"it is not an address: {error}; write http://HOST:PORT") from None
    if not has_host:
        raise _error(uri, "it names no host; write http://HOST:PORT")


def _plugin_schemes() -> list[str]:
    """Return the schemes that installed packages add to MLflow's."""
    return [point.name for point in entry_points(group="mlflow.tracking_store")]


def _error(uri: str, reason: str) -> InputError:
    return InputError(f"tracking.uri={mask(uri)}: {reason}", rule="tracking URI")
