"""Pinned jobs of the naive simulator: placed at given times on given machines."""

from __future__ import annotations

import math
from collections import Counter

from sim.engine.plan import Machine
from tests.sim.engine.reference_replan import Job, Nodes, choose


class Pinning:
    """The part of the naive simulator that places jobs as a state says."""

    def _init_pins(self):
        state = self.plan.pinned
        self.begins_s = -math.inf if state is None else state.begins_s
        self.pins = []  # (time, job) of those that are still to be placed
        if state is not None:
            times = enumerate(state.placed_s.tolist())
            self.pins = sorted((time, j) for j, time in times if not math.isnan(time))

    def _has_begun(self):
        return self.now >= self.begins_s

    def _next_pin(self):
        times = [time for time, _ in self.pins if time > self.now]
        return min(times + [self.begins_s] * bool(self.now < self.begins_s), default=math.inf)

    def _place_pinned(self):
        left = []
        for time, j in self.pins:
            if time <= self.now and (self.view["failed"][j] or self.view["left"][j] == 0):
                continue
            if time <= self.now and self._holds(j):
                continue
            machines = None if time > self.now else self._fit_pinned(j)
            if machines is None:
                left.append((time, j))
            else:
                self._start_pinned(j, machines)
        self.pins = left

    def _pinned_to(self, j):
        """Return the machines of job j; -1 for any of them.

        Of an elastic job those of its tasks that have one, up to its least width with -1.
        """
        first = int(self.c.stage_task0[self.job_stages[j][0]])
        n = sum(self.size[g] for g in self.job_stages[j])
        machines = self.plan.pinned.machine[first : first + n].tolist()
        machines = [min(m, 0) if self.unit else m for m in machines]
        if self._is_elastic(j):
            known = [m for m in machines if m >= 0]
            machines = known + [-1] * (int(self.c.job_width_min[j]) - len(known))
        return machines

    def _fit_pinned(self, j):
        """Return the machine of each slot of job j, None if they do not fit there."""
        if not any(self.c.stage_job[g] == j for g in self._waiting()):
            return None
        slot = self._slot(j)
        if not self._is_waiting_gang(j):
            slot = self.demand[next(g for g in self.job_stages[j] if self._ready(g))]
        asked_for = Counter(self._pinned_to(j))
        n_free, machines = asked_for.pop(-1, 0), []
        is_one_width = self._is_waiting_gang(j) and not self._is_elastic(j)
        if is_one_width and self._is_searched(j):
            limits = {m: math.inf if n_free else n for m, n in asked_for.items()}
            return self._place_components(j, (), Machine.FIRST, limits)
        for m, n in sorted(asked_for.items()):
            fits = [max(self.free[m][r], 0) // slot[r] for r in self.deciding if slot[r] > 0]
            by_devices = math.inf if self.unit else self._slots_by_devices(slot, m)
            room = min([*fits, by_devices, 1 if self._is_single(j) else math.inf])
            if m in self.down or room < n:
                return None
            more = min(room - n, n_free)
            n_free -= more
            machines += [m] * (n + more)
        return [(m, 0) for m in machines] if n_free == 0 else None

    def _start_pinned(self, j, places):
        if self.plan.replan:
            self._note_events()
            if self._is_pool():
                free = self._cluster().free
                nodes = choose(free, set(range(len(free))), Job(j, len(places), 0))
            elif self._is_searched(j):
                components = range(len(self.components[j]))
                parts = [Counter(m for m, k in places if k == part) for part in components]
                nodes = Nodes(parts, [k.demand for k in self._unequal_components(j)])
            else:
                nodes = dict(Counter(m for m, _ in places))
            self._start_on(j, nodes)
            self._note_update()
            return
        if self.plan.reservations:
            self.reserved.pop(j, None)
            self.machines_of[j] = places
            self.run_start[j] = self.now + self._next_lag(self._first_task(j))
        if self._is_waiting_gang(j):
            self._admit(j, places)
        else:
            self._start(next(g for g in self.job_stages[j] if self._ready(g)), places[0][0])
