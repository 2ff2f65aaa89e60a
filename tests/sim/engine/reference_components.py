"""Components of gangs of the naive simulator: slots of unequal demands that are held together."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace

from sim.engine.plan import Machine


class Composing:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_components(self):
        self.components = [self._find_components(j) for j in range(self.n_jobs)]

    def _find_components(self, j):
        """List the components of gang j: one for all of its stages, or those of unequal slots."""
        stages, size = [*self.job_stages[j]], int(self.c.job_min_tasks[j])
        size = int(self.c.job_n_tasks[j]) if self.c.job_width_min[j] else size
        whole = SimpleNamespace(slot=self._slot(j), size=size, stages=stages, first=stages[0])
        roots = [g for g in stages if not self.parents[g]]
        if self.unit or size == 0 or sum(self.size[g] for g in roots) != size:
            return [whole]
        like = {}
        for g in roots:
            like.setdefault((tuple(self.demand[g]), tuple(self.allowed_on[g])), []).append(g)
        if len(like) == 1:
            return [whole]
        components = [
            SimpleNamespace(
                slot=self.demand[own[0]],
                size=sum(self.size[g] for g in own),
                stages=[*own],
                first=own[0],
            )
            for own in like.values()
        ]
        is_single = bool(self.c.job_one_per_node[j])
        components.sort(key=lambda k: (self._slots_when_empty(k, is_single), k.first))
        for g in (g for g in stages if g not in roots):
            holder = next((k for k in components if self._may_run_in(g, k)), None)
            if holder is None:
                return [whole]
            holder.stages.append(g)
        return components

    def _slots_when_empty(self, component, is_single):
        total = 0
        for m, capacity in enumerate(self.capacity):
            if self.allowed_on[component.first][m]:
                pairs = zip(capacity, component.slot, strict=True)
                fits = [have // need for have, need in pairs if need > 0]
                n = min([2**31 - 1, *fits, self._slots_by_devices(component.slot, m)])
                total += min(n, 1) if is_single else n
        return total

    def _may_run_in(self, g, component):
        """Tell whether the slots of a component hold a task of stage g, wherever they are."""
        fits = all(a <= b for a, b in zip(self.demand[g], component.slot, strict=True))
        machines = range(len(self.capacity))
        return fits and all(
            self.allowed_on[g][m] for m in machines if self.allowed_on[component.first][m]
        )

    def _is_heterogeneous(self, j):
        return len(self.components[j]) > 1

    def _component_of(self, g):
        components = self.components[int(self.c.stage_job[g])]
        return next(k for k, component in enumerate(components) if g in component.stages)

    def _total(self, j):
        """Return what all slots of gang j take together."""
        components = self.components[j]
        if self._is_elastic(j):
            return [int(self.c.job_width_min[j]) * int(amount) for amount in components[0].slot]
        return [sum(k.size * int(k.slot[r]) for k in components) for r in range(len(self.total))]

    def _slot_of(self, g):
        """Return the slot in which a task of stage g runs."""
        return self.components[int(self.c.stage_job[g])][self._component_of(g)].slot

    def _may_hold(self, j, k, m):
        """Tell whether machine m is of those for slots of component k of gang j."""
        component = self.components[j][k]
        stages = component.stages if len(self.components[j]) == 1 else [component.first]
        return self.unit or all(self.allowed_on[g][m] for g in stages)

    def _gang_fit(self, j, barred=()):
        """Return machine and component of each slot that gang j would get, or None.

        Component by component: machines in the order of their scores for its first slot, each with
        as many as fit. Where that does not suffice for several, in the order of the machines.
        """
        if self._is_elastic(j):
            return self._elastic_fit(j, barred)
        if not self._within_cap(j, self._total(j), 1):
            return None
        rule = Machine.FIRST if self.unit else self.plan.choice.machine

        def search(outside):
            places = self._place_components(j, {*barred, *outside}, rule)
            if places is None and self._is_heterogeneous(j):
                places = self._place_components(j, {*barred, *outside}, Machine.FIRST)
            return places

        return self._in_domains(j, search, lambda m: 0 if m in barred else self._slots_on(j, 0, m))

    def _place_components(self, j, barred, rule, limits=None):
        """Place components in turn; `limits`: the most slots of some machines, others have none."""
        free, devices = copy.deepcopy(self.free), copy.deepcopy(self.devices)
        places = []
        for k, component in enumerate(self.components[j]):
            ranked = []
            for m in range(len(self.free)):
                n_slots = 0 if m in barred else self._slots_on(j, k, m)
                if self._is_single(j) and any(m == other for other, _ in places):
                    n_slots = 0
                if limits is not None:
                    placed = sum(m == other for other, _ in places)
                    n_slots = min(n_slots, limits.get(m, 0) - placed)
                if n_slots > 0:
                    score = 0
                    if rule != Machine.FIRST:
                        score = self._machine_score(rule, component.first, component.slot, m)
                    ranked.append((score, m, n_slots))
            machines = [m for _, m, n_slots in sorted(ranked) for _ in range(n_slots)]
            machines = machines[: component.size]
            places += [(m, k) for m in machines]
            if len(machines) < component.size:
                places = None
                break
            if self._is_heterogeneous(j):
                for m in machines:
                    self._acquire_devices(component.slot, m)
                    self.free[m] = [
                        a - b for a, b in zip(self.free[m], component.slot, strict=True)
                    ]
        self.free, self.devices = free, devices
        return places

    def _slots_on(self, j, k, m):
        """Return how many slots of component k of gang j find room on machine m."""
        component = self.components[j][k]
        if m in self.down or not self._may_hold(j, k, m) or self._is_closed_now(j, m):
            return 0
        if self._is_beside_itself(j, m) or not self._is_open_to_flavor(m):
            return 0
        slot = component.slot
        room = [max(self.free[m][r], 0) // slot[r] for r in self.deciding if slot[r] > 0]
        n_most = 1 if self._is_single(j) else component.size
        return min([*room, self._slots_by_devices(slot, m), n_most, math.inf])

    def _is_single(self, j):
        """Tell whether no two tasks or slots of j share a machine; each slot of a pool is one."""
        return not self.unit and bool(self.c.job_one_per_node[j])

    def _is_beside_itself(self, j, m):
        """Tell whether job j, of which no two tasks share a machine, has one or a slot on m."""
        if not self._is_single(j):
            return False
        tasks = [other for _, _, g, other, _, _ in self.running if self.c.stage_job[g] == j]
        return m in tasks or any(other == m for other, _, _ in self.idle[j] or [])
