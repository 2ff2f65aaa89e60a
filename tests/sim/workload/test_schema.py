"""The written schema."""

from __future__ import annotations

import subprocess
import sys

from sim.workload import schema
from tests.sim.workload.tables import build


def test_every_column_has_type_unit_and_meaning():
    for columns in schema.TABLES.values():
        for column in columns:
            assert column.unit
            assert column.meaning
            assert column.type is not None


def test_the_printed_schema_names_every_column():
    text = schema.describe()
    for table, columns in schema.TABLES.items():
        assert f"\n{table}\n" in f"\n{text}\n"
        for column in columns:
            assert f"  {column.name} " in text
    assert "demand_<resource>" in text
    done = subprocess.run(
        [sys.executable, "-m", "sim.workload.schema"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == text


def test_empty_tables_are_of_the_schema():
    w = build()
    for name in ("stage_edges", "job_edges", "downloads"):
        assert schema.empty(name).schema == getattr(w, name).schema
