"""Replay of a log: the line of waiting jobs, in their order, beside the free capacity."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I8
from sim.base.jit import jit, part

END, ENTER, START, BEGIN = 0, 1, 2, 3
"""Kinds of events, in their order at one instant: a use ends, a job enters the line, a job starts,
a use begins."""


@jit
def replay_line(
    time: F8,
    kind: I1,
    item: I8,
    place: I8,
    need: I8,
    use: I8,
    use0: I8,
    use_node: I8,
    use_share: I8,
    n_nodes: I8,
    per_node: I8,
    state_free: I8,
    state_node_free: I8,
    out_lag: F8,
    out_spell: F8,
    out_spell_job: I8,
    out_wait: F8,
) -> int:
    """Measure how long jobs at the front of the line fit before they start.

    The front are the first waiting jobs that fit all together, and each of them on enough nodes, if
    nodes are known. A job's lag is the time from when it
    came into the front, to stay there, to its start. A spell is a period in which one and the same
    job is first in line and fits.

    Parameters
    ----------
    time, kind, item : (E,) arrays
        Events, sorted by time, kind and item: time, s; kind; the job of `ENTER` and `START`, else
        the use.
    place : (J,) int64
        Order of the jobs in line, the first least; none twice.
    need : (J, R) int64
        Room that each job needs to start.
    use : (U, R) int64
        Room that each use takes.
    use0 : (U+1,) int64
        First of the pairs of use and node of each use.
    use_node, use_share : (P,) and (P, R) int64
        The node of a pair, and the room that the use takes there.
    n_nodes, per_node : (J,) and (J, R) int64
        Number of nodes that each job needs to start, and the room on each of them.
    state_free : (R,) int64, overwritten
        Free room; at first all of it.
    state_node_free : (N, R) int64, overwritten
        The same by node; N is 0 if no nodes are known.
    out_lag : (J,) float64
        Lag of each job, s; NaN for a job that was not in the front as it started.
    out_spell, out_spell_job : (E,) float64 and int64
        Length of each spell, s, and its job.
    out_wait : (1,) float64
        Time in which some job waits, s.

    Returns
    -------
    int
        Number of spells.
    """
    n_jobs, n_resources = need.shape
    end = n_jobs  # anchor of the line, a list linked both ways
    after, before = np.empty(n_jobs + 1, np.int64), np.empty(n_jobs + 1, np.int64)
    after[end], before[end] = end, end
    since = np.empty(n_jobs, np.float64)  # when a job came into the front; NaN outside it
    front, last_front = np.empty(n_jobs, np.int64), np.empty(n_jobs, np.int64)
    seen = np.zeros(n_jobs, np.int64)  # round in which a job was last in the front
    left = np.empty(n_resources, np.int64)
    for row in range(n_jobs):
        since[row] = out_lag[row] = np.nan
    out_wait[0] = 0.0
    n_front, n_spells, head, head_s, wait_s, rounds, e = 0, 0, -1, 0.0, 0.0, 0, 0
    while e < len(time):
        now = time[e]
        for last_kind in (ENTER, BEGIN):
            while e < len(time) and time[e] == now and kind[e] <= last_kind:
                j = item[e]
                if kind[e] == END:
                    for r in range(n_resources):
                        state_free[r] += use[j, r]
                        for p in range(use0[j], use0[j + 1]):
                            state_node_free[use_node[p], r] += use_share[p, r]
                elif kind[e] == BEGIN:
                    for r in range(n_resources):
                        state_free[r] -= use[j, r]
                        for p in range(use0[j], use0[j + 1]):
                            state_node_free[use_node[p], r] -= use_share[p, r]
                elif kind[e] == ENTER:
                    if after[end] == end:
                        wait_s = now
                    k = before[end]
                    while k != end and place[k] > place[j]:
                        k = before[k]
                    before[j], after[j] = k, after[k]
                    before[after[j]] = j
                    after[k] = j
                else:
                    out_lag[j] = now - since[j]
                    after[before[j]], before[after[j]] = after[j], before[j]
                    if after[end] == end:
                        out_wait[0] += now - wait_s
                e += 1
            front, last_front = last_front, front
            n_last, n_front = n_front, 0
            rounds += 1
            for r in range(n_resources):
                left[r] = state_free[r]
            j = after[end]
            while j != end:
                fits = True
                for r in range(n_resources):
                    left[r] -= need[j, r]
                    fits = fits and left[r] >= 0
                if not fits or not fits_on_nodes(int(n_nodes[j]), per_node[j], state_node_free):
                    break
                if np.isnan(since[j]):
                    since[j] = now
                seen[j] = rounds
                front[n_front] = j
                n_front += 1
                j = after[j]
            for i in range(n_last):
                if seen[last_front[i]] != rounds:
                    since[last_front[i]] = np.nan
            new_head = front[0] if n_front else -1
            if new_head != head:
                if head >= 0 and now > head_s:
                    out_spell[n_spells], out_spell_job[n_spells] = now - head_s, head
                    n_spells += 1
                head, head_s = new_head, now
    return n_spells


@part
def fits_on_nodes(n_nodes: int, per_node: I8, node_free: I8) -> bool:
    """Check that enough nodes have the room that a job needs on each; True if none is known."""
    n_found = 0
    for n in range(len(node_free)):
        fits = True
        for r in range(len(per_node)):
            fits = fits and node_free[n, r] >= per_node[r]
        n_found += fits
        if n_found >= n_nodes:
            return True
    return len(node_free) == 0 or n_found >= n_nodes
