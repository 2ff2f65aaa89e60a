"""A production ETL repository's scheduled tables: one recurring job each, and what it reads.

The graph, the schedules, owners and impact tiers are real: the tables of Mozilla's bigquery-etl
(MPL-2.0). How long jobs run, how much they hold and how often their tables are looked at is not in
it, and drawn; see `read`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.acyclic import topological_order
from sim.base.arrays import F8, I8, Mask, inverse, ranges
from sim.base.parameters import checked
from sim.base.random import stream
from sim.base.reading import OnBadRow, no_job_left
from sim.lineage.log_tables import operations_log
from sim.lineage.logs import Logs, make_logs
from sim.lineage.window import peak, workload
from sim.lineage.worth import BLIND, NONE, POLL, JobGraph, RecordedJobs, category, week_workload
from sim.traces.bqetl.files import TableJobs, read_files, run_times
from sim.workload.workload import Workload

Mode = Literal["poll", "blind"]
History = Literal["logs", "truth"]
SIZE_SPREAD = 2.45
"""Of the logarithm of what jobs hold, fitted to the cores of 6,600 jobs of Alibaba's trace of
2018."""
TOKENS, PEAK, WIDEST = 100_000, 0.6, 0.15
"""Of the pool; the part that is held where most is, and the part of its queue that a job holds at
most: as for the synthesized Cosmos."""
SMALLEST = 0.002
"""Of the pool, that every owner's queue has."""


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
    """Read the graph, let it run by its schedules for four weeks, and return the third of them.

    The weeks begin on the first Monday on which every schedule has begun, two weeks before the
    one that is scheduled; times count from that one. A run is a job of one task, in its owner's
    queue. It reads the run of the same time, or the last one before it, of each job that its job
    polls for, and is submitted when all are there; of others it reads what is there when it is
    submitted. A job that polls for some of its inputs waits for the others too.

    Drawn are run times, sizes and downloads: a table that nothing else reads is downloaded Z / i
    times a week where it is the i-th of Z such, at any time alike, and what is there then.

    Parameters
    ----------
    path : path-like
        The folder of ``mozilla_bqetl_jobs.csv`` and ``mozilla_bqetl_edges.csv``.
    inside, across : {"poll", "blind"}
        What jobs do about inputs of their own schedule group, and of others.
    seed : int
        Of what is drawn.
    rounds : int, optional
        How far downstream worth is counted: 2^rounds hops; left out, all the way.
    history : {"logs", "truth"}
        Whether programs, hard dependencies and polling jobs are as the profiler finds them in the
        logs of the two weeks before (`sim.lineage.workload`), or as the files have them.
    on_bad_row : {"error", "skip"}
        What to do with a line that breaks a rule.

    Returns
    -------
    Workload
        Priority is 3, 2, 1 for impact tiers 1, 2, 3. ``meta["report"]`` counts jobs, edges, runs,
        ``bad_rows``, and jobs that never run in the four weeks (``once``, or yearly).
        ``meta["queue_share"]`` has a queue for each owner, in proportion to the peak of its
        requests. ``jobs`` and ``history`` have what jobs were worth (`sim.lineage.worth`).

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


def _logs(of: RecordedJobs) -> Logs:
    """Return what a data platform would have kept of the four weeks."""
    ids = of.job_ids(np.arange(len(of.priority)))
    program = category(*of.template)
    jobs = {
        "job_id": ids, "template_name": program, "signature": program, "user": category(*of.user),
        "queue": category(*of.queue), "priority": of.priority, "submit_s": of.graph.submit_s,
        "finish_s": of.graph.finish_s, "requested": of.tokens.astype(np.float64),
    }  # fmt: skip
    return make_logs(operations_log(of.graph, ids), jobs)


def _recorded(tables: TableJobs, runs: Runs, seed: int) -> tuple[RecordedJobs, dict[str, float]]:
    owners = sorted(set(tables.owner))
    owner = np.array([owners.index(name) for name in tables.owner])
    tokens, share = _tokens(runs, owner, seed)
    taken, times_s = _downloads(tables, runs, seed)
    reads = np.bincount(runs.down, minlength=len(runs.table)) > 0
    mode = np.where(~reads, NONE, np.where(runs.polls, POLL, BLIND))
    priority = 4.0 - np.array(tables.tier, np.float64)
    names = [f"owner-{name}" for name in owners]
    past = JobGraph(
        runs.submit_s, runs.finish_s, tokens * runs.duration_s, runs.up, runs.down,
        np.ones(len(runs.up), bool), mode[runs.down] == POLL, taken, times_s,
        np.ones(len(taken), np.int64),
    )  # fmt: skip

    def job_ids(rows: I8) -> pa.Array:
        number = _number_within(runs.table)
        numbered = zip(runs.table[rows].tolist(), number[rows].tolist(), strict=True)
        return pa.array([f"{tables.name[t]}@{k}" for t, k in numbered], pa.string())

    recorded = RecordedJobs(
        past, runs.duration_s, np.zeros(len(runs.table)), priority[runs.table], tokens, mode,
        template=(runs.table, tables.name), user=(owner[runs.table], names),
        queue=(owner[runs.table], names), job_ids=job_ids,
    )  # fmt: skip
    return recorded, dict(zip(names, share.tolist(), strict=True))


def _number_within(table: I8) -> I8:
    """Return which run of its job each is."""
    order = np.argsort(table, kind="stable")
    sizes = np.bincount(table)
    out = np.empty(len(table), np.int64)
    out[order] = ranges(np.zeros(len(sizes), np.int64), sizes)
    return out


def _tokens(runs: Runs, owner_of: I8, seed: int) -> tuple[I8, F8]:
    """Draw what jobs hold; return it, and each owner's share of the pool.

    Shares go by the peaks of requests; sizes are scaled until all peak at `PEAK` or a queue is
    full.
    """
    rng = stream(seed, "traces", "bqetl", "sizes")
    size = maths.exp(SIZE_SPREAD * rng.normal(size=len(owner_of)))[runs.table]
    owner = owner_of[runs.table]
    third = (runs.submit_s >= 0) & (runs.submit_s < WEEK_S)
    theirs = [third & (owner == o) for o in range(int(owner_of.max()) + 1)]
    peaks = np.array([_peak(runs, size, rows) for rows in theirs])
    share = np.maximum(peaks / peaks.sum(), SMALLEST)
    share /= share.sum()
    most = np.maximum(np.floor(WIDEST * share * TOKENS), 1.0)[owner]
    low, high = 1e-3, 1e6
    for _ in range(40):
        unit = float(np.sqrt(low * high))
        tokens = np.clip(np.floor(size * unit), 1.0, most)
        own = np.array([_peak(runs, tokens, rows) for rows in theirs])
        over = _peak(runs, tokens, third) > PEAK * TOKENS or (own > share * TOKENS).any()
        low, high = (low, unit) if over else (unit, high)
    return np.clip(np.floor(size * low), 1.0, most).astype(np.int64), share


def _peak(runs: Runs, size: F8, chosen: Mask) -> float:
    """Return the most that some runs hold at once."""
    return peak(runs.submit_s[chosen], runs.finish_s[chosen], size[chosen])


def _downloads(tables: TableJobs, runs: Runs, seed: int) -> tuple[I8, F8]:
    """Draw downloads: of which run, and when; by run, then time."""
    rng = stream(seed, "traces", "bqetl", "downloads")
    leaf = np.setdiff1d(np.arange(len(tables.name)), tables.up)
    rank = rng.permutation(len(leaf)) + 1
    length = WEEKS[1] - WEEKS[0]
    n = np.maximum(length * len(leaf) // rank, 1)
    taken, times = [], []
    for table, count in zip(leaf.tolist(), n.tolist(), strict=True):
        rows = np.flatnonzero(runs.table == table)
        at = WEEKS[0] * WEEK_S + rng.random(count) * length * WEEK_S
        run = last_made(runs.finish_s[rows], at) if len(rows) else np.full(count, -1)
        there = run >= 0
        taken.append(rows[run[there]])
        times.append(at[there])
    job, when = np.concatenate(taken), np.concatenate(times)
    order = np.lexsort((when, job))
    return job[order], when[order]


WEEK_S = 7 * 86_400.0
WEEKS = (-2, 2)
"""The first and the end of the weeks that are drawn; the one from 0 is scheduled."""
RUNTIME_LOG, RUNTIME_BETWEEN, RUNTIME_WITHIN = 5.69, 1.45, 0.27
"""Logarithm of run times, s: mean and spread over jobs, spread over the runs of one. Fitted to the
2,054 names that have twenty jobs or more in Google's trace of 2011 (29 days of wall times)."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs in order of submission, and which run reads which."""

    table: I8
    due_s: F8  # by its schedule
    submit_s: F8
    duration_s: F8
    up: I8
    down: I8
    polls: Mask  # runs that wait for inputs

    @property
    def finish_s(self) -> F8:
        """When each ends, if none waits for resources."""
        return self.submit_s + self.duration_s


def begin_of(tables: TableJobs) -> datetime:
    """Return when the first week begins."""
    last = max(tables.start)
    monday = last + timedelta(days=-last.weekday() % 7)
    return datetime(monday.year, monday.month, monday.day, tzinfo=UTC)


def run_tables(tables: TableJobs, inside: Mode, across: Mode, seed: int) -> Runs:
    """Run all tables; see `sim.traces.bqetl.read`."""
    rng = stream(seed, "traces", "bqetl", "runtimes")
    begin = begin_of(tables)
    before, end = WEEKS[0] * WEEK_S, (WEEKS[1] - WEEKS[0]) * WEEK_S
    due: dict[str, F8] = {
        s: run_times(s, begin, end) + before for s in dict.fromkeys(tables.schedule)
    }
    times = [due[s] for s in tables.schedule]
    typical = RUNTIME_LOG + RUNTIME_BETWEEN * rng.normal(size=len(times))
    took = [
        maths.exp(m + RUNTIME_WITHIN * rng.normal(size=len(t)))
        for m, t in zip(typical, times, strict=True)
    ]
    up, down = tables.up, tables.down
    dag = np.unique(np.array(tables.dag), return_inverse=True)[1]
    waits = np.where(dag[up] == dag[down], inside == "poll", across == "poll")
    polled = np.unique(down[waits])
    submit = [t.copy() for t in times]
    start0 = np.concatenate([[0], np.cumsum([len(t) for t in times])]).astype(np.int64)
    reads = [(np.empty(0, np.int64), np.empty(0, np.int64))]

    def keep(p: int, c: int, run: I8) -> None:
        there = run >= 0
        reads.append((start0[p] + run[there], start0[c] + np.flatnonzero(there)))

    for c in topological_order(len(times), up[waits], down[waits]):
        for p in up[waits & (down == c)].tolist():
            run = np.searchsorted(times[p], times[c], "right") - 1
            keep(p, c, run)
            there = run >= 0
            made = (submit[p] + took[p])[run[there]]
            submit[c][there] = np.maximum(submit[c][there], made)
    for p, c in zip(up[~waits].tolist(), down[~waits].tolist(), strict=True):
        keep(p, c, last_made(submit[p] + took[p], submit[c]))
    table = np.repeat(np.arange(len(times)), np.diff(start0))
    submit_s = np.concatenate(submit)
    order = np.argsort(submit_s, kind="stable")
    row = inverse(order)
    ends = row[np.concatenate([np.stack(r) for r in reads], axis=1)]
    ends = ends[:, np.lexsort((ends[0], ends[1]))]
    return Runs(
        table[order], np.concatenate(times)[order], submit_s[order], np.concatenate(took)[order],
        ends[0], ends[1], np.isin(table[order], polled),
    )  # fmt: skip


def last_made(finish_s: F8, at_s: F8) -> I8:
    """Return the latest run that is complete before each time; -1 for none."""
    order = np.argsort(finish_s, kind="stable")
    latest = np.concatenate([[-1], np.maximum.accumulate(order)]).astype(np.int64)
    return latest[np.searchsorted(finish_s[order], at_s, "left")]
