"""Tracking URIs are refused before anything runs, or are as MLflow takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from sim.base.errors import InputError
from sweep.grid import request, tracking_uri
from sweep.grid.options import Options
from sweep.grid.tracking_uri import SCHEMES, check_tracking_uri, sqlite_file, sqlite_uri


@pytest.mark.parametrize(
    "uri",
    [
        *(None, "", "http://mlflow:5000", "HTTPS://ann:s3cret@mlflow.example.org/deep"),
        *("sqlite:////folder/mlflow.db", "sqlite:///mlflow.db", "postgresql://host/db"),
        *("postgresql+psycopg2://ann:s3cret@host/db", "mysql+pymysql://host/db", "mssql://h/db"),
        *("file:///folder", "/folder/mlruns", "./mlruns", "odd/a:b", "databricks"),
        *("databricks://profile", "databricks-uc", "uc:http://host"),
    ],
)
def test_what_mlflow_takes_is_taken(uri: object) -> None:
    check_tracking_uri(uri)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("htp://x", "unknown scheme 'htp'; did you mean 'http://'? valid: http://, https://"),
        ("sqllite:///x.db", "did you mean 'sqlite://'?"),
        ("postgres://host/db", "did you mean 'postgresql://'?"),
        ("s3://bucket/x", "unknown scheme 's3'; valid: "),
        ("http+x://host", "unknown scheme 'http'; valid: sqlite://"),
        ("localhost:5000", "has no scheme; did you mean http://localhost:5000?"),
        ("http:host", "names no host; write http://HOST:PORT"),
        ("http://", "names no host; write http://HOST:PORT"),
        ("http://host:port", "is not an address: Port could not"),
        ("http://host:99999", "is not an address: Port out of range"),
        ("http://[", "is not an address"),
        ("sqlite:mlflow.db", "names no file; write sqlite:////folder/mlflow.db"),
        (5000, "tracking.uri must be a text or null, not 5000"),
    ],
)
def test_what_it_would_refuse_at_the_end_is_refused_first(uri: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_tracking_uri(uri)
    assert message in str(caught.value)


def test_the_message_holds_no_secret() -> None:
    with pytest.raises(InputError) as caught:
        request.read(["policy=fifo", "tracking.uri=htp://ann:s3cret@host"], Options())
    assert "tracking.uri=htp://ann:***@host: unknown scheme" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_scheme_that_a_package_adds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError):
        check_tracking_uri("ours+x://host")
    monkeypatch.setattr(tracking_uri, "_plugin_schemes", lambda: ["ours+x"])
    check_tracking_uri("ours+x://host")


def test_mlflow_knows_the_same_schemes() -> None:
    from mlflow.tracking._tracking_service.utils import _tracking_store_registry

    assert {"", *SCHEMES} == {"databricks-uc", *_tracking_store_registry._registry}


ODD_NAMES = (
    *("plain", "with space", "a%20b", "100%", "why?", "a?b=c", "sharp#1", "für Köln", "it's"),
    *('say "so"', "a+b", "p@ss:word", "semi;colon", "back\\slash", "%3F", "a&b", "[1]", "名前"),
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_folder_of_any_name_is_the_one_that_sqlalchemy_opens(name: str) -> None:
    path = Path("/results") / name / "mlflow.db"
    uri = sqlite_uri(path)
    check_tracking_uri(uri)
    assert make_url(uri).database == str(path)
    assert make_url(uri).get_dialect().driver == "pysqlite"
    assert sqlite_file(uri) == path


def test_plain_names_have_the_address_that_they_always_had() -> None:
    assert sqlite_uri(Path("/für Köln/it's#1/mlflow.db")) == "sqlite:////für Köln/it's#1/mlflow.db"


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("sqlite:///mlflow.db", "mlflow.db"),
        ("sqlite:////a%20b/mlflow.db?timeout=20", "/a b/mlflow.db"),
        ("SQLITE+pysqlite:////x.db", "/x.db"),
        ("sqlite:///:memory:", None),
        ("sqlite:///file:x.db?uri=true", None),
        ("sqlite:///", None),
        ("postgresql://host/db", None),
        ("http://host:5000", None),
    ],
)
def test_the_file_of_an_address(uri: str, file: str | None) -> None:
    assert sqlite_file(uri) == (file if file is None else Path(file))


def test_a_name_that_an_old_sqlalchemy_cannot_express_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracking_uri, "sqlite_file", lambda uri: Path("/results/why"))
    with pytest.raises(InputError, match=r"name, or install SQLAlchemy 2\.1 or later"):
        sqlite_uri(Path("/results/why?"))
