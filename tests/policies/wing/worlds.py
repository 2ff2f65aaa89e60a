"""Workloads with values of jobs, and the order in which jobs are served."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import policies
import sim
from policies.wing.lineage.worth import DECAYED, decay_columns

H = 3600.0
ONE = sim.Cluster.machines(1, tokens=1)


def job(job_id, submit_h, length_h, **more):
    stage = {"durations_s": [length_h * H], "demand": {"tokens": 1}}
    return {"job_id": job_id, "submit_s": submit_h * H, "stages": [stage], **more}


def columns(n, **given_columns):
    """Return columns of values; columns that are missing do not decay."""
    out = {k: np.array(v, dtype=float) for k, v in given_columns.items()}
    for name in DECAYED:
        whole = out.get("agg_value" if name == "rescued" else name, np.zeros(n))
        for column in decay_columns(name):
            out.setdefault(column, whole)
    return out


def with_worth(jobs, history=(), **worth):
    """Return a workload with values of jobs, and a history with values."""
    plain = sim.Workload.from_jobs(jobs)
    table = plain.jobs
    for name, values in columns(len(jobs), **worth).items():
        table = table.append_column(name, pa.array(values))
    past = None
    if history:
        rows = [{"submit_s": -20 * H, "n_tasks": 1, "mean_task_s": H, "user": "", **h}
                for h in history]  # fmt: skip
        past_columns = {k: [r[k] for r in rows] for k in rows[0]}
        worth_columns = {
            k: past_columns.pop(k) for k in ("value", "compute_s", "agg_value", "agg_compute_s")
        }
        past_columns["finish_s"] = [-19 * H + i for i in range(len(rows))]
        past = past_columns | columns(len(rows), **worth_columns)
    tables = {n: getattr(plain, n) for n in ("stages", "tasks", "job_edges", "downloads")}
    return sim.Workload.from_tables(jobs=table, **tables, **({"history": past} if past else {}))


def order(workload, name, **params):
    result = sim.simulate(workload, ONE, policies.build(name, **params))
    ids = result.jobs["job_id"].to_pylist()
    start = result.job_start
    return [ids[i] for i in np.argsort(start, kind="stable") if np.isfinite(start[i])]


def recurring(history_values, **jobs_truth):
    history = [
        {"template": t, "user": u, "value": v, "agg_value": a, "compute_s": 1.0,
         "agg_compute_s": c}
        for t, u, v, a, c in history_values
    ]  # fmt: skip
    jobs = [job("block", 0, 1.0), *(job(f"j{i}", 0.1, 0.1, template=t, user=u)
            for i, (t, u) in enumerate(jobs_truth.pop("who")))]  # fmt: skip
    truth = {k: [0.0, *v] for k, v in jobs_truth.items()}
    return with_worth(jobs, history, **truth)
