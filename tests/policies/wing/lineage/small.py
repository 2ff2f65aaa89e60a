"""Small logs by hand: jobs as dicts, with what they read and write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from policies.wing.lineage import Logs, make_logs


def small_logs(
    jobs: list[dict[str, Any]], downloads: list[tuple[float, str, int]] | None = None
) -> Logs:
    """Make logs of jobs with ``name``, ``submit``, ``finish``, ``reads`` and ``writes``.

    They read as they ``start`` (or are submitted) and write as they finish; other keys are columns
    of the log.
    """
    columns: dict[str, list[Any]] = {}
    operations = []
    for row, job in enumerate(jobs):
        job_id = job.get("job_id", str(row))
        start_s = job.get("start", job["submit"])
        operations += [(start_s, job_id, "read", f, 1) for f in job.get("reads", ())]
        operations += [(job["finish"], job_id, "write", f, 1) for f in job.get("writes", ())]
        plain = {
            "job_id": job_id,
            "template_name": job["name"],
            "submit_s": float(job["submit"]),
            "start_s": float(start_s),
            "finish_s": float(job["finish"]),
        }
        more = ("signature", "user", "queue", "organisation", "priority", "outcome", "requested")
        defaults = {"priority": 0.0, "outcome": "done", "requested": 1.0}
        plain |= {k: job.get(k, defaults.get(k, "")) for k in more}
        for name, value in plain.items():
            columns.setdefault(name, []).append(value)
    operations += [(t, None, "download", f, n) for t, f, n in downloads or ()]
    operations.sort(key=lambda row: row[0])
    names = ("time_s", "job", "operation", "file", "n")
    table = dict(zip(names, map(list, zip(*operations, strict=True)), strict=True))
    table["time_s"] = [float(t) for t in table["time_s"]]
    table["job"] = pa.array(table["job"], pa.string())
    return make_logs(table, columns)
