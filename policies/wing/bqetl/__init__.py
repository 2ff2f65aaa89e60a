"""Reader of a production ETL repository: one recurring job per scheduled table.

The graph, the schedules, owners and impact tiers are real: the tables of Mozilla's bigquery-etl
(MPL-2.0). Run times, sizes and downloads are not in it, and are drawn; see `read`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import pyarrow as pa

from policies.wing.bqetl.files import TableJobs, read_files, run_times
from policies.wing.lineage.log_tables import operations_log
from policies.wing.lineage.logs import Logs, make_logs
from policies.wing.lineage.window import peak, workload
from policies.wing.lineage.worth import (
    BLIND,
    NONE,
    POLL,
    JobGraph,
    RecordedJobs,
    category,
    week_workload,
)
from sim.base import maths
from sim.base.acyclic import topological_order
from sim.base.arrays import F8, I8, Mask, inverse, ranges
from sim.base.parameters import checked
from sim.base.random import stream
from sim.base.reading import OnBadRow, no_job_left
from sim.workload.workload import Workload

Mode = Literal["poll", "blind"]
History = Literal["logs", "truth"]
SIZE_SPREAD = 2.45
"""Standard deviation of the logarithm of job sizes, fitted to the cores of 6,600 jobs of Alibaba's
trace of 2018."""
TOKENS, PEAK, WIDEST = 100_000, 0.6, 0.15
"""Tokens of the pool; largest fraction of the pool in use at any time; largest fraction of its
queue that a job holds: as for the synthesized Cosmos."""
SMALLEST = 0.002
"""Smallest fraction of the pool that an owner's queue has."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    inside: Mode = "poll",
    across: Mode = "blind",
    seed: int = 0,
    rounds: int | None = None,
    history: History = "logs",
    on_bad_row: OnBadRow = "error",
) -> Workload:
    """Read the graph, run its schedules for four weeks, and return the third week.

    The third week begins on the first Monday on which all schedules have begun; times count from
    it, so that the four weeks begin two weeks earlier. A run is a job of one task in its owner's
    queue. Of each job that it polls for, it reads the latest run scheduled at or before its own
    time, and is submitted when all those runs are complete. Of the others, it reads the latest run
    that is complete at its submission. A job that polls for some of its inputs waits for the others
    too.

    Run times, sizes and downloads are drawn. The i-th of Z tables that no other table reads is
    downloaded Z / i times a week, at uniformly distributed times; a download takes the latest
    complete run.

    Parameters
    ----------
    path : path-like
        Folder of ``mozilla_bqetl_jobs.csv`` and ``mozilla_bqetl_edges.csv``.
    inside, across : {"poll", "blind"}
        Wait for inputs from the job's own schedule group, and from other groups, or fail without.
    seed : int
        Seed of the draws.
    rounds : int, optional
        Number of downstream hops over which value is aggregated, as a power of two: 2^rounds; by
        default all.
    history : {"logs", "truth"}
        Source of programs, hard dependencies and polling jobs: the profiler's results from the logs
        of the two weeks before (`policies.wing.lineage.workload`), or the files.
    on_bad_row : {"error", "skip"}
        Lines that break a rule: raise, or drop and count.

    Returns
    -------
    Workload
        Priority is 3, 2, 1 for impact tiers 1, 2, 3. ``meta["report"]`` counts jobs, edges, runs,
        ``bad_rows``, and jobs that never run in the four weeks (``once``, or yearly).
        ``meta["queue_share"]`` has a queue for each owner, in proportion to the peak of its
        requests. ``jobs`` and ``history`` have the value of jobs (`policies.wing.lineage.worth`).

    Raises
    ------
    InputError
        With file, line and rule: "missing value", "duplicate id", "unknown schedule", "unknown
        tier", "wrong date", "unknown job", "job reads itself", "read is named twice"; "cycle",
        "missing column", "missing file", "empty file", "no job left".
    """
    tables = read_files(path, on_bad_row)
    runs = run_tables(tables, inside, across, seed)
    if not ((runs.submit_s >= 0) & (runs.submit_s < WEEK_S)).any():
        raise no_job_left(path, tables.bad_rows)
    n_runs = np.bincount(runs.table, minlength=len(tables.name))
    recorded, shares = _recorded(tables, runs, seed)
    meta = {
        "name": "bqetl",
        "queue_share": shares,
        "report": {
            "jobs": len(tables.name),
            "edges": len(tables.up),
            "runs": len(runs.table),
            "jobs that never run": int((n_runs == 0).sum()),
            "bad_rows": tables.bad_rows,
        },
        "drawn": {"seed": int(seed), "inside": inside, "across": across, "rounds": rounds},
        "history": history,
    }
    if history == "logs":
        return workload(_logs(recorded), 0.0, WEEK_S, rounds=rounds, meta=meta)
    return week_workload(recorded, WEEK_S, rounds, meta)


def _logs(recorded: RecordedJobs) -> Logs:
    """Return the logs that a data platform would have of the four weeks."""
    ids = recorded.job_ids(np.arange(len(recorded.priority)))
    program = category(*recorded.template)
    jobs = {
        "job_id": ids,
        "template_name": program,
        "signature": program,
        "user": category(*recorded.user),
        "queue": category(*recorded.queue),
        "priority": recorded.priority,
        "submit_s": recorded.graph.submit_s,
        "finish_s": recorded.graph.finish_s,
        "requested": recorded.tokens.astype(np.float64),
    }
    return make_logs(operations_log(recorded.graph, ids), jobs)


def _recorded(tables: TableJobs, runs: Runs, seed: int) -> tuple[RecordedJobs, dict[str, float]]:
    owners = sorted(set(tables.owner))
    owner = np.array([owners.index(name) for name in tables.owner])
    tokens, share = _tokens(runs, owner, seed)
    downloaded_run, download_s = _downloads(tables, runs, seed)
    has_input = np.bincount(runs.down, minlength=len(runs.table)) > 0
    mode = np.where(~has_input, NONE, np.where(runs.polls, POLL, BLIND))
    priority = 4.0 - np.array(tables.tier, np.float64)
    names = [f"owner-{name}" for name in owners]
    graph = JobGraph(
        runs.submit_s, runs.finish_s, tokens * runs.duration_s, runs.up, runs.down,
        np.ones(len(runs.up), bool), mode[runs.down] == POLL, downloaded_run, download_s,
        np.ones(len(downloaded_run), np.int64),
    )  # fmt: skip

    def job_ids(rows: I8) -> pa.Array:
        number = _run_number(runs.table)
        numbered = zip(runs.table[rows].tolist(), number[rows].tolist(), strict=True)
        return pa.array([f"{tables.name[t]}@{k}" for t, k in numbered], pa.string())

    recorded = RecordedJobs(
        graph, runs.duration_s, np.zeros(len(runs.table)), priority[runs.table], tokens, mode,
        template=(runs.table, tables.name), user=(owner[runs.table], names),
        queue=(owner[runs.table], names), job_ids=job_ids,
    )  # fmt: skip
    return recorded, dict(zip(names, share.tolist(), strict=True))


def _run_number(table: I8) -> I8:
    """Return the number of each run among those of its table, from 0."""
    order = np.argsort(table, kind="stable")
    sizes = np.bincount(table)
    number = np.empty(len(table), np.int64)
    number[order] = ranges(np.zeros(len(sizes), np.int64), sizes)
    return number


def _tokens(runs: Runs, table_owner: I8, seed: int) -> tuple[I8, F8]:
    """Draw the tokens of each run; return them, and each owner's share of the pool.

    Shares are proportional to the peaks of requests; sizes are scaled until the peak of all runs is
    `PEAK` or a queue is full.
    """
    rng = stream(seed, "traces", "bqetl", "sizes")
    size = maths.exp(SIZE_SPREAD * rng.normal(size=len(table_owner)))[runs.table]
    owner = table_owner[runs.table]
    in_week = (runs.submit_s >= 0) & (runs.submit_s < WEEK_S)
    by_owner = [in_week & (owner == o) for o in range(int(table_owner.max()) + 1)]
    peaks = np.array([_peak(runs, size, is_selected) for is_selected in by_owner])
    share = np.maximum(peaks / peaks.sum(), SMALLEST)
    share /= share.sum()
    max_tokens = np.maximum(np.floor(WIDEST * share * TOKENS), 1.0)[owner]
    low, high = 1e-3, 1e6
    for _ in range(40):
        unit = float(np.sqrt(low * high))
        tokens = np.clip(np.floor(size * unit), 1.0, max_tokens)
        peaks = np.array([_peak(runs, tokens, is_selected) for is_selected in by_owner])
        too_large = _peak(runs, tokens, in_week) > PEAK * TOKENS or (peaks > share * TOKENS).any()
        low, high = (low, unit) if too_large else (unit, high)
    return np.clip(np.floor(size * low), 1.0, max_tokens).astype(np.int64), share


def _peak(runs: Runs, size: F8, is_selected: Mask) -> float:
    """Return the largest total size of selected runs at any time."""
    return peak(runs.submit_s[is_selected], runs.finish_s[is_selected], size[is_selected])


def _downloads(tables: TableJobs, runs: Runs, seed: int) -> tuple[I8, F8]:
    """Draw downloads: their runs and times, sorted by run, then time."""
    rng = stream(seed, "traces", "bqetl", "downloads")
    leaf = np.setdiff1d(np.arange(len(tables.name)), tables.up)
    rank = rng.permutation(len(leaf)) + 1
    n_weeks = WEEKS[1] - WEEKS[0]
    n = np.maximum(n_weeks * len(leaf) // rank, 1)
    downloaded, times = [], []
    for table, count in zip(leaf.tolist(), n.tolist(), strict=True):
        rows = np.flatnonzero(runs.table == table)
        time_s = WEEKS[0] * WEEK_S + rng.random(count) * n_weeks * WEEK_S
        run = latest_complete(runs.finish_s[rows], time_s) if len(rows) else np.full(count, -1)
        exists = run >= 0
        downloaded.append(rows[run[exists]])
        times.append(time_s[exists])
    all_runs, all_times = np.concatenate(downloaded), np.concatenate(times)
    order = np.lexsort((all_times, all_runs))
    return all_runs[order], all_times[order]


WEEK_S = 7 * 86_400.0
WEEKS = (-2, 2)
"""First week and end of the weeks that are drawn; the workload is week 0."""
RUNTIME_LOG, RUNTIME_BETWEEN, RUNTIME_WITHIN = 5.69, 1.45, 0.27
"""Logarithm of run times, s: mean and standard deviation over jobs, standard deviation over the
runs of a job. Fitted to the 2,054 names with at least twenty jobs in Google's trace of 2011 (29
days of wall times)."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs in order of submission, and E reads: run ``down`` reads the output of run ``up``."""

    table: I8
    due_s: F8  # scheduled time
    submit_s: F8
    duration_s: F8
    up: I8
    down: I8
    polls: Mask  # runs that wait for inputs

    @property
    def finish_s(self) -> F8:
        """Times of completion without waiting for resources."""
        return self.submit_s + self.duration_s


def first_monday(tables: TableJobs) -> datetime:
    """Return the first Monday on which all schedules have begun."""
    last = max(tables.start)
    monday = last + timedelta(days=-last.weekday() % 7)
    return datetime(monday.year, monday.month, monday.day, tzinfo=UTC)


def run_tables(tables: TableJobs, inside: Mode, across: Mode, seed: int) -> Runs:
    """Run all tables; see `policies.wing.bqetl.read`."""
    rng = stream(seed, "traces", "bqetl", "runtimes")
    begin = first_monday(tables)
    first_s, length_s = WEEKS[0] * WEEK_S, (WEEKS[1] - WEEKS[0]) * WEEK_S
    due: dict[str, F8] = {
        s: run_times(s, begin, length_s) + first_s for s in dict.fromkeys(tables.schedule)
    }
    times = [due[s] for s in tables.schedule]
    typical = RUNTIME_LOG + RUNTIME_BETWEEN * rng.normal(size=len(times))
    duration_s = [
        maths.exp(m + RUNTIME_WITHIN * rng.normal(size=len(t)))
        for m, t in zip(typical, times, strict=True)
    ]
    up, down = tables.up, tables.down
    dag = np.unique(np.array(tables.dag), return_inverse=True)[1]
    waits = np.where(dag[up] == dag[down], inside == "poll", across == "poll")
    polling = np.unique(down[waits])
    submit = [t.copy() for t in times]
    start0 = np.concatenate([[0], np.cumsum([len(t) for t in times])]).astype(np.int64)
    reads = [(np.empty(0, np.int64), np.empty(0, np.int64))]

    def add_reads(p: int, c: int, run: I8) -> None:
        exists = run >= 0
        reads.append((start0[p] + run[exists], start0[c] + np.flatnonzero(exists)))

    for c in topological_order(len(times), up[waits], down[waits]):
        for p in up[waits & (down == c)].tolist():
            run = np.searchsorted(times[p], times[c], "right") - 1
            add_reads(p, c, run)
            exists = run >= 0
            ready_s = (submit[p] + duration_s[p])[run[exists]]
            submit[c][exists] = np.maximum(submit[c][exists], ready_s)
    for p, c in zip(up[~waits].tolist(), down[~waits].tolist(), strict=True):
        add_reads(p, c, latest_complete(submit[p] + duration_s[p], submit[c]))
    table = np.repeat(np.arange(len(times)), np.diff(start0))
    submit_s = np.concatenate(submit)
    order = np.argsort(submit_s, kind="stable")
    row = inverse(order)
    edges = row[np.concatenate([np.stack(r) for r in reads], axis=1)]
    edges = edges[:, np.lexsort((edges[0], edges[1]))]
    return Runs(
        table[order],
        np.concatenate(times)[order],
        submit_s[order],
        np.concatenate(duration_s)[order],
        up=edges[0],
        down=edges[1],
        polls=np.isin(table[order], polling),
    )


def latest_complete(finish_s: F8, time_s: F8) -> I8:
    """Return the latest run that is complete before each time; -1 for none."""
    order = np.argsort(finish_s, kind="stable")
    latest = np.concatenate([[-1], np.maximum.accumulate(order)]).astype(np.int64)
    return latest[np.searchsorted(finish_s[order], time_s, "left")]
