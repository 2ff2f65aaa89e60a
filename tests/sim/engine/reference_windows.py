"""Outages of the naive simulator, and windows that are known beforehand, looked at every time."""

from __future__ import annotations

import math

from sim.cluster.faults import DRAINED, KNOWN_DRAINED, KNOWN_LOST, LOST
from sim.engine.plan import Event

INF = math.inf


class Windows:
    """Mix-in of `tests.sim.engine.reference`: machines that are lost, drained or closed to jobs."""

    def _init_outages(self, cluster):
        outages, reserved = cluster.outages, cluster.reservations
        rows = [*zip(*outages.columns, outages.kind, strict=True)]
        rows = [(int(m), float(down_s), float(up_s), int(kind)) for m, down_s, up_s, kind in rows]
        self.outages = [
            event
            for m, down_s, up_s, kind in rows
            for event in ((down_s, m, 1, kind), (up_s, m, 0, kind))
        ]
        self.absent = set()  # (machine, kind) that is lost or drained
        known = (KNOWN_LOST, KNOWN_DRAINED)
        self.windows = [
            (m, a, b, kind == KNOWN_LOST, None, -INF) for m, a, b, kind in rows if kind in known
        ]
        columns = (reserved.code, reserved.from_s, reserved.until_s, reserved.known_s)
        for m, code, a, b, announced in zip(reserved.machine, *columns, strict=True):
            row = (int(m), float(a), float(b), True, reserved.names[code], float(announced))
            self.windows.append(row)
            self.outages += [(row[1], row[0], 0, 0), (row[2], row[0], 0, 0)]  # it opens to some job
        self.outages.sort()
        self._init_reservations(reserved)

    def _init_reservations(self, reserved):
        jobs = self.c.features.jobs.to_pydict()
        nothing = [""] * self.n_jobs
        requested = jobs.get("reservation", nothing) if reserved.names else nothing
        self.asks_for = [name or None for name in requested]
        users, accounts = jobs.get("user", nothing), jobs.get("account", nothing)
        self.may_use = [
            {name}
            | {
                other
                for other, by_user, by_account in zip(
                    reserved.names, reserved.users, reserved.accounts, strict=True
                )
                if users[j] in by_user or accounts[j] in by_account
            }
            for j, name in enumerate(self.asks_for)
        ]

    @property
    def down(self):
        """Machines on which nothing starts now."""
        return {m for m, _ in self.absent}

    @property
    def unforeseen(self):
        """Those that plans do not count with, whenever they are back."""
        return {m for m, kind in self.absent if kind in (LOST, DRAINED)}

    def _outage(self, machine, begins, kind):
        if kind:
            self._emit(Event.FAULT, machine)
        if not begins:
            self.absent.discard((machine, kind))
            self.freed.add(machine)
        else:
            self.absent.add((machine, kind))
            if kind in (LOST, KNOWN_LOST):
                self._lose(machine)

    def _is_closed(self, j, m, begin, end):
        """Tell whether windows bar job j from machine m, from begin to its expected end."""
        own = self.asks_for[j]
        within = own is None
        for machine, from_s, until_s, looks_ahead, owner, known_s in self.windows:
            if machine != m or known_s > self.now:
                continue
            if owner is not None and owner in self.may_use[j]:
                within = within or (owner == own and from_s <= begin < until_s and end <= until_s)
                continue
            is_ahead = from_s <= begin or (looks_ahead and from_s < end)
            if is_ahead and begin < until_s:
                return True
        return not within

    def _is_reserved(self, j, m):
        """Tell whether reservations bar job j from machine m now, whenever it would end."""
        open_ = {w[4] for w in self.windows if w[0] == m and w[1] <= self.now < w[2]} - {None}
        own = self.asks_for[j]
        return bool(open_ - self.may_use[j]) or (own is not None and own not in open_)

    def _is_closed_now(self, j, m):
        """Tell whether machine m is closed to a task of job j, by its limit if that is enforced.

        Or by the policy.

        The limit counts from the moment at which the job first took room.
        """
        if not self._runs_on(j, m):
            return True
        limit_s = self.limit_s[j]
        end = self.begun_at.get(j, self.now) + limit_s if limit_s < INF else self.now
        return self._is_closed(j, m, self.now, end)

    def _openings(self):
        """Return the times to come at which machines open to some job."""
        ends = [window[2] for window in self.windows]
        ends += [window[1] for window in self.windows if window[4] is not None]
        return [time for time in ends if time > self.now]

    def _over_at(self, j):
        """Return the last end of the reservation that job j asks for; inf for none."""
        own = self.asks_for[j]
        return max([w[2] for w in self.windows if w[4] == own]) if own else INF

    def _end_reservations(self):
        for j in range(self.n_jobs):
            is_left = j in self.submitted and self.view["left"][j] > 0
            if is_left and self._over_at(j) <= self.now:
                self._end_early(j, "timeout", 2)
