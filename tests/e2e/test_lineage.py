"""The dependency profiler, partitioned over Ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from policies.wing.lineage import Store
from tests.e2e.conftest import Command

pytestmark = pytest.mark.e2e

HOUR = 3600.0


def write_logs(folder: Path, n_days: int = 12, n_jobs: int = 40, n_files: int = 4) -> None:
    """Write logs of daily jobs that read files which jobs of that day or the day before wrote."""
    rng = np.random.default_rng(7)
    jobs, operations = [], []
    for day in range(n_days):
        for k in range(n_jobs):
            submit = day * 24 * HOUR + k * 0.4 * HOUR + float(rng.random())
            name = f"{day}-{k}"
            jobs.append((name, f"program-{k}", submit, submit + 0.3 * HOUR, f"user-{k % 3}"))
            read = rng.choice(n_jobs, 3, replace=False).tolist()
            operations += [(submit, name, "read", f"file-{other}", 1) for other in read]
            operations.append((submit + 0.3 * HOUR, name, "write", f"file-{k}", 1))
            if k % 5 == 0:
                operations.append((submit + 5 * HOUR, None, "download", f"file-{k}", k + 1))
    operations.append((1.0, "nobody", "read", "file-1", 1))
    operations.sort(key=lambda row: row[0])
    names = ("job_id", "template_name", "submit_s", "finish_s", "user")
    pq.write_table(
        pa.table(dict(zip(names, zip(*jobs, strict=True), strict=True))), folder / "jobs"
    )
    (folder / "operations").mkdir()
    for index, rows in enumerate(np.array_split(np.arange(len(operations)), n_files)):
        columns = zip(*(operations[row] for row in rows.tolist()), strict=True)
        named = zip(("time_s", "job", "operation", "file", "n"), columns, strict=True)
        pq.write_table(pa.table(dict(named)), folder / "operations" / f"{index}.parquet")


@pytest.mark.long
def test_partitions_on_ray_give_the_same_tables_as_one_process(command: Command) -> None:
    write_logs(command.folder)
    for module, out, options in (
        (("sim", "lineage"), "whole", ()),
        (("sweep", "lineage"), "parts", ("--parts", "3", "--workers", "2")),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", *module, "operations", "--jobs", "jobs", "--out", out, *options],
            cwd=command.folder, env=command.environment,
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    single, parts = (Store.read(command.folder / out) for out in ("whole", "parts"))
    assert single.report == parts.report
    assert single.report["operations: job not in the job log"] == 1
    assert str(single.measures) == str(parts.measures)  # some are NaN
    assert single.tables.keys() == parts.tables.keys()
    assert len(single.tables["dependencies"]) > 500
    for name, table in single.tables.items():
        partitioned = parts.tables[name].to_pandas()
        pd.testing.assert_frame_equal(table.to_pandas(), partitioned, check_exact=True, obj=name)
