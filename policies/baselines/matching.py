"""Matching of least cost of jobs to workers of kinds of machines and positions from the end."""

from __future__ import annotations

import numpy as np

from policies.baselines.kinds import Kinds
from policies.baselines.rounds import NONE
from sim.base.arrays import F8, I8

SOON_S = 1e-6
"""Time within which a job is expected to end that runs for longer than expected, s."""
NEVER = 1e18
"""Cost of a pair that is not allowed."""


def matched(kinds: Kinds, rows: I8, whole_s: F8, taken: list[tuple[F8, F8]]) -> I8:
    """Return the kind on which each of the jobs `rows` starts now; NONE if it is to wait.

    Parameters
    ----------
    kinds : Kinds
    rows : (n,) int64
    whole_s : (n,) float64
        Their run times at speed 1, s.
    taken : list
        Of each kind, for how much longer each job runs there, s, and its part of the kind.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    n_kinds = len(taken)
    size = np.maximum(kinds.share[rows][:, :n_kinds].mean(axis=0), 1e-9)  # of a worker
    n, pairs = len(rows), zip(taken, size.tolist(), strict=True)
    workers = [_free_at(*on_kind, part, n) for on_kind, part in pairs]
    kind = np.repeat(np.arange(n_kinds), [len(free) for free in workers])
    free_at = np.concatenate(workers)
    speed = kinds.speed[rows][:, kind]
    n_each = np.maximum(kinds.share[rows][:, :n_kinds] / size, 1.0)[:, kind]
    run_s = np.where(speed > 0, whole_s[:, None] * n_each / np.maximum(speed, 1e-9), NEVER)
    allowed = np.where(speed > 0, speed, np.nan)
    ratio = float(np.nanmax(np.nanmax(allowed, axis=1) / np.nanmin(allowed, axis=1)))
    n_positions = min(len(rows), int((len(rows) // len(kind) + 1) * ratio) + 1)
    cost = [np.minimum(p * run_s + free_at, NEVER) for p in range(1, n_positions + 1)]
    i, column = linear_sum_assignment(np.hstack(cost))
    worker, position = column % len(kind), column // len(kind)
    starts = np.full(len(rows), NONE, np.int64)
    for w in np.flatnonzero(free_at == 0).tolist():
        own = np.flatnonzero((worker == w) & (speed[i, worker] > 0))
        if len(own):
            starts[i[own[np.argmax(position[own])]]] = kind[w]
    return starts


def parts_taken(kinds: Kinds, runs: I8, option: I8, left_s: F8) -> list[tuple[F8, F8]]:
    """Return for how much longer jobs run on each kind, s, and their parts of it.

    The jobs `runs` run by an `option` each, for `left_s` more; 0 or less is soon.
    """
    left_s = np.maximum(left_s, SOON_S)
    on_kind = [kinds.takes[option, k] > 0 for k in range(kinds.takes.shape[1])]
    return [(left_s[on], kinds.share[runs[on], option[on]]) for on in on_kind]


def _free_at(left_s: F8, share: F8, size: float, limit: int) -> F8:
    """Return when each worker of a kind is free, s from now; a worker takes a part of `size`.

    `left_s` and `share` are those of the jobs that run there. Only the first `limit` to be free, as
    no more jobs are matched.
    """
    n_each = np.maximum(np.rint(share / size), 1.0)
    n_free = max(int(1.0 / size + 1e-9) - int(n_each.sum()), 0)
    busy = np.sort(np.repeat(left_s, np.minimum(n_each, limit).astype(np.int64)))
    return np.concatenate([np.zeros(min(n_free, limit)), busy])[:limit]
