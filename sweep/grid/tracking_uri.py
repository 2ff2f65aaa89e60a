"""MLflow tracking URIs: of an SQLite file, its file again, and a check before anything runs."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

from sim.base.errors import InputError, unknown
from sim.base.masking import mask
from sim.base.parameters import check

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SERVERS = ("http", "https")
_OTHERS = ("file", "databricks", "databricks-uc", "uc")
SCHEMES = (*_SERVERS, *_DATABASES, *_OTHERS)
SQLITE = "sqlite:///"
_IS_ESCAPED = re.compile(r"[%?]")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+(?:/.*)?")


def sqlite_uri(path: Path) -> str:
    """Return the URI of an SQLite file, any characters in its name included.

    With ``%`` or ``?`` in the name the driver is spelled out: to other URIs MLflow makes the folder
    that the escaped text would name.

    Raises
    ------
    InputError
        If the installed SQLAlchemy can't express the name: 2.0 has no way to write ``?``.
    """
    if not _IS_ESCAPED.search(str(path)):
        return f"{SQLITE}{path}"
    from sqlalchemy.engine import URL  # takes 0.3 s, and most names need no escapes

    uri: str = URL.create("sqlite+pysqlite", database=str(path)).render_as_string()
    if sqlite_file(uri) != path:
        raise InputError(
            f"no tracking URI can name {path} with this version of SQLAlchemy: take '?' out of "
            "the folder's name, or install SQLAlchemy 2.1 or later",
            rule="tracking URI",
        )
    return uri


def sqlite_file(uri: str) -> Path | None:
    """Return the file that an SQLite URI names; None for other stores and databases in memory."""
    scheme, _, rest = uri.partition(":///")
    if scheme.lower().partition("+")[0] != "sqlite" or not rest:
        return None
    if _IS_ESCAPED.search(rest):
        from sqlalchemy.engine import make_url  # as in `sqlite_uri`

        rest = make_url(uri).database or ":memory:"
    return None if rest == ":memory:" or rest.startswith("file:") else Path(rest)


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
