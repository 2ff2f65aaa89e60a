"""The jobs in front of one that waits: those that hold the room, or are placed next."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sweep.questions.why.attempts import Attempts

OWN, BEFORE, EARLIER, LATER = "its own tasks", "ran already", "came before", "came later"
"""Ways of a job to be in front: it is the job itself; it took the room before the other came; or
after, and came before or after the other."""
KINDS = (OWN, BEFORE, EARLIER, LATER)

Fronts = Mapping[tuple[int, str], float]


def add(to: dict[tuple[int, str], float], more: Fronts) -> None:
    """Add seconds by job."""
    for key, seconds in more.items():
        to[key] = to.get(key, 0.0) + seconds


def holders(
    a: Attempts,
    job: int,
    host: Mask,
    resources: Mask,
    times: F8,
    mask: Mask,
    rows: Mask | None = None,
) -> Fronts:
    """Share some pieces of a wait between the attempts that held room meanwhile.

    Parameters
    ----------
    a : Attempts
        Of the run.
    job : int
        The job that waited.
    host : (M,) bool
        Machines that it may use.
    resources : (F,) bool
        Resources that count, each as a share of what those machines have.
    times : (K+1,) float64
        Begins of pieces, and the end of the last, s.
    mask : (K,) bool
        Pieces that count.
    rows : (N,) bool, optional
        Attempts that count; all by default.

    Returns
    -------
    Fronts
        Seconds by job and kind; they sum to the pieces' seconds, if anybody held anything.
    """
    spans = np.where(mask, np.diff(times), 0.0)
    total_s = float(spans.sum())
    if not total_s:
        return {}
    before = np.concatenate([[0.0], np.cumsum(spans)])
    meets = host[a.machine] & (a.placed_s < times[-1]) & (a.held_s > times[0])
    if rows is not None:
        meets &= rows
    present = np.flatnonzero(meets)
    seconds = np.interp(a.held_s[present], times, before) - np.interp(
        a.placed_s[present], times, before
    )
    total = np.maximum(a.capacity[host].sum(axis=0), 1)
    share = (a.demand / total)[:, resources].sum(axis=1)
    amounts = share[a.stage[present]] * a.count[present] * seconds
    if not amounts.sum():
        return {}
    return _by_pair(a, job, present, amounts * (total_s / amounts.sum()))


def _kinds(a: Attempts, job: int, rows: I8) -> I8:
    came_s, other = a.came_s, a.job[rows]
    is_later = came_s[other] > came_s[job]
    is_later |= (came_s[other] == came_s[job]) & (other > job)
    kind = np.where(is_later, KINDS.index(LATER), KINDS.index(EARLIER))
    kind[a.placed_s[rows] < came_s[job]] = KINDS.index(BEFORE)
    kind[other == job] = KINDS.index(OWN)
    return kind


def next_placed(a: Attempts, job: int, times: F8, mask: Mask) -> Fronts:
    """Give each piece to the job that was placed next, of those that were there already.

    A piece that the waiting job itself ends is nobody's.
    """
    pieces = np.flatnonzero(mask)
    rows, came_s = a.by_placement, a.came_s
    placed = a.placed_s[rows]
    last = int(np.searchsorted(placed, times[-1], side="left"))
    position = np.searchsorted(placed, times[pieces + 1], side="left")
    is_open = position < last
    while is_open.any():  # pass over those that came in the piece or after it
        other = a.job[rows[np.minimum(position, last - 1)]]
        is_open &= (other != job) & (came_s[other] > times[pieces])
        position[is_open] += 1
        is_open &= position < last
    is_found = position < last
    next_rows = rows[position[is_found]]
    seconds = np.diff(times)[pieces[is_found]]
    is_other = a.job[next_rows] != job
    return _by_pair(a, job, next_rows[is_other], seconds[is_other])


def _by_pair(a: Attempts, job: int, rows: I8, seconds: F8) -> Fronts:
    """Sum seconds of attempts by job and kind."""
    by_pair = np.bincount(a.job[rows] * len(KINDS) + _kinds(a, job, rows), seconds)
    pairs = np.flatnonzero(by_pair)
    return {(int(p // len(KINDS)), KINDS[p % len(KINDS)]): float(by_pair[p]) for p in pairs}
