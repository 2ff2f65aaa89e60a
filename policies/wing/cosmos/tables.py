"""Convert a month: the third week to a workload, any of the weeks to job and provenance logs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from policies.wing.cosmos.month import Month, to_letters
from policies.wing.cosmos.statistics import target_pairs
from policies.wing.cosmos.workflows import WEEK_S
from policies.wing.lineage.log_tables import operations_log
from policies.wing.lineage.logs import make_logs
from policies.wing.lineage.window import workload as window_workload
from policies.wing.lineage.worth import POLL, JobGraph, RecordedJobs, category, week_workload
from sim.base.arrays import I8
from sim.workload.workload import Workload


def job_ids(rows: I8) -> pa.Array:
    """Return the name of each job, by its row in the four weeks."""
    return pa.array([f"job-{row:07d}" for row in rows.tolist()], pa.string())


def programs(month: Month) -> list[str]:
    """Return the name of each recurring program."""
    return [f"program-{to_letters(number, 4)}" for number in range(int(month.program.max()) + 1)]


def users(month: Month) -> list[str]:
    """Return the name of each user."""
    return [f"user-{number}" for number in range(int(month.user.max()) + 1)]


def workload(
    month: Month,
    scale: float,
    seed: int,
    rounds: int | None = None,
    *,
    from_logs: bool = False,
    by_value: bool = False,
) -> Workload:
    """Return the jobs of the third week; see `policies.wing.cosmos.synthesize`."""
    meta = {
        "name": "synth-cosmos",
        "queue_share": month.shares,
        "target, actual": target_pairs(month, scale, by_value=by_value),
        "synth": {
            "generator": "cosmos",
            "scale": float(scale),
            "seed": int(seed),
            "organisations": len(month.shares),
            "rounds": rounds,
            "history": "logs" if from_logs else "truth",
            "source": "Chung et al., OSDI 2020",
        },
    }
    if from_logs:
        return window_workload(make_logs(*tables(month)), 0.0, WEEK_S, rounds=rounds, meta=meta)
    recorded = RecordedJobs(
        graph=_past(month), duration_s=month.duration_s, lag_s=month.lag_s, priority=month.priority,
        tokens=month.tokens, mode=month.mode, template=(month.program + 1, ["", *programs(month)]),
        user=(month.user, users(month)), queue=(month.organisation, list(month.shares)),
        job_ids=job_ids,
    )  # fmt: skip
    return week_workload(recorded, WEEK_S, rounds, meta)


def _past(month: Month) -> JobGraph:
    loads = month.downloads
    return JobGraph(
        month.submit_s, month.finish_s, month.tokens * month.duration_s, month.up, month.down,
        month.hard, month.mode[month.down] == POLL, loads.job, loads.time_s, loads.n,
    )  # fmt: skip


def tables(month: Month, weeks: tuple[int, int] = (-2, 2)) -> tuple[pa.Table, pa.Table]:
    """Return operations and jobs of some of the weeks, with the columns of `lineage.files`.

    Each ad hoc job has a unique template name.
    """
    end_s = weeks[1] * WEEK_S
    rows, past = _past(month).where(
        month.week(weeks[0], weeks[1]) & (month.finish_s < end_s), end_s
    )
    ids = job_ids(rows)
    return operations_log(past, ids), _jobs(month, rows, ids)


def _jobs(month: Month, rows: I8, ids: pa.Array) -> pa.Table:
    recurring_names = programs(month)
    is_ad_hoc = ~month.recurring[rows]
    program = month.program[rows].copy()
    program[is_ad_hoc] = len(recurring_names) + np.arange(int(is_ad_hoc.sum()))
    ad_hoc_names = [f"script-{to_letters(i, 5)}" for i in range(int(is_ad_hoc.sum()))]
    template = category(program, recurring_names + ad_hoc_names)
    return pa.table(
        {
            "job_id": ids,
            "template_name": template,
            "signature": template,
            "user": category(month.user[rows], users(month)),
            "queue": category(month.organisation[rows], list(month.shares)),
            "priority": month.priority[rows],
            "submit_s": month.submit_s[rows],
            "start_s": month.submit_s[rows],
            "finish_s": month.finish_s[rows],
            "requested": month.tokens[rows].astype(np.float64),
        }
    )
