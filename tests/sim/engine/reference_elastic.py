"""Elastic jobs of the naive simulator: one unit of work in places that come and go.

The unit is the first task, in the first place. The other places are idle slots of its gang, those
taken last at the end, and each has the record of the task after those of the places before it.
"""

from __future__ import annotations

import math

import numpy as np

from sim.engine.plan import Event, Machine


class Stretching:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_elastic(self):
        self.since_place = {}  # of each task but the first, since when its place is held
        self.pace = dict.fromkeys(range(self.n_jobs), 1.0)
        self.curves = {j: self._curve(j) for j in range(self.n_jobs) if self.c.job_width_min[j] > 0}

    def _curve(self, j):
        """Return the pace of job j at the widths from 0 on."""
        text, widest = self.c.speedups[self.c.job_speedup[j]], int(self.c.job_n_tasks[j])
        if not text:
            return [w / widest for w in range(widest + 1)]
        points = [point.split(":") for point in text.split()]
        points = [(int(width), float(value)) for width, value in points]
        values = [0.0]
        for w in range(1, widest + 1):
            before = [point for point in points if point[0] <= w] or points[:1]
            after = [point for point in points if point[0] > w]
            (x0, y0), (x1, y1) = before[-1], (after or before[-1:])[0]
            is_between = after and before[-1][0] <= w
            values.append(min(y0 + (y1 - y0) * ((w - x0) / (x1 - x0)), y1) if is_between else y0)
        return [min(value / values[-1], 1.0) for value in values]

    def _is_elastic(self, j):
        return j in self.curves

    def _rows_with(self, task, g):
        """List the tasks that start and end with a task of stage g."""
        if not self._is_elastic(int(self.c.stage_job[g])):
            return [task]
        return list(range(int(self.c.stage_task0[g]), int(self.c.stage_task0[g + 1])))

    def _wanted_width(self, j):
        low, widest = int(self.c.job_width_min[j]), int(self.c.job_n_tasks[j])
        return min(max(int(self.plan.jobs["width"][j]), low), widest)

    def _machines_in_order(self, j, barred=()):
        """List a machine for each further place of job j that there is, in the usual order."""
        ranked, component = [], self.components[j][0]
        for m in range(len(self.free)):
            n_slots = 0 if m in barred else self._slots_on(j, 0, m)
            score = 0
            if n_slots > 0 and self.plan.choice.machine != Machine.FIRST and not self.unit:
                score = self._machine_score(
                    self.plan.choice.machine, component.first, component.slot, m
                )
            ranked += [(score, m, n_slots)] if n_slots > 0 else []
        return [m for _, m, n_slots in sorted(ranked) for _ in range(n_slots)]

    def _elastic_fit(self, j, barred=()):
        """Return machine and component of each place that job j would start with, or None."""
        low, slot = int(self.c.job_width_min[j]), self.components[j][0].slot
        if not self._within_cap(j, self._total(j), 1):
            return None
        outside = self._outside(j, barred)
        machines = self._machines_in_order(j, {*barred, *outside})[: self._wanted_width(j)]
        if len(machines) < low:
            return None
        while len(machines) > low and not self._within_cap(j, slot, len(machines)):
            machines.pop()
        return [(m, 0) for m in machines]

    def _outside(self, j, barred):
        """Return the machines outside the domains in which job j starts."""
        required, narrowest = self._levels_of(j)
        if narrowest < 0:
            return set()
        machines, width = range(len(self.free)), self._wanted_width(j)
        count = [0 if m in barred else self._slots_on(j, 0, m) for m in machines]
        count = [min(n, self.components[j][0].size) for n in count]

        def domains(level):
            domain = self.topology.domain[level].tolist()
            return domain, [
                (sum(count[m] for m in machines if domain[m] == d), d) for d in {*domain}
            ]

        for level in range(narrowest, max(required, 0) - 1, -1):
            domain, rooms = domains(level)
            if any(n >= width for n, _ in rooms):
                home = min((n, d) for n, d in rooms if n >= width)[1]
                return {m for m in machines if domain[m] != home}
        domain, rooms = domains(narrowest if required < 0 else required)
        within, total = set(), 0
        for n, d in sorted(rooms, key=lambda row: (-row[0], row[1])):
            if n > 0 and total < width and (required < 0 or not within):
                within.add(d)
                total += n
        return {m for m in machines if domain[m] not in within}

    def _start_unit(self, j):
        """Start elastic job j, whose places are idle slots: the first at the end."""
        first = self.idle[j].pop()
        self.idle[j].reverse()
        g = self.job_stages[j][0]
        self._set_pace(j, first[0])
        self._start(g, first[0], first)
        for i in range(len(self.idle[j])):
            self._begin_place(j, i)

    def _set_pace(self, j, machine):
        """Set the pace of job j by its places, which go at the speed of the slowest."""
        machines = [machine, *(m for m, *_ in self.idle[j])]
        self._note_crossing(j, [(m, 0) for m in machines])
        g, speeds = self.job_stages[j][0], []
        for i, m in enumerate(machines):
            is_remote = self._is_remote(self._first_row(j) + i, g, m)
            factor = float(self.c.stage_remote_factor[g]) if is_remote else 1.0
            speeds.append(self._speed(g, m) / factor)
        self.pace[j] = self.curves[j][len(machines)] * min(speeds)

    def _first_row(self, j):
        return int(self.c.stage_task0[self.job_stages[j][0]])

    def _begin_place(self, j, i):
        """Begin the record of the i-th idle slot of job j."""
        task, (machine, devices, _) = self._first_row(j) + 1 + i, self.idle[j][i]
        self.task_start[task] = max(self.now, float(self.task_start[self._first_row(j)]))
        self.task_placed[task] = self.now
        self.task_machine[task] = machine
        self.devices_of_task[task] = devices

    def _end_place(self, j, i, reason, share):
        """End the record of the i-th idle slot of job j, which is given back or stops."""
        task = self._first_row(j) + 1 + i
        start, machine = float(self.task_start[task]), int(self.task_machine[task])
        if start < self.now:
            kept_s = (self.now - start) * share
            self.stopped.append((self.now, task, machine, start, reason, kept_s))
        self.task_start[task], self.task_machine[task] = np.nan, -1

    def _stop_places(self, j, entry_start, reason, kept_s):
        """End the records of the places of job j but the first, which stops."""
        share = kept_s / (self.now - entry_start) if entry_start < self.now else 0.0
        for i in range(len(self.idle[j])):
            self._end_place(j, i, reason, share)

    def _finish_places(self, j, machine):
        """Let all tasks of job j but the first end now, those without a place with no time."""
        n_held = len(self.idle[j])
        for task in range(self._first_row(j) + 1, self._first_row(j) + int(self.c.job_n_tasks[j])):
            self.task_finish[task] = self.now
            if task > self._first_row(j) + n_held:
                self.task_start[task] = self.task_placed[task] = self.now
                self.task_machine[task] = machine
                self.devices_of_task[task] = self.devices_of_task[self._first_row(j)]

    # ---- changes of width

    def _resize(self, changed):
        """Follow the widths of changed jobs: all shrink before any grows."""
        for j in changed:
            if self._may_resize(j):
                self._shrink(j)
        for j in changed:
            if self._may_resize(j):
                self._grow(j)

    def _may_resize(self, j):
        is_running = self._is_elastic(j) and self.view["running"][j] > 0
        return is_running and self.c.job_reconfigure[j] < math.inf

    def _shrink(self, j):
        n_over = int(self.view["running"][j]) - self._wanted_width(j)
        if n_over <= 0:
            return
        for _ in range(n_over):
            self._end_place(j, len(self.idle[j]) - 1, "resized", 1.0)
            machine, devices, k = self.idle[j].pop()
            self._release_devices(self.components[j][k].slot, machine, devices)
            self._acquire(j, self.components[j][k].slot, machine, -1)
            if self.exclusive[j]:
                self._count_beyond(j, machine, k, -1)
        self._set_width(j)

    def _grow(self, j):
        """Take further places, of the flavors of those that it has, if its queue uses these."""
        tries = self._tries(self.org[j], self._total(j))
        machine = next(m for _, _, g, m, _, _ in self.running if self.c.stage_job[g] == j)
        own = [attempt for attempt in tries if machine in attempt.machines]
        if own or not self.by_flavor:
            self._within(own[0] if self.by_flavor else self.open, lambda: self._grow_open(j))

    def _grow_open(self, j):
        slot, n_before = self.components[j][0].slot, len(self.idle[j])
        for outside in self._rings(j):
            machines = self._machines_in_order(j, outside)
            n_more = self._wanted_width(j) - len(self.idle[j]) - 1
            for m in machines[: max(n_more, 0)]:
                if not self._within_cap(j, slot, 1):
                    break
                self.idle[j].append((m, self._acquire_devices(slot, m), 0))
                self._acquire(j, slot, m, 1)
                if self.exclusive[j]:
                    self._count_beyond(j, m, 0, 1)
                self._begin_place(j, len(self.idle[j]) - 1)
        if len(self.idle[j]) > n_before:
            self._set_width(j)

    def _rings(self, j):
        """Yield the machines outside of where job j grows: narrow domains come before wide ones."""
        required, narrowest = self._levels_of(j)
        home = next(m for _, _, g, m, _, _ in self.running if self.c.stage_job[g] == j)
        for level in range(narrowest, max(required, 0) - 1, -1):
            domain = self.topology.domain[level].tolist()
            yield {m for m in range(len(domain)) if domain[m] != domain[home]}
        if required < 0:
            yield set()

    def _set_width(self, j):
        """Let job j, whose places have changed, run at another pace after it stood still."""
        self._accrue(j)
        self.view["running"][j] = len(self.idle[j]) + 1
        i = next(i for i, e in enumerate(self.running) if self.c.stage_job[e[2]] == j)
        _, task, g, machine, first, in_slot = self.running[i]
        self._set_pace(j, machine)
        rate, left, since = self.progress[task]
        if since <= self.now:
            left = max(0.0, left - rate * self._done_since(since))
        begin = max(since, self.now + float(self.c.job_reconfigure[j]))
        new = self._rate(g, machine)
        self.progress[task] = (new, left, begin)
        end = self._finish_time(begin, left / new)
        self.running[i] = (end, task, g, machine, first, in_slot)
        self._emit(Event.RESIZE, j)
