"""The heaviest jobs: they come together, and are unlike what their users ran before.

A few of them have most of the work, so that when they come, and what history says of them, makes
the mean completion time.
"""

from __future__ import annotations

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.synth.recurring.tables import NEAR_TURNS, heaviest

_TILTS = np.linspace(-4.0, 4.0, 65)


def groups_of(rows: I8) -> I8:
    """Return the group of each of some rows, which ascend: those near each other are one."""
    return np.cumsum(np.diff(rows, prepend=rows[:1]) > NEAR_TURNS)


def unlike(user: I8, mean_s: F8, weight: F8, of: I8, own_s: F8, work_s: F8, n_users: int) -> float:
    """Return the mean logarithm, by work, of a user's mean task duration over that of jobs.

    Parameters
    ----------
    user, mean_s, weight : ndarray
        Runs of the past, and how often each counts.
    of, own_s, work_s : ndarray
        User, mean task duration and work of the jobs; those of users without a past don't count.
    n_users : int
        How many users there are.

    Returns
    -------
    float
        NaN where no job counts.
    """
    runs = np.bincount(user, weight, n_users)
    total_s = np.bincount(user, weight * mean_s, n_users)
    has = (runs[of] > 0) & (own_s > 0)
    if not has.any():
        return float("nan")
    of = of[has]
    off = maths.log(total_s[of] / runs[of] / own_s[has])
    return float((off * work_s[has]).sum() / work_s[has].sum())


def gathered(work_s: F8, user: I8, together: tuple[float, float, float], seed: int) -> I8:
    """Return an order of jobs in which the heaviest come together as told, the others as they do.

    Groups are of one user where they can be, and no other of the heaviest is near them.
    """
    rows = heaviest(work_s)
    rng = stream(seed, "recurring", "together")
    n, n_jobs = len(rows), len(work_s)
    n_near, n_groups = round(together[0] * n), round(together[2] * n)
    if n_near < 2 or n_groups < 1:
        return np.arange(n_jobs)
    near = _chosen(work_s[rows], n_near, together[1], rng.standard_normal(n))
    turn = rng.permutation(int(user.max()) + 1)
    mine = rng.permutation(rows[near])
    mine = mine[np.argsort(turn[user[mine]], kind="stable")]
    n_groups = min(n_groups, n_near // 2)
    more = np.bincount(rng.integers(0, n_groups, n_near - 2 * n_groups), minlength=n_groups)
    parts = np.split(mine, np.cumsum(2 + more)[:-1])
    items = [*parts, *(rows[~near][:, None])]
    step = [
        np.cumsum([0, *(1 + (rng.random(len(each) - 1) ** 2 * (NEAR_TURNS - 1)).astype(int))])
        for each in items
    ]
    spans = np.array([each[-1] + 1 for each in step])
    order = rng.permutation(len(items))
    apart = int(np.clip((n_jobs - spans.sum()) // len(items), 0, NEAR_TURNS))
    room = n_jobs - int(spans.sum()) - apart * (len(items) - 1)
    if room < 0:
        return np.arange(n_jobs)
    begin = np.sort(rng.integers(0, room + 1, len(items)))
    begin += np.cumsum(np.concatenate([[0], spans[order][:-1] + apart]))
    places = np.concatenate([first + step[item] for first, item in zip(begin, order, strict=True)])
    heavy = np.concatenate([items[item] for item in order])
    found = np.full(n_jobs, -1)
    found[places] = heavy
    found[found < 0] = np.setdiff1d(np.arange(n_jobs), rows)
    return found


def _chosen(
    work_s: F8, n: int, share: float, noise: F8
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Choose `n` jobs at random that have about this share of the work."""
    log_s = maths.log(work_s)
    log_s = (log_s - log_s.mean()) / max(float(log_s.std()), 1e-12)
    picks = [np.argsort(-(tilt * log_s + noise), kind="stable")[:n] for tilt in _TILTS]
    off = [abs(float(work_s[pick].sum() / work_s.sum()) - share) for pick in picks]
    chosen = np.zeros(len(work_s), dtype=np.bool_)
    chosen[picks[int(np.argmin(off))]] = True
    return chosen
