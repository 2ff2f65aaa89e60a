"""The tables of Alibaba's cluster-trace-v2018, which are part of the package."""

from __future__ import annotations

from pathlib import Path

from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tables_file import read_tables

SHIPPED = Path(__file__).with_name("tables.json")


def load_tables(source: Tables | str | Path | None) -> Tables:
    """Return tables as they are, read from a file, or the shipped ones for None."""
    if isinstance(source, Tables):
        return source
    return read_tables(SHIPPED if source is None else source)
