"""Studies: what a published experiment looks at in its sweep; one module a study.

A study is a module of this package with a function ``find(finished) -> list of Finding``. An
experiment names it, and what its figures are compared with::

    study:
      name: alibaba_static
      source: Tian et al., SoCC 2019, Figs. 11 and 12
      notes: why figures differ where they do
      table: what the whole table is of, where that is to be kept beside the page
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.report.findings import Finding, Finished

KEYS = ("name", "source", "notes", "table")


def names() -> list[str]:
    """Names of all studies, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def check(config: Any, file: Path) -> dict[str, str]:
    """Refuse what is no study."""
    if not isinstance(config, Mapping) or not all(isinstance(v, str) for v in config.values()):
        raise InputError(f"study: give {', '.join(KEYS)}, each a text", file=file)
    for key in config:
        if key not in KEYS:
            raise InputError(unknown("key of a study", str(key), KEYS), file=file)
    if config.get("name") not in names():
        message = unknown("study", str(config.get("name")), names())
        raise InputError(message, file=file, rule="unknown study")
    return dict(config)


def find(name: str, finished: Finished) -> list[Finding]:
    """Look at a sweep that is over."""
    found: list[Finding] = importlib.import_module(f"{__name__}.{name}").find(finished)
    return found
