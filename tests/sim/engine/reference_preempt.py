"""Preemption of the naive simulator: every set of victims is tried on a copy of all accounts."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import numpy as np

from sim.engine.plan import Right, Victims, WhenPreempted
from tests.sim.engine import reference_reserve


class Preempting:
    """Mix-in of `tests.sim.engine.reference`. A unit of what stops together is its running tasks,
    and a job whose idle slots go with them, or None."""

    def _init_preemption(self):
        self.kept_s = [0.0] * self.c.n_tasks
        self.restarts_task = [False] * self.c.n_tasks
        self.admitted_s = {}
        self.nth, self.nth_of_gang, self.n_placed = {}, {}, 0
        self.leaving = []  # when they stop, tasks and their placements, job, for which job
        self.claims, self.claimants = {}, []

    # ---- work of attempts

    def _work_s(self, task, g, machine):
        """Return what is left of the attempt at its begin: at speed 1, and on the machine."""
        left = float(self.c.task_duration[task])
        if self._next_failure(task, g):
            left = self._next_failure(task, g)[0]
        left -= self.kept_s[task]
        is_elastic = self._is_elastic(int(self.c.stage_job[g]))
        seconds = left / (1.0 if is_elastic else self._speed(g, machine))
        if not is_elastic and self._is_remote(task, g, machine):
            seconds *= float(self.c.stage_remote_factor[g])
        return left, seconds

    def _restart_s(self, task, g):
        return float(self.c.job_restart[self.c.stage_job[g]]) if self.restarts_task[task] else 0.0

    def _elapsed_s(self, entry):
        _, task, g, machine, _, _ = entry
        rate, left, since = self.progress[task]
        if since <= self.now:
            left = max(0.0, left - rate * self._done_since(since))
        return self._work_s(task, g, machine)[1] + self._restart_s(task, g) - left

    def _ran_s(self, entry):
        return max(0.0, self._elapsed_s(entry) - self._restart_s(entry[1], entry[2]))

    def _saved_s(self, entry, interval):
        ran = self._ran_s(entry)
        if interval in (0.0, math.inf):
            return ran if interval == 0.0 else 0.0
        return min(ran, math.floor(ran / interval + 1e-9) * interval)

    def _follow_work(self, entry, reason):
        """Keep the work of an attempt that is stopped; return how much of its time that is, s."""
        _, task, g, machine, _, _ = entry
        j = int(self.c.stage_job[g])
        if reason in ("failed", "input lost"):
            self._lose_work(task)
            return 0.0
        if reason in ("timeout", "cancelled"):
            return 0.0
        suspends = reason == "preempted" and self._when(j) == WhenPreempted.SUSPEND
        saved = self._saved_s(entry, 0.0 if suspends else float(self.c.job_checkpoint[j]))
        left, seconds = self._work_s(task, g, machine)
        kept_s = 0.0
        if saved > 0.0:
            share = saved / self._elapsed_s(entry)
            kept_s = (self.now - float(self.task_start[task])) * share
            self.kept_s[task] += min(left, saved * (left / seconds))
        if not suspends:
            self.restarts_task[task] |= float(self.task_start[task]) < self.now
        elif saved > 0.0:
            self.restarts_task[task] = False
        return kept_s

    def _lose_work(self, task):
        self.kept_s[task], self.restarts_task[task] = 0.0, False

    # ---- who may preempt whom

    def _when(self, k):
        return int(self.plan.jobs["when_preempted"][k])

    def _is_below(self, j, k):
        level = self.plan.jobs["preempt_level"]
        below = min(self.plan.jobs["preempts_below"][j], level[j])
        if not self.c.job_preempts[j] or level[k] >= below:
            return False
        by = self.plan.preemption.by
        same_queue = self._account(j) == self._account(k)
        return bool(by & Right.LEVEL) or (bool(by & Right.LEVEL_IN_QUEUE) and same_queue)

    def _account(self, j):
        return (self.org[j], int(self.plan.jobs["queue"][j]))

    def _may_evict(self, j, k, n_before=0):
        """Tell whether job j may stop a task beyond the limit of job k, after some others."""
        if self.plan.preemption.by != Right.LIMIT or j == k or not self.c.job_preempts[j]:
            return False
        jobs, view = self.plan.jobs, self.view
        if view["running"][k] - n_before <= jobs["run_limit"][k]:
            return False
        is_below = view["running"][j] < jobs["run_limit"][j]
        return bool(is_below and view["started"][j] < jobs["start_gate"][j])

    def _may_preempt(self, j, k):
        if self.c.job_preempts[j] and self.plan.preemption.by & Right.QUOTA:
            mine, theirs = (self.c.queue_names[self.org[i]] for i in (j, k))
            one_tree = mine != theirs and self._path(mine)[0] == self._path(theirs)[0]
            if one_tree and self._borrows(theirs):
                return True
        shares = self.plan.preemption.by & Right.SHARE and self.c.job_preempts[j]
        other_queue = self._account(j) != self._account(k)
        return j != k and bool((shares and other_queue) or self._is_below(j, k))

    def _share(self, j, between_orgs):
        org, level = self._account(j)
        jobs = [i for i in range(self.n_jobs) if self.org[i] == org]
        if between_orgs:
            return self._queue_use(jobs) / self.org_weight[org]
        jobs = [i for i in jobs if int(self.plan.jobs["queue"][i]) == level]
        return self._queue_use(jobs) / self.plan.queues.weight[level]

    def _has_right(self, g, unit, chosen, before, own):
        j, k = int(self.c.stage_job[g]), self._job_of(unit)
        if self.plan.preemption.by == Right.LIMIT:
            return self._may_evict(j, k, sum(self._job_of(other) == k for other in chosen))
        if self._is_below(j, k):
            return True
        if self._took_room_s(unit) == self.now:
            return False
        if self.plan.preemption.by & Right.QUOTA:
            return before and self._keeps_quota(g)
        between_orgs = self.org[j] != self.org[k]
        theirs = self._share(k, between_orgs)
        if theirs == before:
            return False
        return own[between_orgs] <= theirs

    def _own_shares(self, g):
        """Return the share of the queue of stage g, and of its organisation, if g starts."""
        j, (demand, times) = int(self.c.stage_job[g]), self._needs(g)
        for r, amount in enumerate(demand):
            self.used[j][r] += times * amount
        shares = self._share(j, False), self._share(j, True)
        for r, amount in enumerate(demand):
            self.used[j][r] -= times * amount
        return shares

    def _borrows(self, name, taken=None):
        """Tell whether a queue uses more than its quota of some resource that it may borrow.

        `taken`: one of these.
        """
        use = self._use_by_org()
        every = self._columns_of([r for r in self.limited if r in self.deciding])
        limited = [k for k in every if self._may_borrow(name, k)]
        limited = [k for k in limited if taken is None or k in taken]
        return any(self._taken(name, k, use) > self._quota(name, k) for k in limited)

    def _keeps_quota(self, g):
        """Tell whether the queue of stage g stays within its quota, and its limit, if g starts."""
        org, use = self.org[int(self.c.stage_job[g])], self._use_by_org()
        name, (demand, times) = self.c.queue_names[org], self._needs(g)
        node = self.quota_nodes[name]
        for r in (r for r in self.limited if r in self.deciding and demand[r] > 0):
            k = r if self.open is None else self.open.column[r]
            amount = self._taken(name, k, use) + times * demand[r]
            if self._may_borrow(name, k) and amount > self._quota(name, k):
                return False
            if amount > self._quota(name, k) + (node.borrow[k] if node.parent else 0):
                return False
        return True

    def _before(self, g, unit):
        """Return the share of the unit's queue, by quotas whether it borrows what both take."""
        j, k = int(self.c.stage_job[g]), self._job_of(unit)
        if self.plan.preemption.by & Right.QUOTA:
            needed = [(r, amount) for r, amount in enumerate(self._needs(g)[0]) if amount > 0]
            column = range(len(self.total)) if self.open is None else self.open.column
            taken = {column[r] for r, _ in needed if self._takes(unit, r, column[r])}
            return self._borrows(self.c.queue_names[self.org[k]], taken)
        return self._share(k, self.org[j] != self.org[k])

    def _takes(self, unit, r, column):
        """Tell whether a unit takes a resource, of a column: by slots of its gang, or by tasks."""
        entries, k = unit
        is_gang = k is not None and self.idle[k] is not None
        slots = [(self._slot(k), m) for m, *_ in self.idle[k]] if is_gang else []
        slots += [(self._slot(k) if is_gang else self.demand[g], m) for _, _, g, m, _, _ in entries]
        return any(demand[r] > 0 and self.column_on[m][r] == column for demand, m in slots)

    def _needs(self, g):
        j = int(self.c.stage_job[g])
        if self._is_waiting_gang(j):
            return self._total(j), 1
        return self.demand[g], 1

    # ---- units

    def _units(self, j):
        """List the units that job j may preempt, in the order in which they stop."""
        whole, units = {}, []
        for entry in self.running:
            k = int(self.c.stage_job[entry[2]])
            if entry[5] or self._when(k) == WhenPreempted.CANCEL:
                if self._may_preempt(j, k):
                    whole.setdefault(k, []).append(entry)
            elif self._may_preempt(j, k) or self._may_evict(j, k):
                units.append(([entry], None))
        for k in range(self.n_jobs):
            if self.idle[k] and self._may_preempt(j, k):
                whole.setdefault(k, [])
        units += [(entries, k) for k, entries in whole.items()]
        units = [unit for unit in units if not self._leaves(unit)]
        return sorted(units, key=self._stop_order)

    def _job_of(self, unit):
        entries, k = unit
        return int(self.c.stage_job[entries[0][2]]) if k is None else k

    def _stop_order(self, unit):
        entries, k = unit
        level = self.plan.jobs["preempt_level"][self._job_of(unit)]
        in_gang = k is not None and self.idle[k] is not None
        nth = self.nth_of_gang[k] if in_gang else max(self.nth[task] for _, task, *_ in entries)
        rule = self.plan.preemption.victims
        if rule == Victims.LAST_STARTED:
            return (-nth,)
        if rule == Victims.LEAST_LOST:
            return (self._lost_us(entries), level, -nth)
        if rule == Victims.FEWEST_MACHINES:
            machines = {machine for _, _, _, machine, _, _ in entries}
            return (level, len(machines), self._job_of(unit), -nth)
        return (level, -nth)

    def _took_room_s(self, unit):
        entries, k = unit
        if k is not None and self.idle[k] is not None:
            return self.admitted_s[k]
        return max(self.task_placed[task] for _, task, *_ in entries)

    def _lost_us(self, entries):
        lost = 0
        for entry in entries:
            k = int(self.c.stage_job[entry[2]])
            interval = float(self.c.job_checkpoint[k])
            if self._when(k) != WhenPreempted.REQUEUE:
                interval = 0.0 if self._when(k) == WhenPreempted.SUSPEND else math.inf
            lost += math.floor(1e6 * (self._ran_s(entry) - self._saved_s(entry, interval)))
        return lost

    # ---- victims

    def _preempt(self, g, barred=()):
        """Stop units so that stage g can start, and start it; tell whether it did."""
        j = int(self.c.stage_job[g])
        if self.claims.get(j, -math.inf) > self.now:
            return False
        barred = {*barred, *self._closed_to_start(j)}
        if self.by_flavor and self.open is None:
            tries = self._in_order(j, self._needs(g)[0], is_allowed=False)
            chosen = next(
                filter(
                    None,
                    (self._within(attempt, lambda: self._victims(g, barred)) for attempt in tries),
                ),
                [],
            )
        else:
            chosen = self._victims(g, barred)
        if not chosen:
            return False
        if self.plan.preemption.grace_s > 0:
            self.claims[j] = self.now + self.plan.preemption.grace_s
            for unit in chosen:
                self.leaving.append((self.claims[j], *self._named(unit), j))
            return False
        self._stop_units(chosen)
        return self._start_preempting(g, barred)

    def _victims(self, g, barred):
        """List the units that have to stop so that stage g can start; none if it could without."""
        j = int(self.c.stage_job[g])
        chosen, fits = [], lambda: self._fits_now(g, barred)
        if fits():
            return []
        own = self._own_shares(g)
        for unit in self._units(j):
            before = self._without(chosen, lambda unit=unit: self._before(g, unit))
            may = (g, unit, chosen, before, own)
            if not self._without([*chosen, unit], lambda may=may: self._has_right(*may)):
                continue
            chosen.append(unit)
            if self._without(chosen, fits):
                break
        else:
            return []
        for unit in chosen[::-1]:
            rest = [other for other in chosen if other is not unit]
            if self._without(rest, fits):
                chosen = rest
        return chosen

    def _named(self, unit):
        """Return a unit by its tasks and the number of each placement, its job, and that of it."""
        entries, k = unit
        is_gang = k is not None and self._when(k) != WhenPreempted.CANCEL
        began = self.nth_of_gang[k] if is_gang else None
        return [(task, self.nth[task]) for _, task, *_ in entries], k, began

    def _leaves(self, unit):
        tasks, k, began = self._named(unit)
        if k is not None:
            return any(other == k and since == began for _, _, other, since, _ in self.leaving)
        return any(tasks == own and other is None for _, own, other, _, _ in self.leaving)

    def _stop_leaving(self):
        """Stop the units whose grace time is over."""
        due = [row for row in self.leaving if row[0] <= self.now]
        self.leaving = [row for row in self.leaving if row[0] > self.now]
        for time, tasks, k, began, j in due:
            own = {task for task, _ in tasks}
            entries = [entry for entry in self.running if entry[1] in own]
            if k is None:
                same = all(self.nth[task] == nth for task, nth in tasks)
                if entries and same:
                    self._stop_task(entries[0], self._why_stopped())
            elif self._when(k) == WhenPreempted.CANCEL:
                if self.view["left"][k] > 0:
                    self._end_early(k, "cancelled", 4)
            elif self.idle[k] is not None and self.nth_of_gang[k] == began:
                self.stopping.add(k)
            if self.claims.get(j) == time:
                del self.claims[j]
                self.claimants.append(j)
        self._stop_gangs("preempted")

    def _start_claimants(self):
        for j in self.claimants:
            stages = [g for g in self._waiting() if self.c.stage_job[g] == j]
            if not stages or (self._is_listed() and self._holds(j)):
                continue
            g = min(stages, key=lambda g: (self.plan.stages["key"][g], g))
            tries = self._in_order(j, self._needs(g)[0]) if self.by_flavor else [None]
            barred = self._closed_to_start(j)
            if any(self._within(attempt, lambda: self._fits_now(g, barred)) for attempt in tries):  # noqa: B023
                self._start_preempting(g, ())
        self.claimants = []

    def _stop_units(self, chosen):
        for entries, k in chosen:
            if k is not None and self._when(k) == WhenPreempted.CANCEL:
                self._end_early(k, "cancelled", 4)
            elif k is not None:
                self.stopping.add(k)
            else:
                self._stop_task(entries[0], self._why_stopped())
        self._stop_gangs("preempted")

    def _why_stopped(self):
        return "evicted" if self.plan.preemption.by == Right.LIMIT else "preempted"

    def _closed_to_start(self, j):
        """Return the machines that windows close to job j by its expected end, if it has one."""
        machines = range(len(self.free))
        if self.plan.replan:
            job, clock = SimpleNamespace(name=j), self._clock()
            end = clock + self._limit_s(j)
            return {m for m in machines if self._is_node_closed(job, m, clock, end)}
        if self.plan.reservations:
            expected_s = float(self.plan.jobs["expected_s"][j])
            end = max(self.now + self._next_lag(self._first_task(j)) + expected_s, self.now)
            return {m for m in machines if self._is_closed(j, m, self.now, end)}
        return set()

    def _fits_now(self, g, barred):
        j = int(self.c.stage_job[g])
        if self._is_waiting_gang(j):
            return self._gang_fit(j, barred) is not None
        return any(m not in barred for m in self._machines(g))

    def _without(self, units, ask):
        """Return what `ask` says while the room of some units is given back."""
        names = ("free", "used", "used_in", "devices", "freed")
        before = {name: copy.deepcopy(getattr(self, name)) for name in names}
        for entries, k in units:
            for _, task, g, machine, _, in_held_slot in entries:
                j = int(self.c.stage_job[g])
                demand = self._slot_of(g) if in_held_slot else self.demand[g]
                self._release_devices(demand, machine, self.devices_of_task[task])
                self._acquire(j, demand, machine, -1)
            for machine, devices, part in (self.idle[k] or []) if k is not None else []:
                slot = self.components[k][part].slot
                self._release_devices(slot, machine, devices)
                self._acquire(k, slot, machine, -1)
        answer = ask()
        for name, value in before.items():
            setattr(self, name, value)
        return answer

    def _start_preempting(self, g, barred):
        j = int(self.c.stage_job[g])
        if self.plan.replan:
            return self._start_replanned(j)
        if self.plan.reservations:
            return reference_reserve.reserve(self, first=j)
        return self._place(g, barred)

    def _preempt_in_order(self):
        """Preempt for the first waiting job in order for which that suffices; False for none.

        Under periodic planning only for jobs for which a pass or a plan says so.
        """
        in_order = self.fit.name in ("STRICT", "PER_CLASS") and not self._is_listed()
        if not self.plan.preemption or in_order:
            return False
        first = {}
        for g in self._waiting():
            j = int(self.c.stage_job[g])
            if not (self._is_listed() and self._holds(j)):
                first.setdefault(j, []).append(g)
        if self.plan.replan:
            first = {j: own for j, own in first.items() if j in self.preemptors}
        stages = [min(own, key=lambda g: (self.plan.stages["key"][g], g)) for own in first.values()]
        merged = self._is_listed() and self.queues_are_hard

        def order(g):
            return (self._tier_of(g), self._rank(g)) if merged else self._order(g)

        stages.sort(key=order)
        return any(self._preempt(g) for g in stages if not self._passes(g))

    def _is_listed(self):
        return bool(self.plan.reservations or self.plan.replan)

    def _cancelled(self):
        return np.array(self.view["failed"]) == 4
