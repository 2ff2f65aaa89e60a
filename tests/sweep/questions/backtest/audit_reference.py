"""Slow, obvious replay of a log, instant by instant."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sweep.questions.backtest.recorded_use import Recorded


def replay(log: Recorded) -> tuple[dict[int, float], list[tuple[int, float]], float]:
    """Return lags by job, spells in which the first in line fits, and the time in which one waits.

    A job fits if there is room for it and for all before it in line. At the instant of a start it
    counts what is there just before.
    """
    times = sorted({*log.begin_s, *log.end_s, *log.enter_s[log.rows], *log.start_s[log.rows]})

    def front(now: float, is_before: bool) -> list[int]:
        """Return the first jobs in line that fit together, before or after the starts of `now`."""
        room = log.capacity.copy()
        for begin_s, end_s, use in zip(log.begin_s, log.end_s, log.use, strict=True):
            if (begin_s < now or (begin_s == now and not is_before)) and end_s > now:
                room = room - use
        fitting = []
        for j in sorted(log.rows, key=lambda j: log.place[j]):
            is_waiting = log.enter_s[j] <= now and (
                log.start_s[j] > now or (is_before and log.start_s[j] == now)
            )
            if is_waiting:
                room = room - log.need[j]
                if (room < 0).any() or not fits_on_nodes(log, int(j), now, is_before):
                    break
                fitting.append(int(j))
        return fitting

    def line(now: float) -> list[int]:
        return [int(j) for j in log.rows if log.enter_s[j] <= now < log.start_s[j]]

    moments = [(now, is_before) for now in times for is_before in (True, False)]
    fronts = [front(*moment) for moment in moments]
    lags = {}
    for j in log.rows:
        m = moments.index((log.start_s[j], True))
        since = None
        while m >= 0 and int(j) in fronts[m]:
            since = moments[m][0]
            m -= 1
        if since is not None:
            lags[int(j)] = float(log.start_s[j] - since)
    spells: list[tuple[int, float]] = []
    head, begin_s = -1, 0.0
    for (now, _), fitting in zip(moments, fronts, strict=True):
        new = fitting[0] if fitting else -1
        if new != head:
            if head >= 0 and now > begin_s:
                spells.append((head, float(now - begin_s)))
            head, begin_s = new, now
    wait_s = sum(later - now for now, later in pairwise(times) if line(now))
    return lags, spells, float(wait_s)


def fits_on_nodes(log: Recorded, j: int, now: float, is_before: bool) -> bool:
    """Tell whether enough nodes have room for a job, before or after the starts of `now`."""
    if log.nodes is None:
        return True
    room = log.nodes.room.copy()
    for u, (begin_s, end_s) in enumerate(zip(log.begin_s, log.end_s, strict=True)):
        if (begin_s < now or (begin_s == now and not is_before)) and end_s > now:
            for pair in range(log.nodes.use0[u], log.nodes.use0[u + 1]):
                room[log.nodes.use_node[pair]] -= log.nodes.use_share[pair]
    is_enough = (room >= log.nodes.per_node[j]).all(axis=1)
    return bool(is_enough.sum() >= log.nodes.n_nodes[j])


def use_at(log: Recorded, now: float) -> np.ndarray:
    """Return the use from `now` on."""
    is_on = (log.begin_s <= now) & (log.end_s > now)
    return log.use[is_on].sum(axis=0)
