"""The heaviest jobs: they arrive in groups and differ from their users' history.

A few of them have most of the work, so that their arrival times, and the predictions that history
gives for them, determine the mean completion time.
"""

from __future__ import annotations

import numpy as np

from policies.slearn.recurring.tables import NEAR_JOBS, heaviest
from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream

_TILTS = np.linspace(-4.0, 4.0, 65)


def group_rows(rows: I8) -> I8:
    """Return the group of each of some ascending rows; near rows (`NEAR_JOBS`) share one."""
    return np.cumsum(np.diff(rows, prepend=rows[:1]) > NEAR_JOBS)


def history_log_ratio(
    user: I8, mean_s: F8, weight: F8, job_user: I8, job_mean_s: F8, job_work_s: F8, n_users: int
) -> float:
    """Return the mean logarithm of users' past mean task duration over that of their jobs.

    Parameters
    ----------
    user, mean_s, weight : ndarray
        User and mean task duration of past runs, and their weights.
    job_user, job_mean_s, job_work_s : ndarray
        User, mean task duration and work of the jobs. The mean is weighted by work; jobs of users
        without a past don't count.
    n_users : int
        Number of users.

    Returns
    -------
    float
        NaN where no job counts.
    """
    n_runs = np.bincount(user, weight, n_users)
    total_s = np.bincount(user, weight * mean_s, n_users)
    counts = (n_runs[job_user] > 0) & (job_mean_s > 0)
    if not counts.any():
        return float("nan")
    job_user = job_user[counts]
    log_ratio = maths.log(total_s[job_user] / n_runs[job_user] / job_mean_s[counts])
    return float((log_ratio * job_work_s[counts]).sum() / job_work_s[counts].sum())


def group_heaviest(work_s: F8, user: I8, together: tuple[float, float, float], seed: int) -> I8:
    """Return an order of jobs in which the heaviest arrive in groups; the others keep their order.

    `together` is `Tables.together`. The jobs of a group have one user where possible, and no other
    of the heaviest jobs is near them.
    """
    rows = heaviest(work_s)
    rng = stream(seed, "recurring", "together")
    n, n_jobs = len(rows), len(work_s)
    n_near, n_groups = round(together[0] * n), round(together[2] * n)
    if n_near < 2 or n_groups < 1:
        return np.arange(n_jobs)
    is_near = _choose(work_s[rows], n_near, together[1], rng.standard_normal(n))
    user_order = rng.permutation(int(user.max()) + 1)
    near_rows = rng.permutation(rows[is_near])
    near_rows = near_rows[np.argsort(user_order[user[near_rows]], kind="stable")]
    n_groups = min(n_groups, n_near // 2)
    n_more = np.bincount(rng.integers(0, n_groups, n_near - 2 * n_groups), minlength=n_groups)
    groups = [*np.split(near_rows, np.cumsum(2 + n_more)[:-1]), *(rows[~is_near][:, None])]
    steps = [
        np.cumsum([0, *(1 + (rng.random(len(group) - 1) ** 2 * (NEAR_JOBS - 1)).astype(int))])
        for group in groups
    ]
    spans = np.array([step[-1] + 1 for step in steps])
    order = rng.permutation(len(groups))
    gap = int(np.clip((n_jobs - spans.sum()) // len(groups), 0, NEAR_JOBS))
    room = n_jobs - int(spans.sum()) - gap * (len(groups) - 1)
    if room < 0:
        return np.arange(n_jobs)
    begin = np.sort(rng.integers(0, room + 1, len(groups)))
    begin += np.cumsum(np.concatenate([[0], spans[order][:-1] + gap]))
    positions = np.concatenate([first + steps[i] for first, i in zip(begin, order, strict=True)])
    new_order = np.full(n_jobs, -1)
    new_order[positions] = np.concatenate([groups[i] for i in order])
    new_order[new_order < 0] = np.setdiff1d(np.arange(n_jobs), rows)
    return new_order


def _choose(work_s: F8, n: int, share: float, noise: F8) -> Mask:
    """Choose `n` random jobs that have about this share of the work."""
    log_s = maths.log(work_s)
    log_s = (log_s - log_s.mean()) / max(float(log_s.std()), 1e-12)
    picks = [np.argsort(-(tilt * log_s + noise), kind="stable")[:n] for tilt in _TILTS]
    errors = [abs(float(work_s[pick].sum() / work_s.sum()) - share) for pick in picks]
    chosen = np.zeros(len(work_s), dtype=np.bool_)
    chosen[picks[int(np.argmin(errors))]] = True
    return chosen
