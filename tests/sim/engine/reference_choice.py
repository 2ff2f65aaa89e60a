"""The naive simulator's classes of machines, devices, and choice: lists, looked at anew."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sim.engine.plan import Device, Machine


class Choosing:
    """What `tests.sim.engine.reference` mixes in; it sets up demand, capacity, free and looked."""

    def _set_up_devices(self, cluster, quantum):
        c = self.c
        machines = range(len(self.capacity))
        self.device, self.per = None, 1
        if cluster.devices:
            self.device = cluster.resources.index(cluster.devices)
            self.per = round(1 / float(quantum[self.device]))
            for m in machines:
                self.capacity[m][self.device] = round(cluster.capacity[m][self.device]) * self.per
        self.devices = [
            [self.per] * (self.capacity[m][self.device] // self.per if cluster.devices else 0)
            for m in machines
        ]
        named = [cluster.classes[k] for k in cluster.machine_class] or [""] * len(self.capacity)
        texts = [c.runs_on[k] for k in c.stage_runs_on]
        self.may_run = [[t == "" or name in t.split("|") for name in named] for t in texts]
        self.named = named
        self.unit = cluster.unit
        self.given = {}  # of each running task, the devices of its machine
        self.last_given = {}

    def _wants(self, demand):
        """How many devices, and how much of each, a demand takes."""
        wanted = 0 if self.device is None else demand[self.device]
        return (1, wanted) if 0 < wanted < self.per else (wanted // self.per, self.per)

    def _with_room(self, m, amount):
        return [d for d, free in enumerate(self.devices[m]) if free >= amount]

    def _may_use(self, g, m):
        n, amount = self._wants(self.demand[g])
        return self.unit or (self.may_run[g][m] and len(self._with_room(m, amount)) >= n)

    def _give_to(self, g, m):
        n, amount = self._wants(self.demand[g])
        if n == 0 or self.unit:
            return []
        with_room = self._with_room(m, amount)
        if amount == self.per:
            return with_room[:n]
        return [self._device_for(g, m, with_room)]

    def _device_for(self, g, m, with_room):
        rule = self.plan.choice.device
        if rule == Device.TIGHTEST:
            return min(with_room, key=lambda d: (self.devices[m][d], d))
        if rule == Device.FRAGMENTATION:
            return min(with_room, key=lambda d: (self._increase(g, m, [d]), d))
        return with_room[0]

    def _start_on_devices(self, task, g, m):
        self.given[task] = self._give_to(g, m)
        self.last_given[task] = self.given[task]
        for d in self.given[task]:
            self.devices[m][d] -= self._wants(self.demand[g])[1]

    def _leave_devices(self, task, g, m):
        for d in self.given.pop(task, []):
            self.devices[m][d] += self._wants(self.demand[g])[1]

    def _chosen(self, g, machines):
        rule = self.plan.choice.machine
        if rule == Machine.FIRST or self.unit:
            return machines[0]
        return min(machines, key=lambda m: (self._score_of(rule, g, m), m))

    def _score_of(self, rule, g, m):
        if rule == Machine.PACKED:
            return self._packed(g, m)
        if rule == Machine.FRAGMENTATION:
            amount = self._wants(self.demand[g])[1]
            if amount < self.per and self.plan.choice.device == Device.FRAGMENTATION:
                return min(self._increase(g, m, [d]) for d in self._with_room(m, amount))
            return self._increase(g, m, self._give_to(g, m))
        score = 0.0
        for r in self.looked:
            most = 1.0 / max(max(row[r] for row in self.capacity), 1)
            free, demand = self.free[m][r], self.demand[g][r]
            if rule == Machine.BEST_FIT:
                score += (free - demand) * most
            else:
                score += (free * most) * (demand * most)
        return score

    def _packed(self, g, m):
        """By case, then the less is free, or the fewer are idle, the better."""
        n = self._wants(self.demand[g])[0]
        if n == 0:
            return (0, 0)
        free = [self.devices[m][d] for d in self._give_to(g, m)]
        if max(free) < self.per:
            return (0, Fraction(free[0], self.per))
        if min(self.devices[m]) == self.per:
            return (2, len(self.devices[m]))
        return (1, n)

    def _increase(self, g, m, devices):
        before = self._fragmentation(m)
        amount = self._wants(self.demand[g])[1]
        self.free[m] = [f - d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        for d in devices:
            self.devices[m][d] -= amount
        after = self._fragmentation(m)
        for d in devices:
            self.devices[m][d] += amount
        self.free[m] = [f + d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        return after - before

    def _fragmentation(self, m):
        mix, total = self.plan.choice.mix, 0.0
        for demand, allowed, weight in zip(
            mix.demand.tolist(), mix.allowed.tolist(), mix.weight.tolist(), strict=True
        ):
            total += weight * self._of_no_use(demand, allowed, m)
        return total

    def _of_no_use(self, demand, allowed, m):
        n, amount = self._wants(demand)
        runs = allowed >> self._class_of(m) & 1
        room = all(d <= max(f, 0) for d, f in zip(demand, self.free[m], strict=True))
        with_room = self._with_room(m, amount)
        if n == 0 or not runs or not room or len(with_room) < n:
            return sum(self.devices[m])
        return sum(self.devices[m]) - sum(self.devices[m][d] for d in with_room)

    def _class_of(self, m):
        codes = self.world.cluster.machine_class
        return int(codes[m]) if len(codes) else 0

    def _devices_given(self):
        """Which devices each task got last, as bits, by task."""
        bits = np.zeros(len(self.c.task_duration), np.int64)
        for task, devices in self.last_given.items():
            bits[task] = sum(1 << d for d in devices)
        return bits
