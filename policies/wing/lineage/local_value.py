"""Local value of jobs: downloads of their output, a column of the log, or their number (§4.3)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import Downloads
from policies.wing.lineage.logs import Logs
from sim.base.arrays import F8
from sim.base.errors import InputError, unknown

VALUES: Final = ("downloads", "jobs", "compute")
"""Sources of a job's local value, beside a column of the log of jobs."""


def local_value(logs: Logs, downloads: Downloads, value: str) -> tuple[F8, dict[str, int]]:
    """Return each job's local value (§4.3), and counts of anomalies by rule."""
    if value == "downloads":
        return downloads.per_job(logs.n_jobs), {}
    if value == "jobs":
        return np.ones(logs.n_jobs), {}
    columns = [n for n in logs.jobs.column_names if pa.types.is_floating(logs.jobs[n].type)]
    name = "compute_s" if value == "compute" else value
    if name not in columns:
        raise InputError(unknown("value", value, [*VALUES, *columns]), rule="wrong option")
    values = logs.column(name).astype(np.float64)
    bad = np.flatnonzero((values < 0) | np.isinf(values))
    if len(bad):
        raise InputError(
            f"a value must be finite and 0 or more, not {values[bad[0]]:g} ({name} of job "
            f"{logs.jobs['job_id'][int(bad[0])].as_py()!r})",
            rule="number out of range",
        )
    n_unknown = int(np.isnan(values).sum())
    return np.nan_to_num(values), {f"jobs: without {name}, worth 0": n_unknown} if n_unknown else {}
