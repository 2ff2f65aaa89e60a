"""Scheduled tables run by their schedules: when each run is due, and which run reads which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.random import stream
from sim.traces.bqetl.files import TableJobs, run_times

Mode = Literal["poll", "blind"]

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
        out: F8 = self.submit_s + self.duration_s
        return out


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
        np.exp(m + RUNTIME_WITHIN * rng.normal(size=len(t)))
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

    for c in _in_order(len(times), up[waits], down[waits]):
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
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    pairs = (
        np.concatenate([np.stack(r) for r in reads], axis=1)
        if reads
        else np.empty((2, 0), np.int64)
    )
    ends = row[pairs]
    ends = ends[:, np.lexsort((ends[0], ends[1]))]
    return Runs(
        table[order],
        np.concatenate(times)[order],
        submit_s[order],
        np.concatenate(took)[order],
        ends[0],
        ends[1],
        np.isin(table[order], polled),
    )


def _in_order(n: int, up: I4, down: I4) -> list[int]:
    """Return all jobs so that none comes before one that it polls for."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(up.tolist(), down.tolist(), strict=True))
    return list(nx.lexicographical_topological_sort(graph))


def last_made(finish_s: F8, at_s: F8) -> I8:
    """Return the latest run that is complete before each time; -1 for none."""
    order = np.argsort(finish_s, kind="stable")
    latest = np.concatenate([[-1], np.maximum.accumulate(order)]).astype(np.int64)
    out: I8 = latest[np.searchsorted(finish_s[order], at_s, "left")]
    return out
