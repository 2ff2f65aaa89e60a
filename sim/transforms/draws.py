"""Bootstrap of a log: its weeks, days, hours or users drawn anew."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.random import stream
from sim.transforms.parts import repeat_jobs
from sim.workload.tables import values
from sim.workload.workload import Workload

BLOCKS_S = {"week": 604_800.0, "day": 86_400.0, "hour": 3_600.0}
"""Length of a block of time, s; longest first."""
MIN_BLOCKS = 8
"""Smallest number of blocks of a log: with fewer, their spread says little of the next log's."""


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
    short as the log ends, and is drawn like any other, so that every job is equally likely. With
    users, all jobs of a drawn user come at their own times (Davison and Hinkley, *Bootstrap Methods
    and their Application*, 1997, §3.8): for a log whose users are the sample.

    The spread of a metric over draws estimates its standard error: by how much the metric of
    another log of this length would differ.

    Parameters
    ----------
    workload : Workload
        A log, whose jobs don't depend on each other.
    by : {"auto", "week", "day", "hour", "user"}
        The blocks; ``auto``: the longest of which the log has at least `MIN_BLOCKS`.
    seed : int
        Number of the draw.

    Raises
    ------
    InputError
        If there are fewer than `MIN_BLOCKS` blocks, or jobs depend on each other.
    """
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError(
            "a bootstrap draws jobs without those that they depend on; use a workload without "
            "job_edges and downloads"
        )
    submit_s = values(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    block = _longest(span_s) if by == "auto" else by
    if block == "user":
        rows, drawn_s, n_blocks = _draw_users(workload, submit_s, seed)
    else:
        n_blocks = _n_blocks(span_s, BLOCKS_S[block])
        _check(block, n_blocks, span_s)
        since_s = submit_s - submit_s[0]
        rows, drawn_s = _draw_times(since_s, BLOCKS_S[block], n_blocks, span_s, seed)
    if not len(rows):
        raise InputError(f"the {block}s of draw {seed} have no job; give longer ones (seeds_block)")
    copy = np.ones(len(rows), dtype=bool)
    copy[np.unique(rows, return_index=True)[1]] = False
    note: dict[str, object] = {"bootstrap": block, "blocks": n_blocks, "seed": int(seed)}
    return repeat_jobs(workload, rows, copy, drawn_s, note)


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
    since_s: F8, block_s: float, n_blocks: int, span_s: float, seed: int
) -> tuple[I8, F8]:
    """Return the jobs of the drawn blocks, and when each is submitted."""
    block = (since_s // block_s).astype(np.int64)
    first = np.searchsorted(block, np.arange(n_blocks + 1))
    drawn = stream(seed, "bootstrap", "blocks").integers(n_blocks, size=n_blocks)
    length_s = np.full(n_blocks, block_s)
    length_s[-1] = span_s - (n_blocks - 1) * block_s
    begin_s = np.concatenate([[0.0], length_s[drawn].cumsum()[:-1]])
    n_jobs = first[drawn + 1] - first[drawn]
    rows = np.concatenate([np.arange(first[k], first[k + 1]) for k in drawn.tolist()])
    within_s = since_s[rows] - np.repeat(drawn * block_s, n_jobs)
    return rows, np.repeat(begin_s, n_jobs) + within_s


def _draw_users(workload: Workload, submit_s: F8, seed: int) -> tuple[I8, F8, int]:
    """Return the jobs of the drawn users in the order of submission, and these times."""
    user = workload.columns.job_user
    users = np.unique(user)
    if len(users) < MIN_BLOCKS:
        raise InputError(
            f"the log has {len(users)} users; a bootstrap needs at least {MIN_BLOCKS}: give "
            f"seeds_block={', '.join(BLOCKS_S)}",
            rule="range",
        )
    drawn = stream(seed, "bootstrap", "users").integers(len(users), size=len(users))
    rows = np.concatenate([np.flatnonzero(user == users[k]) for k in drawn.tolist()])
    rows = rows[np.argsort(submit_s[rows], kind="stable")]
    return rows, submit_s[rows], len(users)
