"""Jobs that look alike, come back, and what can be foreseen of them (SoCC 2019, §6)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, U8, ranges
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic
from sim.describe.variability import Variation, set_spread
from sim.workload.columns import stage_demand
from sim.workload.tables import values

PERIODS_S = {"15 min": 900.0, "1 h": 3_600.0, "1 day": 86_400.0}
"""The three common periods of production jobs that the paper tries."""
TOLERANCE = 0.05
"""How far an interval may be from its period, as a share of it."""
LEAST = 3
"""Fewest jobs of a group: two intervals that are alike."""
COUNTERPARTS = (1, 13, 117)
"""How many jobs of the same DAG the paper asks for: 99.52, 90.19 and 75.01 % have them."""


def counterparts(kind: I8) -> I8:
    """Return how many other jobs are of each job's kind, (J,)."""
    return np.bincount(kind, minlength=1)[kind] - 1


def class_measures(kind: I8) -> list[Statistic]:
    """Share of jobs (of six stages and more) whose DAG is that of others too."""
    section = Section("recurrence")
    n_others = counterparts(kind)
    section.group = "isomorphism"
    section.add("jobs", "jobs of six and more stages", len(kind), "count")
    section.add("classes", "different DAGs among them", len(np.unique(kind)), "count")
    for n in COUNTERPARTS:
        words = "at least one other" if n == 1 else f"at least {n} others"
        section.share(f"alike_{n}", f"isomorphic to {words}", n_others >= n)
    return section.found


def class_table(kind: I8) -> pa.Table:
    """Return how many jobs have how many counterparts."""
    number, n = np.unique(counterparts(kind), return_counts=True)
    share = n[::-1].cumsum()[::-1] / max(len(kind), 1)
    return pa.table({"counterparts": number, "n": n, "at_least": share})


def periodic_table(data: Dataset, kind: I8) -> pa.Table:
    """Return the jobs in periodic groups."""
    assert data.workload is not None
    rows = data.large_rows
    submit_s = values(data.workload.jobs, "submit_s")[rows]
    request = requests(data)
    parts = []
    for period, period_s in PERIODS_S.items():
        group = periodic_groups(submit_s, kind, period_s)
        at = np.flatnonzero(group >= 0)
        at = at[np.lexsort((rows[at], submit_s[at], group[at]))]
        parts.append(
            pa.table(
                {
                    "period": pa.array([period] * len(at), pa.string()),
                    "group": group[at],
                    "job": rows[at].astype(np.int32),
                    "job_id": data.workload.jobs["job_id"].chunk(0).take(pa.array(rows[at])),
                    "submit_s": submit_s[at],
                    "request": request[at],
                }
            )
        )
    return pa.concat_tables(parts)


def periodic_measures(data: Dataset, table: pa.Table) -> list[Statistic]:
    """Share of all jobs that are in periodic groups, and how many groups."""
    section = Section("recurrence")
    section.group = "jobs of one DAG that come back (within 5 %)"
    period = np.array(table["period"].to_pylist(), dtype=object)
    for name in PERIODS_S:
        inside = period == name
        n_groups = len(np.unique(table["group"].to_numpy()[inside]))
        share = float(inside.sum()) / max(data.every.n_jobs, 1)
        key = name.replace(" ", "_")
        section.add(f"share_{key}", f"every {name}: share of all jobs", share, "share")
        section.add(f"groups_{key}", f"every {name}: groups", n_groups, "count")
    return section.found


def requests(data: Dataset) -> I8:
    """Give equal resource requests (multisets of the stages' demands) of large jobs one number."""
    assert data.workload is not None
    demand = stage_demand(data.workload)[0][data.large_stages]
    _, code = np.unique(demand, axis=0, return_inverse=True)
    mixed = _mixed(code.reshape(-1).astype(np.uint64) + np.uint64(1))
    graphs = data.large
    if not graphs.n_jobs:
        return np.empty(0, np.int64)
    total = np.add.reduceat(mixed, graphs.job_stage0[:-1])  # in any order; wraps around
    _, number = np.unique(_mixed(total), return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def recurring_variations(data: Dataset, table: pa.Table) -> list[Variation]:
    """Measure how metrics vary among runs of recurring jobs (§6.3, Fig. 9).

    Recurring are jobs of one periodic group with equal requests; stages are matched by rank.
    """
    graphs, rows = data.large, data.large_stages
    place = np.searchsorted(data.large_rows, table["job"].to_numpy())
    run_of, size = _runs(table), graphs.job_n_stages[place]
    stages = ranges(graphs.job_stage0[:-1][place], graphs.job_stage0[1:][place])
    job = np.repeat(np.arange(len(place)), graphs.job_n_stages[place])
    variations = []
    for metric, per_stage in data.stage_metrics.items():
        if metric.startswith("demand_"):
            continue  # the same, by choice
        value = per_stage[rows[stages]]
        value = value[np.lexsort((value, job))]
        variations += _matched(metric, value, run_of, size)
    return sorted(variations, key=lambda v: v.relation)


def _runs(table: pa.Table) -> I8:
    """Return the recurring job that each row of `table` is a run of."""
    keys = [
        np.unique(np.array(table["period"].to_pylist(), dtype=str), return_inverse=True)[1],
        table["group"].to_numpy(),
        table["request"].to_numpy(),
    ]
    _, run_of = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    return run_of.reshape(-1).astype(np.int64)


def _matched(metric: str, value: F8, run_of: I8, size: I8) -> list[Variation]:
    """Compare values, sorted within each row, between rows of the same run."""
    first = np.cumsum(size) - size
    order = np.argsort(run_of, kind="stable")
    again = order[1:][run_of[order[1:]] == run_of[order[:-1]]]
    before = order[:-1][run_of[order[1:]] == run_of[order[:-1]]]
    now = value[ranges(first[again], first[again] + size[again])]
    then = value[ranges(first[before], first[before] + size[before])]
    known = (now > 0) & (then > 0)
    pair = Variation("pair", metric, now[known] / then[known], int((~known).sum()))
    # one group a rank of a recurring job: its values in all runs
    rank = np.arange(len(value)) - np.repeat(first, size)
    owner = np.repeat(run_of, size)
    by_rank = np.lexsort((rank, owner))
    new = np.flatnonzero((np.diff(owner[by_rank]) != 0) | (np.diff(rank[by_rank]) != 0)) + 1
    cuts = np.concatenate([[0], new, [len(value)]]) if len(value) else np.zeros(1, np.int64)
    spread, n_left_out = set_spread(value[by_rank], cuts.astype(np.int64))
    return [pair, Variation("set", metric, spread, n_left_out)]


def _mixed(x: U8) -> U8:
    """Spread bits (the finaliser of SplitMix64), so that sums tell multisets apart."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def periodic_groups(submit_s: F8, kind: I8, period_s: float) -> I8:
    """Find groups of jobs of one kind of which each comes a period after the one before.

    A job is followed by the first one, in no group yet, within 5 %; chains of three and more count.
    """
    order = np.lexsort((submit_s, kind))
    group = np.full(len(order), -1, np.int64)
    first, last = _follower_windows(submit_s[order], kind[order], period_s)
    free = list(range(len(order) + 1))  # next place that is in no group, found by following
    place = np.full(len(order), -1, np.int64)
    n_groups = 0
    for begin in np.flatnonzero(last > first).tolist():
        if place[begin] >= 0:
            continue
        chain = [begin]
        while True:
            at = _next_free(free, int(first[chain[-1]]))
            if at >= last[chain[-1]]:
                break
            chain.append(at)
        if len(chain) >= LEAST:
            for at in chain:
                place[at] = n_groups
                free[at] = at + 1
            n_groups += 1
    group[order] = place
    return group


def _follower_windows(submit_s: F8, kind: I8, period_s: float) -> tuple[I8, I8]:
    """Return the places, first and one past the last, of the jobs that could follow each job."""
    n = len(submit_s)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cuts = np.flatnonzero(np.diff(kind)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True):
        if end - begin >= LEAST:
            times_s = submit_s[begin:end]
            early, late = (1 - TOLERANCE) * period_s, (1 + TOLERANCE) * period_s
            first[begin:end] = begin + np.searchsorted(times_s, times_s + early, side="left")
            last[begin:end] = begin + np.searchsorted(times_s, times_s + late, side="right")
    return first, last


def _next_free(free: list[int], at: int) -> int:
    """Follow `free` from `at` to a place that leads to itself, and shorten the way."""
    end = at
    while free[end] != end:
        end = free[end]
    while free[at] != end:
        free[at], at = end, free[at]
    return end
