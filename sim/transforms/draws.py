"""Bootstrap of a log: its weeks, days, hours or users drawn anew."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, offsets, ranges
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.random import stream
from sim.transforms.parts import repeat_jobs
from sim.workload.tables import take_rows, values, with_column
from sim.workload.workload import Workload

BLOCKS_S = {"week": 604_800.0, "day": 86_400.0, "hour": 3_600.0}
"""Length of a block of time, s; longest first."""
MIN_BLOCKS = 8
"""Smallest number of blocks of a log: with fewer, their spread says little of the next log's."""
MAX_LARGEST = 1 / MIN_BLOCKS
"""Largest share of the jobs that may depend on each other: it is drawn as a whole, or not."""
MAX_LONGER = 0.1
"""Largest share of the jobs that may be of components longer than ``1 / MIN_BLOCKS`` of the log."""


@checked
def bootstrap(
    workload: Workload,
    by: Literal["auto", "week", "day", "hour", "user"] = "auto",
    seed: int = 0,
) -> Workload:
    """Draw blocks of a log with replacement, as many as it has.

    Blocks of time are contiguous, and are laid one after the other in the order drawn; a job keeps
    its time within its block. So bursts, the correlation of successive jobs and the course of a day
    (of a week, by weeks) stay as they are: the bootstrap of non-overlapping blocks (Carlstein,
    Annals of Statistics 14, 1986; Künsch, Annals of Statistics 17, 1989). The last block is as
    short as the log ends, and is drawn like any other, so that every job is equally likely. Jobs
    that depend on each other, over any number of jobs between them (a component), are drawn as a
    whole, with the block in which the first is submitted; their times to each other stay, so some
    come beside the jobs of the next blocks, as in the log. With
    users, all jobs of a drawn user come at their own times (Davison and Hinkley, *Bootstrap Methods
    and their Application*, 1997, §3.8): for a log whose users are the sample.

    The spread of a metric over draws estimates its standard error: by how much the metric of
    another log of this length would differ.

    Parameters
    ----------
    workload : Workload
        A log without downloads.
    by : {"auto", "week", "day", "hour", "user"}
        The blocks; ``auto``: the longest of which the log has at least `MIN_BLOCKS`.
    seed : int
        Number of the draw.

    Raises
    ------
    InputError
        If there are fewer than `MIN_BLOCKS` blocks, or a component has more than `MAX_LARGEST` of
        the jobs, or `MAX_LONGER` of the jobs are of components as long as that part of the log, or
        one is of several users, which are drawn.
    """
    if workload.downloads.num_rows:
        raise InputError(
            "a bootstrap draws jobs without their downloads; use a workload without downloads"
        )
    component = _components(workload)
    submit_s = values(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    block = _longest(span_s) if by == "auto" else by
    if block == "user":
        rows, drawn_s, draw, n_blocks = _draw_users(workload, submit_s, component, seed)
    else:
        n_blocks = _n_blocks(span_s, BLOCKS_S[block])
        _check(block, n_blocks, span_s)
        since_s = submit_s - submit_s[0]
        _check_components(component, since_s)
        begin_s = np.full(workload.n_jobs, np.inf)
        np.minimum.at(begin_s, component, since_s)
        blocks = (BLOCKS_S[block], n_blocks, span_s)
        rows, drawn_s, draw = _draw_times(since_s, begin_s[component], blocks, seed)
    if not len(rows):
        raise InputError(f"the {block}s of draw {seed} have no job; give longer ones (seeds_block)")
    order = np.argsort(drawn_s, kind="stable")  # components reach beyond their block
    rows, drawn_s, draw = rows[order], drawn_s[order], draw[order]
    copy = np.ones(len(rows), dtype=bool)
    copy[np.unique(rows, return_index=True)[1]] = False
    note: dict[str, object] = {"bootstrap": block, "blocks": n_blocks, "seed": int(seed)}
    edges = _drawn_edges(workload, rows, draw)
    return repeat_jobs(workload, rows, copy, drawn_s, note, edges)


def _components(workload: Workload) -> I4:
    """Return the number of each job's component: of those that depend on each other."""
    n_jobs = workload.n_jobs
    if not workload.job_edges.num_rows:
        return np.arange(n_jobs, dtype=np.int32)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = tuple(values(workload.job_edges, key) for key in ("upstream", "downstream"))
    ones = np.ones(len(ends[0]), np.int8)
    _, component = connected_components(csr_array((ones, ends), (n_jobs, n_jobs)), directed=False)
    result: I4 = component
    return result


def _check_components(component: I4, since_s: F8) -> None:
    n_jobs = np.bincount(component)
    largest = float(n_jobs.max()) / len(component)
    if largest > MAX_LARGEST and n_jobs.max() > 1:
        raise InputError(
            f"{100 * largest:.0f} % of the jobs depend on each other, over any number of jobs: a "
            f"bootstrap draws them all or none, and needs at most {100 * MAX_LARGEST:g} %; "
            "simulate the log as it is, or a longer one",
            rule="range",
        )
    begin_s, end_s = np.full(len(n_jobs), np.inf), np.zeros(len(n_jobs))
    np.minimum.at(begin_s, component, since_s)
    np.maximum.at(end_s, component, since_s)
    longer = float(n_jobs[end_s - begin_s > since_s[-1] * MAX_LARGEST].sum()) / len(component)
    if longer > MAX_LONGER:
        raise InputError(
            f"{100 * longer:.0f} % of the jobs are of dependent jobs that are submitted over more "
            f"than {100 * MAX_LARGEST:g} % of the log, which a bootstrap draws as a whole; at most "
            f"{100 * MAX_LONGER:g} % may be: simulate the log as it is, or a longer one",
            rule="range",
        )


def _drawn_edges(workload: Workload, rows: I8, draw: I8) -> pa.Table:
    """Return the dependencies between the drawn jobs: in each draw those of the log."""
    edges = workload.job_edges
    if not edges.num_rows:
        return edges
    upstream, downstream = (values(edges, key) for key in ("upstream", "downstream"))
    by_job = np.argsort(downstream, kind="stable")
    edge0 = offsets(np.bincount(downstream, minlength=workload.n_jobs))
    n_edges = np.diff(edge0)[rows]
    edge = by_job[ranges(edge0[rows], edge0[rows + 1])]
    reader = np.repeat(np.arange(len(rows)), n_edges)
    key = draw * workload.n_jobs + rows
    order = np.argsort(key, kind="stable")
    upstream_key = draw[reader] * workload.n_jobs + upstream[edge]
    writer = order[np.searchsorted(key[order], upstream_key)]
    table = with_column(take_rows(edges, edge), "upstream", writer.astype(np.int32))
    return with_column(table, "downstream", reader.astype(np.int32))


def _longest(span_s: float) -> str:
    """Choose the longest block of which there are enough; the shortest if there are not."""
    enough = [by for by, block_s in BLOCKS_S.items() if _n_blocks(span_s, block_s) >= MIN_BLOCKS]
    return enough[0] if enough else [*BLOCKS_S][-1]


def _n_blocks(span_s: float, block_s: float) -> int:
    return int(span_s // block_s) + 1


def _check(by: str, n_blocks: int, span_s: float) -> None:
    if n_blocks < MIN_BLOCKS:
        raise InputError(
            f"the log has {n_blocks} {by}s, of {span_s / 3600:.3g} hours in all; a bootstrap needs "
            f"at least {MIN_BLOCKS}: give seeds_block a shorter block ({', '.join(BLOCKS_S)}, "
            "user), or a longer log",
            rule="range",
        )


def _draw_times(
    since_s: F8, begin_s: F8, blocks: tuple[float, int, float], seed: int
) -> tuple[I8, F8, I8]:
    """Return the jobs of the drawn blocks, when each is submitted, and the number of its draw.

    `begin_s` is when the first job of each one's component is submitted; `blocks` are their length
    (s), their number, and the length of the log (s).
    """
    block_s, n_blocks, span_s = blocks
    block = (begin_s // block_s).astype(np.int64)
    by_block = np.argsort(block, kind="stable")
    first = np.searchsorted(block[by_block], np.arange(n_blocks + 1))
    drawn = stream(seed, "bootstrap", "blocks").integers(n_blocks, size=n_blocks)
    length_s = np.full(n_blocks, block_s)
    length_s[-1] = span_s - (n_blocks - 1) * block_s
    laid_s = np.concatenate([[0.0], length_s[drawn].cumsum()[:-1]])
    n_jobs = first[drawn + 1] - first[drawn]
    rows = by_block[ranges(first[drawn], first[drawn + 1])]
    within_s = since_s[rows] - np.repeat(drawn * block_s, n_jobs)
    draw = np.repeat(np.arange(n_blocks), n_jobs)
    return rows, np.repeat(laid_s, n_jobs) + within_s, draw


def _draw_users(
    workload: Workload, submit_s: F8, component: I4, seed: int
) -> tuple[I8, F8, I8, int]:
    """Return the jobs of the drawn users, when each is submitted, the number of its draw, and n."""
    user = workload.columns.job_user
    users = np.unique(user)
    first_user = user[np.unique(component, return_index=True)[1]]
    if (user != first_user[component]).any():
        raise InputError(
            "jobs of several users depend on each other, so users can't be drawn; give "
            f"seeds_block={', '.join(BLOCKS_S)}",
            rule="range",
        )
    if len(users) < MIN_BLOCKS:
        raise InputError(
            f"the log has {len(users)} users; a bootstrap needs at least {MIN_BLOCKS}: give "
            f"seeds_block={', '.join(BLOCKS_S)}",
            rule="range",
        )
    drawn = stream(seed, "bootstrap", "users").integers(len(users), size=len(users))
    jobs = [np.flatnonzero(user == users[k]) for k in drawn.tolist()]
    rows = np.concatenate(jobs)
    draw = np.repeat(np.arange(len(jobs)), [len(some) for some in jobs])
    return rows, submit_s[rows], draw, len(users)
