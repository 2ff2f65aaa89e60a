"""Unknown run times of jobs in a workload: refused if they are many, else filled."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from policies.wing.lineage.logs import Logs
from policies.wing.lineage.options import Options
from policies.wing.lineage.templates import medians
from sim.base.arrays import F8, Mask, inverse
from sim.base.errors import InputError
from sim.workload.tables import take_rows, with_column

MAX_UNKNOWN: Final = 0.1
"""Share of jobs of unknown run time up to which they are filled without being asked."""
FILLED: Final = "run times unknown, filled"


def with_run_times(logs: Logs, begin: float, end: float, options: Options) -> Logs:
    """Return the logs with a run time for each job: `options.fill`, or its template's median.

    A job whose end is known begins so much earlier, any other ends so much later. Operations stay.

    Raises
    ------
    InputError
        If more than `MAX_UNKNOWN` of the jobs of the window and of its past have none, and no
        option fills them; or if no run time is known.
    """
    unknown = logs.is_unknown()
    if not unknown.any():
        return logs
    submit_s, finish_s = logs.column("submit_s"), logs.column("finish_s")
    used = ((submit_s >= begin) & (submit_s < end)) | (finish_s < begin)
    n_unknown, n_used = int(np.count_nonzero(unknown & used)), int(np.count_nonzero(used))
    if options.fill is None and n_unknown > MAX_UNKNOWN * n_used:
        raise InputError(
            f"the run times of {n_unknown:,} of {n_used:,} jobs "
            f"({100 * n_unknown / n_used:.1f} %) are unknown, as the log has no start or no end of "
            "them; a workload needs one: --set fill=median or --set fill=SECONDS",
            rule="unknown run time",
        )
    return _moved(logs, unknown, _filled_s(logs, unknown, options))


def _filled_s(logs: Logs, unknown: Mask, options: Options) -> F8:
    """Return the run time that each job of unknown run time gets, s."""
    if options.fill not in (None, "median"):
        return np.full(logs.n_jobs, float(options.fill or 0.0))
    if unknown.all():
        raise InputError(
            "no run time is known, so there is no median; choose one with --set fill=SECONDS",
            rule="unknown run time",
        )
    run_s = logs.run_s()
    templates = options.templates(logs)
    usual_s = medians(run_s, templates.job_template, len(templates))[templates.job_template]
    return np.where(np.isnan(usual_s), np.median(run_s[~unknown]), usual_s)


def _moved(logs: Logs, unknown: Mask, filled_s: F8) -> Logs:
    """Return the logs with the jobs of unknown run time longer, in order of submission."""
    is_late = logs.has("run_time", "no_start")
    submit_s, start_s, finish_s, compute_s = (
        logs.column(name).copy() for name in ("submit_s", "start_s", "finish_s", "compute_s")
    )
    start_s[is_late] = finish_s[is_late] - filled_s[is_late]
    submit_s[is_late] = start_s[is_late]
    is_open = unknown & ~is_late
    finish_s[is_open] = start_s[is_open] + filled_s[is_open]
    work = logs.column("requested") * (finish_s - start_s)
    compute_s = np.where(unknown & (compute_s == 0), work, compute_s)
    order = np.argsort(submit_s, kind="stable")
    changed = {
        "submit_s": submit_s, "start_s": start_s, "finish_s": finish_s, "compute_s": compute_s,
    }  # fmt: skip
    jobs = logs.jobs
    for name, column in changed.items():
        jobs = with_column(jobs, name, column)
    jobs = take_rows(jobs, order)
    row = inverse(order).astype(np.int32)
    job = np.where(logs.job < 0, np.int32(-1), row[logs.job])
    report = logs.report | {f"jobs: {FILLED}": int(np.count_nonzero(unknown))}
    return replace(logs, jobs=jobs, job=job, report=report)
