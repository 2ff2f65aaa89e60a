"""Signed put: one HTTP request to an S3 store, which `pyarrow.fs` can't make.

The put may be conditional, and of any size. The request is signed by AWS *Signature Version 4*.
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import http.client
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

TIMEOUT_S = 30.0
_TAKEN = (409, 412)
"""Conflict: another request writes it now; precondition failed: it exists."""
_REFUSED = (b"Token", b"Credential", b"Request")
"""In error codes of status 400 that refuse the credentials or the rate: ExpiredToken, ..."""

Secrets = tuple[str, str, str]
"""Key, secret and token (empty for none)."""


def put(address: str, name: str, content: bytes, *, is_new: bool = False) -> bool | None:
    """Write an object below an address; None where this request is not possible.

    With `is_new` it is written unless it exists; False if it does.

    It is not possible for stores of another kind, and where credentials are neither in the address
    nor in the environment nor in ``~/.aws``.
    """
    parts = urlsplit(address)
    secrets = _secrets(parts.username, parts.password) if parts.scheme == "s3" else None
    if secrets is None:
        return None
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    region = options.get("region") or os.environ.get("AWS_REGION")
    region = region or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = options.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL", "")
    bucket, prefix = parts.hostname or "", parts.path.strip("/")
    path = f"/{prefix}/{name}"
    if endpoint:
        scheme = options.get("scheme", "https")
        base = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        path = f"/{bucket}{path}"
    else:
        base = f"https://{bucket}.s3.{region}.amazonaws.com"
    request = urllib.request.Request(
        base.rstrip("/") + quote(path),
        data=content,
        method="PUT",
        headers=_headers(urlsplit(base).netloc, quote(path), content, region, secrets, is_new),
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return True
    except urllib.error.HTTPError as error:
        if error.code in _TAKEN:
            return False
        if error.code == 501 or (error.code == 400 and not _is_refused(error)):
            return None  # the store does not support it
        raise OSError(f"the store answers {error.code}: {error.reason}") from None
    except http.client.HTTPException as error:  # the connection broke within the answer
        raise OSError(f"the store's answer broke off: {type(error).__name__}") from None


def _is_refused(error: urllib.error.HTTPError) -> bool:
    """Tell whether status 400 is about the credentials or the rate, not about the request."""
    try:
        _, _, code = error.read(2**16).partition(b"<Code>")
    except (OSError, http.client.HTTPException):
        return True
    return any(word in code.partition(b"<")[0] for word in _REFUSED)


def _headers(
    host: str, path: str, content: bytes, region: str, secrets: Secrets, is_new: bool
) -> dict[str, str]:
    key, secret, token = secrets
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(content).hexdigest()
    signed = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": timestamp}
    if is_new:
        signed["if-none-match"] = "*"
    if token:
        signed["x-amz-security-token"] = token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    canonical_request = f"PUT\n{path}\n\n{lines}\n{names}\n{digest}"
    scope = f"{timestamp[:8]}/{region}/s3/aws4_request"
    request_digest = hashlib.sha256(canonical_request.encode()).hexdigest()
    string_to_sign = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{request_digest}"
    signing_key = f"AWS4{secret}".encode()
    for part in (timestamp[:8], region, "s3", "aws4_request"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    signature = hmac.digest(signing_key, string_to_sign.encode(), "sha256").hex()
    words = f"Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
    del signed["host"]
    signed["content-type"] = "application/octet-stream"
    return {**signed, "Authorization": f"AWS4-HMAC-SHA256 {words}"}


def _secrets(user: str | None, password: str | None) -> Secrets | None:
    """Find credentials as the store's own tools do."""
    if user and password:
        return unquote(user), unquote(password), ""
    env = os.environ
    if env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY"):
        token = env.get("AWS_SESSION_TOKEN", "")
        return env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], token
    file = Path(env.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
        profile = parser[env.get("AWS_PROFILE", "default")]
        token = profile.get("aws_session_token", "")
        return profile["aws_access_key_id"], profile["aws_secret_access_key"], token
    except (OSError, KeyError, configparser.Error):
        return None
