"""Results in an object store: an address, and the folder here that they are worked on in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid import remote

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_ADDRESSES: dict[Path, str] = {}


def folder_of(given: str) -> Path:
    """Return the folder that ``paths.results`` names; for an address one in the user's cache."""
    if not remote.is_remote(given):
        return remote.here(given).resolve()
    check(given)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(shown(given).encode()).hexdigest()[:16]
    folder = (home / "cluster-sweep" / "results" / name).resolve()
    _ADDRESSES[folder] = given
    return folder


def address_of(folder: Path) -> str | None:
    """Return the address whose results are worked on in a folder; None if they lie there."""
    return _ADDRESSES.get(folder)


def where(path: Path) -> str:
    """Return where something of the results lies, for people: its address if elsewhere."""
    for folder, address in _ADDRESSES.items():
        if path.is_relative_to(folder):
            return "/".join((shown(address), *path.relative_to(folder).parts))
    return str(path)


def shown(address: str) -> str:
    """Return an address without its options and its secrets."""
    parts = urlsplit(address)
    return mask(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}").rstrip("/")


def check(address: str) -> None:
    """Refuse an address that can't be one, without asking its store."""
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"paths.results={mask(address)}: unknown scheme {parts.scheme!r}; valid: a folder, "
            f"file://, {', '.join(f'{scheme}://' for scheme in SCHEMES)}",
            rule="unknown scheme",
        )
    if not parts.netloc or not parts.path.strip("/"):
        raise InputError(
            f"paths.results={mask(address)} names no folder: it must be "
            f"{parts.scheme}://BUCKET/PREFIX",
            rule="missing path",
        )
