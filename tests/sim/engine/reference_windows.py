"""Outages of the naive simulator, and windows that are known beforehand, asked at every look."""

from __future__ import annotations

import math

from sim.cluster.faults import DRAINED, KNOWN_DRAINED, KNOWN_LOST, LOST
from sim.engine.plan import Event

INF = math.inf


class Windows:
    """Mix-in of `tests.sim.engine.reference`: machines that are lost, drained or closed to jobs."""

    def _init_outages(self, cluster):
        rows = [
            (int(m), float(down_s), float(up_s), int(kind))
            for m, down_s, up_s, kind in zip(
                *cluster.outages.columns, cluster.outages.kind, strict=True
            )
        ]
        self.outages = sorted(
            event
            for m, down_s, up_s, kind in rows
            for event in ((down_s, m, 1, kind), (up_s, m, 0, kind))
        )
        self.absent = set()  # (machine, kind) that is lost or drained
        known = (KNOWN_LOST, KNOWN_DRAINED)
        self.windows = [(m, a, b, kind == KNOWN_LOST) for m, a, b, kind in rows if kind in known]

    @property
    def down(self):
        """Machines on which nothing starts now."""
        return {m for m, _ in self.absent}

    @property
    def unforeseen(self):
        """Those that plans do not count with, whenever they are back."""
        return {m for m, kind in self.absent if kind in (LOST, DRAINED)}

    def _outage(self, machine, begins, kind):
        self._emit(Event.FAULT, machine)
        if not begins:
            self.absent.remove((machine, kind))
            self.freed.add(machine)
        else:
            self.absent.add((machine, kind))
            if kind in (LOST, KNOWN_LOST):
                self._lose(machine)

    def _is_closed(self, j, m, begin, end):
        """Tell whether a window bars job j from machine m, from begin to its expected end."""
        for machine, from_s, until_s, looks_ahead in self.windows:
            is_ahead = from_s <= begin or (looks_ahead and from_s < end)
            if machine == m and is_ahead and begin < until_s:
                return True
        return False

    def _is_closed_now(self, j, m):
        """Tell whether machine m is closed to a task of job j, by its limit if that is enforced.

        The limit counts from the moment at which the job first took room.
        """
        limit_s = self.limit_s[j]
        end = self.begun_at.get(j, self.now) + limit_s if limit_s < INF else self.now
        return self._is_closed(j, m, self.now, end)

    def _openings(self):
        """Return the times to come at which machines open."""
        return [until_s for _, _, until_s, _ in self.windows if until_s > self.now]
