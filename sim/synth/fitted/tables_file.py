"""The file of probability tables."""

from __future__ import annotations

import os

from sim.base.dataclass_json import load, save
from sim.synth.fitted.tables import Tables

FORMAT = "probability tables 1"
"""First entry of the file; a later, incompatible form gets another number."""
MADE_BY = "make it with `python -m sim fit`"


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to the file `path`, atomically."""
    save(path, FORMAT, tables)


def read_tables(path: str | os.PathLike[str]) -> Tables:
    """Read tables that `write_tables` wrote."""
    return load(Tables, path, FORMAT, MADE_BY)
