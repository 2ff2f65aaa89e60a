"""Meanings of modules found out before, by content: parsing takes longer than all else of a plan.

They lie in the user's cache, a small file each, and serve every sweep and worker of the machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from sim.base import files
from sweep.run.cell import canonical
from sweep.store import meaning, mentions
from sweep.store.meaning import Meaning
from sweep.store.modules import Module


@cache
def known(module: Module, content: bytes) -> Meaning:
    """Return what a module's content means, from memory if it was ever found out."""
    file = _file(module, content)
    kept = files.read_json(file)
    if isinstance(kept, dict) and kept.pop("checksum", None) == _checksum(kept):
        return Meaning(**{**kept, "uses": [tuple(use) for use in kept["uses"]]})
    found = meaning.of(module, content)
    about = dataclasses.asdict(found)
    with contextlib.suppress(OSError):  # whoever can't keep it finds it out again
        files.write_text(file, canonical({**about, "checksum": _checksum(about)}))
    return found


def folder() -> Path:
    """Where meanings are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "cluster-sweep" / f"meanings-{_version()[:16]}"


@cache
def _version() -> str:
    """Digest of what finds meanings out, and of the Python that parses."""
    return hashlib.sha256(
        f"{inspect.getsource(meaning)}{inspect.getsource(mentions)}{sys.version}".encode()
    ).hexdigest()


def _file(module: Module, content: bytes) -> Path:
    package = f"{module.name}\0{module.is_package}\0".encode()  # what relative imports start from
    return folder() / f"{hashlib.sha256(package + content).hexdigest()}.json"


def _checksum(about: dict[str, Any]) -> str:
    """Sum up a meaning: a wrong one would find results of other sources."""
    return hashlib.sha256(canonical(about).encode()).hexdigest()
