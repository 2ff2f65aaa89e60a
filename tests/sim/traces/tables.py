"""Tables of jobs for tests, written as CSV and as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sim
from sim.workload.workload import Workload


def read_csv(folder: Path, text: str, **options: Any) -> Workload:
    """Read a table's text."""
    file = folder / "jobs.csv"
    file.write_text(text, encoding="utf-8")
    return sim.read_trace("table", file, **options)


def read_both(folder: Path, text: str, **options: Any) -> Workload:
    """Read a table as CSV, and with the same texts as Parquet: it must be the same workload."""
    workload = read_csv(folder, text, **options)
    header, *rows = [line.split(",") for line in text.strip().split("\n")]
    columns = {
        name: pa.array([row[i] or None for row in rows], pa.string())
        for i, name in enumerate(header)
    }
    file = folder / "jobs.parquet"
    pq.write_table(pa.table(columns), file)
    other = sim.read_trace("table", file, **options)
    assert other.digest == workload.digest
    assert other.meta["report"] == workload.meta["report"]
    return workload


def warnings_of(workload: Workload) -> str:
    """Return a workload's warnings."""
    return " ".join(workload.meta["report"].get("warnings", []))


def stages(workload: Workload, *columns: str) -> list[tuple[Any, ...]]:
    """Return the number of tasks and these columns of each stage."""
    names = ["n_tasks", *columns]
    return [tuple(row[name] for name in names) for row in workload.stages.to_pylist()]
