"""Caps of the naive simulator: every counter is summed anew whenever it is read."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

JOBS = ("running_jobs", "submitted_jobs", "nodes")
LICENSE = "license_"


class Capping:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_caps(self, cluster, quantum):
        table = self.c.features.jobs
        self.cap_groups, self.limit_from, self.cap_tick = [], {}, math.inf
        self.cap_changes = []  # time, group, cap from then on
        rows = [
            (
                *(row.counted, row.at_most, row.by, row.where or {}, row.blocks, row.changes),
                row.spares or {},
            )
            for row in cluster.limits
        ]
        if {"array", "throttle"} <= set(table.column_names):
            rows.append(("running_jobs", self._throttles(table), ("array",), {}, False, (), {}))
        for counted, at_most, by, where, blocks, changes, spares in rows:
            names = (*by, *where, *spares)
            read = {name: self._texts(table, name, cluster) for name in names}
            spared = {
                j
                for j in range(self.n_jobs)
                if any(read[name][j] in values for name, values in spares.items())
            }
            members = {}
            for j in range(self.n_jobs):
                holds_none = counted.startswith(LICENSE) and not self._held_while_running(
                    counted, j
                )
                if holds_none or any(read[name][j] != value for name, value in where.items()):
                    continue
                options = [self._values(name, read[name][j], cluster.accounts) for name in by]
                for key in itertools.product(*options):
                    members.setdefault(key, set()).add(j)
            is_held = counted in JOBS or counted.startswith(LICENSE)
            resource = None if is_held else counted.removesuffix("_minutes")
            r = None if resource is None else cluster.resources.index(resource)
            for key, jobs in members.items():
                units = 1.0 if r is None else float(quantum[r])
                units /= 60.0 if counted.endswith("_minutes") else 1.0
                first, *later = (
                    self._cap_number(table, key, units)
                    for table in (at_most, *(table for _, table in changes))
                )
                if min([first, *later]) == math.inf:
                    continue  # nothing is capped, and no limit of a member has to be followed
                group = SimpleNamespace(
                    counted=counted, r=r, cap=first, blocks=blocks, members=jobs, held=jobs - spared
                )
                self.cap_groups.append(group)
                times = (at_s for at_s, _ in changes)
                self.cap_changes += [(at_s, group, n) for at_s, n in zip(times, later, strict=True)]

    def _cap_number(self, number, key, units):
        for value in key:
            if isinstance(number, dict):
                number = number.get(value, number.get("*"))
        return math.inf if number is None else math.floor(number / units * (1 + 1e-12) + 1e-9)

    def _next_cap_change(self):
        return min((at_s for at_s, _, _ in self.cap_changes), default=math.inf)

    def _change_caps(self):
        for row in [row for row in self.cap_changes if row[0] <= self.now]:
            row[1].cap = row[2]
            self.cap_changes.remove(row)

    def _throttles(self, table):
        arrays = {}
        for array, throttle in zip(
            table["array"].to_pylist(), table["throttle"].to_pylist(), strict=True
        ):
            if throttle > 0:
                arrays.setdefault(array, []).append(throttle)
        return {array: min(throttles) for array, throttles in arrays.items()}

    def _texts(self, table, name, cluster):
        absent = [""] * self.n_jobs
        texts = table[name].to_pylist() if name in table.column_names else absent
        if name == "partition":
            return [text or cluster.default_partition for text in texts]
        return texts

    def _values(self, name, value, above):
        values = [value] if value else []
        while name == "account" and values and values[-1] in above:
            values.append(above[values[-1]])
        return values

    def _counts_as_running(self, j):
        has_begun = self.view["started"][j] > 0 or self.idle[j] is not None
        return bool(has_begun and self.view["left"][j] > 0)

    def _limit_left(self, j):
        """Return the whole seconds left to the limit of job j, at the last update."""
        limit_s = float(self.c.job_requested[j])
        if math.isnan(limit_s):
            return 0
        if j not in self.limit_from:
            return math.ceil(limit_s)
        began, updated = self.limit_from[j]
        return max(0, math.ceil(limit_s - (updated - began)))

    def _note_running(self, j):
        """Note from when on the limit of job j counts, after its tasks or slots changed."""
        if not any(g.counted.endswith("_minutes") and j in g.members for g in self.cap_groups):
            return
        if not self._counts_as_running(j):
            self.limit_from.pop(j, None)
        elif j not in self.limit_from:
            self.limit_from[j] = (self.now, self.now)
            if self._limit_left(j) > 0 and self.cap_tick == math.inf:
                self.cap_tick = (math.floor(self.now / 300.0) + 1) * 300.0

    def _update_limits(self):
        """Update what is left to the limits of running jobs, each 300 s."""
        if self.cap_tick > self.now:
            return
        for j, (began, _) in self.limit_from.items():
            self.limit_from[j] = (began, self.now)
        running = [j for j in self.limit_from if self._counts_as_running(j)]
        goes_on = any(self._limit_left(j) > 0 for j in running)
        self.cap_tick = self.cap_tick + 300.0 if goes_on else math.inf

    def _cap_use(self, group):
        if group.counted == "running_jobs":
            return sum(self._counts_as_running(j) for j in group.members)
        if group.counted == "nodes" or group.counted.startswith(LICENSE):
            running = [j for j in group.members if self._counts_as_running(j)]
            return sum(self._held_while_running(group.counted, j) for j in running)
        if group.counted == "submitted_jobs":
            live = [j for j in group.members if j in self.submitted and self.view["left"][j] > 0]
            return len(live)
        if group.counted.endswith("_minutes"):
            return sum(self.used[j][group.r] * self._limit_left(j) for j in group.members)
        used = sum(self.used[j][group.r] for j in group.members)
        running = [j for j in group.members if self._counts_as_running(j)]
        return used + sum(self.beyond[j][group.r] for j in running if j in self.beyond)

    def _held_while_running(self, counted, j):
        if counted == "nodes":
            return self._n_nodes(j)
        return int(self.c.features.jobs[counted][j].as_py())

    def _n_nodes(self, j):
        return int(self.c.job_n_nodes[j] or self.c.job_min_tasks[j] or 1)

    def _cap_need(self, group, j, demand, times):
        if group.counted == "running_jobs":
            return 0 if self._counts_as_running(j) else 1
        if group.counted == "nodes" or group.counted.startswith(LICENSE):
            return 0 if self._counts_as_running(j) else self._held_while_running(group.counted, j)
        if group.counted == "submitted_jobs":
            return 0
        need = times * int(demand[group.r])
        return need * self._limit_left(j) if group.counted.endswith("_minutes") else need

    def _over_cap(self, j, demand, times):
        """Return "passes" or "blocks" if so many tasks of job j exceed a cap, else None.

        It passes if any of the caps that it exceeds lets others pass.
        """
        over = {
            group.blocks
            for group in self.cap_groups
            if j in group.held
            and group.counted != "submitted_jobs"
            and self._cap_use(group) + self._cap_need(group, j, demand, times) > group.cap
        }
        if not over:
            return None
        return "passes" if False in over else "blocks"

    def _over_cap_with(self, j, amount):
        """Return the same if job j took that amount of each resource."""
        over = {
            group.blocks
            for group in self.cap_groups
            if j in group.held
            and group.r is not None
            and not group.counted.endswith("_minutes")
            and self._cap_use(group) + amount[group.r] > group.cap
        }
        if not over:
            return None
        return "passes" if False in over else "blocks"

    def _over_to_start(self, g):
        """Return whether the next task of stage g, or all slots of its gang, exceed a cap."""
        j = int(self.c.stage_job[g])
        if self._is_waiting_gang(j):
            return self._over_cap(j, self._total(j), 1)
        return self._over_cap(j, self.demand[g], 1)

    def _rigid_over(self, j):
        """Return the same of rigid job j."""
        return self._over_to_start(next(g for g in self.job_stages[j] if self._ready(g)))

    def _over_running_jobs(self, j):
        """Tell whether job j exceeds a cap of running jobs."""
        return any(
            self._cap_use(group) + self._cap_need(group, j, None, 1) > group.cap
            for group in self.cap_groups
            if group.counted == "running_jobs" and j in group.held
        )

    def _passes(self, g):
        return self._over_to_start(g) == "passes"

    def _may_submit(self, j):
        return self._is_admitted(j) and all(
            self._cap_use(group) < group.cap
            for group in self.cap_groups
            if group.counted == "submitted_jobs" and j in group.held
        )
