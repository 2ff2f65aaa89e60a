"""Results in an object store: an address, and its working folder on this machine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit

from sim.base.masking import mask
from sweep.grid import remote

_ADDRESSES: dict[Path, str] = {}


def working_folder(path: str) -> Path:
    """Return the folder of ``paths.results``; for an address, a folder in the user's cache."""
    if not remote.is_remote(path):
        return remote.local_path(path).resolve()
    remote.check(path, "paths.results", "folder", "a folder", "PREFIX")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(display_address(path).encode()).hexdigest()[:16]
    folder = (home / "cluster-sweep" / "results" / name).resolve()
    _ADDRESSES[folder] = path
    return folder


def address_for(folder: Path) -> str | None:
    """Return the address of which a folder is the working folder; None if there is none."""
    return _ADDRESSES.get(folder)


def display_path(path: Path) -> str:
    """Return the location of a results file for people: its address if it is remote."""
    for folder, address in _ADDRESSES.items():
        if path.is_relative_to(folder):
            return "/".join((display_address(address), *path.relative_to(folder).parts))
    return str(path)


def display_address(address: str) -> str:
    """Return an address without its options and its secrets."""
    parts = urlsplit(address)
    return mask(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}").rstrip("/")
