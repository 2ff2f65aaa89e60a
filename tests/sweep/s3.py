"""A server that speaks S3, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer
from pyarrow import fs

SECRET = "not-for-any-eyes"


@contextmanager
def serving() -> Iterator[str]:
    """Serve; give the address."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    yield "{}:{}".format(*moto.get_host_and_port())
    moto.stop()


def bucket(endpoint: str, name: str) -> tuple[fs.S3FileSystem, str]:
    """Make a bucket; give a client, and the options of its addresses."""
    system = fs.S3FileSystem(
        access_key="someone",
        secret_key=SECRET,
        endpoint_override=endpoint,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    system.create_dir(name)
    return system, f"endpoint_override={endpoint}&scheme=http&region=us-east-1"
