"""The tables of Alibaba's cluster-trace-v2018, which travel with the package."""

from __future__ import annotations

from pathlib import Path

from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tables_file import read_tables

SHIPPED = Path(__file__).with_name("tables.json")


def tables_of(source: Tables | str | Path | None) -> Tables:
    """Return tables, read from a file if they are none; left out, the shipped ones."""
    if isinstance(source, Tables):
        return source
    return read_tables(SHIPPED if source is None else source)
