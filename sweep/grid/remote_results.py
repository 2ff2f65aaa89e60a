"""Results in an object store: an address, and the folder here that they are worked on in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit

from sim.base.masking import mask
from sweep.grid import remote

_ADDRESSES: dict[Path, str] = {}


def working_folder(given: str) -> Path:
    """Return the folder that ``paths.results`` names; for an address one in the user's cache."""
    if not remote.is_remote(given):
        return remote.here(given).resolve()
    remote.check(given, "paths.results", "folder", "a folder", "PREFIX")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(display_address(given).encode()).hexdigest()[:16]
    folder = (home / "cluster-sweep" / "results" / name).resolve()
    _ADDRESSES[folder] = given
    return folder


def address_for(folder: Path) -> str | None:
    """Return the address whose results are worked on in a folder; None if they lie there."""
    return _ADDRESSES.get(folder)


def display_path(path: Path) -> str:
    """Return where something of the results lies, for people: its address if elsewhere."""
    for folder, address in _ADDRESSES.items():
        if path.is_relative_to(folder):
            return "/".join((display_address(address), *path.relative_to(folder).parts))
    return str(path)


def display_address(address: str) -> str:
    """Return an address without its options and its secrets."""
    parts = urlsplit(address)
    return mask(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}").rstrip("/")
