"""Client of an object store, made from an address as ``s3://KEY:SECRET@BUCKET/PREFIX?region=R``.

Options after the ``?`` are those of `obstore`, or of `pyarrow.fs`, which reads traces, where they
mean the same. Credentials are those of the address, of the environment, of ``~/.aws/credentials``,
of boto3 where it is installed (roles and logins in ``~/.aws/config``), or of the machine. A client
has threads: a process that was forked after one was used hangs as it uses one.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sim.base.errors import InputError
from sim.base.extras import importing

SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss"}
"""Schemes of stores that hold results, with their names for `obstore`."""
TIMEOUT_S = 30.0
"""Longest time without a byte of an answer; the upload of a put counts, too."""
_NETWORK = {"allow_http": True, "connect_timeout": "10s", "timeout": "1d"}
_ARROW_ONLY = ("allow_bucket_creation", "allow_bucket_deletion", "allow_delayed_open")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

Provider = Callable[[], Any]


def connect(address: str, timeout_s: float = TIMEOUT_S) -> Any:
    """Make a client of the objects below an address, which makes each request once.

    Raises
    ------
    InputError
        If a store of this kind can't hold results.
    ValueError, obstore.exceptions.BaseError
        If the address or an option is invalid.
    OSError
        If the region of a bucket can't be looked up.
    """
    with importing("sweep"):
        from obstore import store  # the clients of all stores: slow to load
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"{parts.scheme}:// can't hold results: they need a folder, or a store at "
            f"{', '.join(f'{scheme}://' for scheme in SCHEMES)}",
            rule="unknown scheme",
        )
    options, host, provider = _options(parts.query), parts.netloc, None
    user, _, secret = host.rpartition("@")[0].partition(":")
    if parts.scheme == "s3":
        host = host.rpartition("@")[2]
        provider = _keys(unquote(user), unquote(secret)) if secret else _aws_login()
        if "region" not in options and "endpoint" not in options and not _is_set(_REGIONS):
            options |= _region(host)
    elif secret:
        host, options["account_key"] = host.replace(f":{secret}@", "@"), unquote(secret)
    url = f"{SCHEMES[parts.scheme]}://{host}{parts.path.rstrip('/')}"
    settings: dict[str, Any] = {
        "config": options,
        "client_options": {**_NETWORK, "read_timeout": f"{timeout_s:.0f}s"},
        "retry_config": {"max_retries": 0},
        "credential_provider": provider,
    }
    return store.from_url(url, **settings)


def _options(query: str) -> dict[str, str]:
    """Translate the options of an address."""
    options = {key: value for key, value in parse_qsl(query) if key not in _ARROW_ONLY}
    scheme = options.pop("scheme", "https")
    endpoint = options.pop("endpoint_override", "")
    if endpoint:
        options["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return options


def _is_set(variables: tuple[str, ...]) -> bool:
    return any(os.environ.get(name) for name in variables)


def _region(bucket: str) -> dict[str, str]:
    """Look up the region of a bucket of AWS, as Arrow does."""
    if _is_set(_ENDPOINTS):
        return {}
    from pyarrow import fs

    return {"region": fs.resolve_s3_region(bucket)}


def _keys(key: str, secret: str, token: str | None = None) -> Provider:
    login = {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}
    return lambda: login


def _aws_login() -> Provider | None:
    """Find credentials where `obstore` does not look for them; None for those that it finds."""
    env, folder = os.environ, Path.home() / ".aws"
    if env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY"):
        return None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(env.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials", "utf-8")
        profile = parser[env.get("AWS_PROFILE", "default")]
        token = profile.get("aws_session_token")
        return _keys(profile["aws_access_key_id"], profile["aws_secret_access_key"], token)
    except (OSError, KeyError, configparser.Error):
        is_role = (folder / "config").exists() and find_spec("boto3") is not None
        return _boto3_login if is_role else None


def _boto3_login() -> Any:
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()()
