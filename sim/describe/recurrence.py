"""Recurrence: isomorphic jobs, periodic jobs, and variation among their runs (SoCC 2019, §6)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, U8, ranges
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic
from sim.describe.variability import Variation, set_variation
from sim.workload.columns import stage_demand
from sim.workload.tables import values

PERIODS_S = {"15 min": 900.0, "1 h": 3_600.0, "1 day": 86_400.0}
"""The three common periods of production jobs in the paper."""
TOLERANCE = 0.05
"""Maximum deviation of an interval from its period, as a share of it."""
MIN_JOBS = 3
"""Minimum number of jobs in a group: two equal intervals."""
COUNTERPARTS = (1, 13, 117)
"""Numbers of isomorphic jobs in the paper: 99.52, 90.19 and 75.01 % of jobs have at least these."""


def counterparts(kind: I8) -> I8:
    """Count the other jobs of each job's isomorphism class, (J,)."""
    return np.bincount(kind, minlength=1)[kind] - 1


def class_measures(kind: I8) -> list[Statistic]:
    """Compute the shares of jobs (of six or more stages) with isomorphic counterparts."""
    section = Section("recurrence")
    n_others = counterparts(kind)
    section.group = "isomorphism"
    section.add("jobs", "jobs of six or more stages", len(kind), "count")
    section.add("classes", "different DAGs among them", len(np.unique(kind)), "count")
    for n in COUNTERPARTS:
        words = "at least one other" if n == 1 else f"at least {n} others"
        section.share(f"alike_{n}", f"isomorphic to {words}", n_others >= n)
    return section.statistics


def class_table(kind: I8) -> pa.Table:
    """Build the distribution of the number of counterparts."""
    number, n = np.unique(counterparts(kind), return_counts=True)
    share = n[::-1].cumsum()[::-1] / max(len(kind), 1)
    return pa.table({"counterparts": number, "n": n, "at_least": share})


def periodic_table(data: Dataset, kind: I8) -> pa.Table:
    """Build the table of the jobs in periodic groups."""
    assert data.workload is not None
    rows = data.large_rows
    submit_s = values(data.workload.jobs, "submit_s")[rows]
    request = request_codes(data)
    parts = []
    for period, period_s in PERIODS_S.items():
        group = periodic_groups(submit_s, kind, period_s)
        members = np.flatnonzero(group >= 0)
        members = members[np.lexsort((rows[members], submit_s[members], group[members]))]
        parts.append(
            pa.table(
                {
                    "period": pa.array([period] * len(members), pa.string()),
                    "group": group[members],
                    "job": rows[members].astype(np.int32),
                    "job_id": data.workload.jobs["job_id"].chunk(0).take(pa.array(rows[members])),
                    "submit_s": submit_s[members],
                    "request": request[members],
                }
            )
        )
    return pa.concat_tables(parts)


def periodic_measures(data: Dataset, table: pa.Table) -> list[Statistic]:
    """Compute the share of jobs in periodic groups, and the number of groups."""
    section = Section("recurrence")
    section.group = "periodic jobs of the same DAG (intervals within 5 %)"
    period = np.array(table["period"].to_pylist(), dtype=object)
    for name in PERIODS_S:
        inside = period == name
        n_groups = len(np.unique(table["group"].to_numpy()[inside]))
        share = float(inside.sum()) / max(data.every.n_jobs, 1)
        key = name.replace(" ", "_")
        section.add(f"share_{key}", f"every {name}: share of all jobs", share, "share")
        section.add(f"groups_{key}", f"every {name}: groups", n_groups, "count")
    return section.statistics


def request_codes(data: Dataset) -> I8:
    """Return codes of the large jobs' resource requests (multisets of their stages' demands)."""
    assert data.workload is not None
    demand = stage_demand(data.workload)[0][data.large_stages]
    _, code = np.unique(demand, axis=0, return_inverse=True)
    mixed = _mix_bits(code.reshape(-1).astype(np.uint64) + np.uint64(1))
    graphs = data.large
    if not graphs.n_jobs:
        return np.empty(0, np.int64)
    total = np.add.reduceat(mixed, graphs.job_stage0[:-1])  # in any order; wraps around
    _, number = np.unique(_mix_bits(total), return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def recurring_variations(data: Dataset, table: pa.Table) -> list[Variation]:
    """Compute the variation of metrics among runs of recurring jobs (§6.3, Fig. 9).

    Jobs of one periodic group with equal requests are runs of a recurring job; stages are matched
    by rank.
    """
    graphs, rows = data.large, data.large_stages
    index = np.searchsorted(data.large_rows, table["job"].to_numpy())
    run_of, size = _runs(table), graphs.job_n_stages[index]
    stages = ranges(graphs.job_stage0[:-1][index], graphs.job_stage0[1:][index])
    job = np.repeat(np.arange(len(index)), graphs.job_n_stages[index])
    variations = []
    for metric, per_stage in data.stage_metrics.items():
        if metric.startswith("demand_"):
            continue  # equal by the choice of runs
        value = per_stage[rows[stages]]
        value = value[np.lexsort((value, job))]
        variations += _compare_runs(metric, value, run_of, size)
    return sorted(variations, key=lambda v: v.relation)


def _runs(table: pa.Table) -> I8:
    """Return the code of the recurring job that each row of `table` is a run of."""
    keys = [
        np.unique(np.array(table["period"].to_pylist(), dtype=str), return_inverse=True)[1],
        table["group"].to_numpy(),
        table["request"].to_numpy(),
    ]
    _, run_of = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    return run_of.reshape(-1).astype(np.int64)


def _compare_runs(metric: str, value: F8, run_of: I8, size: I8) -> list[Variation]:
    """Compare values, sorted within each row, between rows of the same run."""
    first = np.cumsum(size) - size
    order = np.argsort(run_of, kind="stable")
    later = order[1:][run_of[order[1:]] == run_of[order[:-1]]]
    earlier = order[:-1][run_of[order[1:]] == run_of[order[:-1]]]
    later_value = value[ranges(first[later], first[later] + size[later])]
    earlier_value = value[ranges(first[earlier], first[earlier] + size[earlier])]
    known = (later_value > 0) & (earlier_value > 0)
    pair = Variation("pair", metric, later_value[known] / earlier_value[known], int((~known).sum()))
    # one group per rank of a recurring job: its values in all runs
    rank = np.arange(len(value)) - np.repeat(first, size)
    owner = np.repeat(run_of, size)
    by_rank = np.lexsort((rank, owner))
    group_begin = np.flatnonzero((np.diff(owner[by_rank]) != 0) | (np.diff(rank[by_rank]) != 0)) + 1
    cuts = np.concatenate([[0], group_begin, [len(value)]]) if len(value) else np.zeros(1, np.int64)
    spread, n_left_out = set_variation(value[by_rank], cuts.astype(np.int64))
    return [pair, Variation("set", metric, spread, n_left_out)]


def _mix_bits(x: U8) -> U8:
    """Mix bits (the finaliser of SplitMix64), so that different multisets have different sums."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def periodic_groups(submit_s: F8, kind: I8, period_s: float) -> I8:
    """Find chains of jobs of one class that are each submitted a period after the previous one.

    A job's follower is the first ungrouped job within 5 % of the period; chains of three or more
    jobs are groups.
    """
    order = np.lexsort((submit_s, kind))
    group = np.full(len(order), -1, np.int64)
    first, last = _follower_windows(submit_s[order], kind[order], period_s)
    free = list(range(len(order) + 1))  # union-find: leads to the next ungrouped job
    chain_of = np.full(len(order), -1, np.int64)
    n_groups = 0
    for begin in np.flatnonzero(last > first).tolist():
        if chain_of[begin] >= 0:
            continue
        chain = [begin]
        while True:
            follower = _next_free(free, int(first[chain[-1]]))
            if follower >= last[chain[-1]]:
                break
            chain.append(follower)
        if len(chain) >= MIN_JOBS:
            for follower in chain:
                chain_of[follower] = n_groups
                free[follower] = follower + 1
            n_groups += 1
    group[order] = chain_of
    return group


def _follower_windows(submit_s: F8, kind: I8, period_s: float) -> tuple[I8, I8]:
    """Return the range [first, last) of the jobs that could follow each job."""
    n = len(submit_s)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cuts = np.flatnonzero(np.diff(kind)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True):
        if end - begin >= MIN_JOBS:
            times_s = submit_s[begin:end]
            early, late = (1 - TOLERANCE) * period_s, (1 + TOLERANCE) * period_s
            first[begin:end] = begin + np.searchsorted(times_s, times_s + early, side="left")
            last[begin:end] = begin + np.searchsorted(times_s, times_s + late, side="right")
    return first, last


def _next_free(free: list[int], index: int) -> int:
    """Find the next ungrouped job from `index` on, with path compression (union-find)."""
    end = index
    while free[end] != end:
        end = free[end]
    while free[index] != end:
        free[index], index = end, free[index]
    return end
