"""Clients of object stores: options and credentials of an address."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from sim.base.errors import InputError
from sweep.store import bucket as bucket_module
from sweep.store import object_store
from sweep.store.bucket import Bucket
from sweep.store.object_store import connect

VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_CONFIG_FILE"),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the AWS tools' files in an empty home."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AWS_SHARED_CREDENTIALS_FILE", raising=False)
    (tmp_path / ".aws").mkdir()
    return tmp_path / ".aws"


def login(address: str = "s3://bucket/prefix?region=eu-north-1") -> Any:
    provider = connect(address).credential_provider
    return provider and [
        provider()[name] for name in ("access_key_id", "secret_access_key", "token")
    ]


def test_credentials_come_from_the_usual_aws_sources(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert login() is None
    (home / "config").write_text(
        "[default]\naws_access_key_id = c\naws_secret_access_key = d\nregion = eu-west-3\n"
    )
    assert login() == ["c", "d", None]  # by boto3
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = k\naws_secret_access_key = s%\n"
        "[other]\naws_access_key_id = o\naws_secret_access_key = p\naws_session_token = t\n"
    )
    assert login() == ["k", "s%", None]
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert login() == ["o", "p", "t"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "f")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "g")
    assert login() is None  # the client reads them itself
    # no token of the environment with a key of the address
    assert login("s3://a%2Fb:c@bucket/prefix?region=eu-north-1") == ["a/b", "c", None]


def test_options_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    config = connect("s3://bucket/p?endpoint_override=here:90&scheme=http").config
    assert config["endpoint"] == "http://here:90"
    options = "endpoint_override=https://here&allow_delayed_open=true"
    config = connect(f"s3://bucket/p?{options}").config
    assert config["endpoint"] == "https://here"
    monkeypatch.setattr(fs, "resolve_s3_region", lambda bucket: f"region of {bucket}")
    assert connect("s3://bucket/a/b").config["region"] == "region of bucket"
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "region" not in connect("s3://bucket/a/b").config  # the client reads it itself
    assert connect("s3://bucket/a/b").prefix == "a/b"


def test_other_stores_than_s3() -> None:
    store = connect("abfss://files:a2V5@account.dfs.core.windows.net/a/b")
    assert (store.config["container_name"], store.config["account_name"]) == ("files", "account")
    assert (store.config["account_key"], store.prefix) == ("a2V5", "a/b")
    store = connect("gcs://bucket/a?skip_signature=true")
    assert (store.config["bucket"], store.prefix) == ("bucket", "a")
    with pytest.raises(InputError, match="hdfs:// can't hold results"):
        connect("hdfs://host/a")


def test_a_large_object_has_time_for_a_slow_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(bucket_module, "MIN_BYTES_PER_S", 2**20)
    n_bytes = 8 * 2**20
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as request:
                while request.readline() != b"\r\n":
                    pass
                for _ in range(8):
                    request.read(n_bytes // 8)
                    time.sleep(0.2)
                connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 0\r\n\r\n')

        thread = threading.Thread(target=answer)
        thread.start()
        options = f"endpoint_override=127.0.0.1:{server.getsockname()[1]}&scheme=http"
        Bucket(f"s3://k:s@bucket/p?{options}").put("a", bytes(n_bytes))
        thread.join()
