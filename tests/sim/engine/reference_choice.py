"""Machine classes, devices and machine choice of the naive simulator: plain lists, recomputed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sim.engine.plan import Device, Machine

INF = math.inf


class Choosing:
    """Mix-in of `tests.sim.engine.reference`, which sets demand, capacity, free and deciding."""

    def _init_devices(self, cluster, quantum):
        c = self.c
        machines = range(len(self.capacity))
        self.device, self.device_quanta = None, 1
        if cluster.devices:
            self.device = cluster.resources.index(cluster.devices)
            self.device_quanta = round(1 / float(quantum[self.device]))
            for m in machines:
                self.capacity[m][self.device] = (
                    round(cluster.capacity[m][self.device]) * self.device_quanta
                )
        self.devices = [
            [self.device_quanta]
            * (self.capacity[m][self.device] // self.device_quanta if cluster.devices else 0)
            for m in machines
        ]
        class_of_machine = [cluster.classes[k] for k in cluster.machine_class] or [""] * len(
            self.capacity
        )
        texts = [c.runs_on[k] for k in c.stage_runs_on]
        self.allowed_on = [
            [
                (t == "" or name in t.split("|")) and self._in_partition(cluster, int(j), m)
                for m, name in enumerate(class_of_machine)
            ]
            for t, j in zip(texts, c.stage_job, strict=True)
        ]
        self.planned_on = [
            {
                m
                for m, name in enumerate(class_of_machine)
                if text and name in text.split("|") and self._in_partition(cluster, j, m)
            }
            for j, text in enumerate(self._plans_on())
        ]
        self.class_of_machine = class_of_machine
        self.unit = cluster.unit
        self.devices_of_task = {}  # of each task, the devices that it got last

    def _plans_on(self):
        jobs = self.c.features.jobs
        known = "plans_on" in jobs.column_names
        return jobs["plans_on"].to_pylist() if known else [""] * self.n_jobs

    def _device_demand(self, demand):
        """Return the number of devices that a demand takes, and the amount of each."""
        quanta = 0 if self.device is None else demand[self.device]
        return (
            (1, quanta)
            if 0 < quanta < self.device_quanta
            else (quanta // self.device_quanta, self.device_quanta)
        )

    def _with_room(self, m, amount):
        return [d for d, free in enumerate(self.devices[m]) if free >= amount]

    def _slots_by_devices(self, demand, m):
        """Return how many tasks of a demand find free devices on machine m, together."""
        n, amount = self._device_demand(demand)
        if n == 0:
            return INF
        if amount < self.device_quanta:
            return sum(free // amount for free in self.devices[m])
        return len(self._with_room(m, amount)) // n

    def _can_use(self, g, m):
        j = int(self.c.stage_job[g])
        if self._is_closed_now(j, m) or self._is_beside_itself(j, m):
            return False
        if not self._is_open_to_flavor(m):
            return False
        return self.unit or (
            self.allowed_on[g][m] and self._slots_by_devices(self.demand[g], m) >= 1
        )

    def _devices_for(self, demand, m):
        n, amount = self._device_demand(demand)
        if n == 0 or self.unit:
            return []
        with_room = self._with_room(m, amount)
        if amount == self.device_quanta:
            return with_room[:n]
        return [self._device_for(demand, m, with_room)]

    def _device_for(self, demand, m, with_room):
        rule = self.plan.choice.device
        if rule == Device.TIGHTEST:
            return min(with_room, key=lambda d: (self.devices[m][d], d))
        if rule == Device.FRAGMENTATION:
            return min(with_room, key=lambda d: (self._increase(demand, m, [d]), d))
        return with_room[0]

    def _acquire_devices(self, demand, m):
        """Acquire devices on machine m for a task or slot of that demand; return them."""
        devices = self._devices_for(demand, m)
        for d in devices:
            self.devices[m][d] -= self._device_demand(demand)[1]
        return devices

    def _release_devices(self, demand, m, devices):
        for d in devices:
            self.devices[m][d] += self._device_demand(demand)[1]

    def _best_machine(self, g, demand, machines):
        rule = self.plan.choice.machine
        if rule == Machine.FIRST or self.unit:
            return machines[0]
        return min(machines, key=lambda m: (self._machine_score(rule, g, demand, m), m))

    def _machine_score(self, rule, g, demand, m):
        if rule == Machine.PACKED:
            return self._packed(demand, m)
        if rule == Machine.FASTEST:
            return -self._speed(g, m)
        if rule == Machine.FRAGMENTATION:
            amount = self._device_demand(demand)[1]
            if amount < self.device_quanta and self.plan.choice.device == Device.FRAGMENTATION:
                return min(self._increase(demand, m, [d]) for d in self._with_room(m, amount))
            return self._increase(demand, m, self._devices_for(demand, m))
        score = 0.0
        for r in self.deciding:
            if r == self.whole:
                continue
            scale = 1.0 / max(max(row[r] for row in self.capacity), 1)
            free, amount = self.free[m][r], demand[r]
            if rule == Machine.BEST_FIT:
                score += (free - amount) * scale
            else:
                score += (free * scale) * (amount * scale)
        return score

    def _packed(self, demand, m):
        """Score by case, then the less is free, or the fewer are idle, the better."""
        n = self._device_demand(demand)[0]
        if n == 0:
            return (0, 0)
        free = [self.devices[m][d] for d in self._devices_for(demand, m)]
        if max(free) < self.device_quanta:
            return (0, Fraction(free[0], self.device_quanta))
        if min(self.devices[m]) == self.device_quanta:
            return (2, len(self.devices[m]))
        return (1, n)

    def _increase(self, demand, m, devices):
        before = self._fragmentation(m)
        amount = self._device_demand(demand)[1]
        self.free[m] = [f - d for f, d in zip(self.free[m], demand, strict=True)]
        for d in devices:
            self.devices[m][d] -= amount
        after = self._fragmentation(m)
        for d in devices:
            self.devices[m][d] += amount
        self.free[m] = [f + d for f, d in zip(self.free[m], demand, strict=True)]
        return after - before

    def _fragmentation(self, m):
        mix, total = self.plan.choice.mix, 0.0
        for demand, allowed, weight in zip(
            mix.demand.tolist(), mix.allowed.tolist(), mix.weight.tolist(), strict=True
        ):
            total += weight * self._unusable(demand, allowed, m)
        return total

    def _unusable(self, demand, allowed, m):
        n, amount = self._device_demand(demand)
        runs = allowed >> self._class_of(m) & 1
        room = all(d <= max(f, 0) for d, f in zip(demand, self.free[m], strict=False))
        with_room = self._with_room(m, amount)
        if n == 0 or not runs or not room or len(with_room) < n:
            return sum(self.devices[m])
        return sum(self.devices[m]) - sum(self.devices[m][d] for d in with_room)

    def _class_of(self, m):
        codes = self.world.cluster.machine_class
        return int(codes[m]) if len(codes) else 0

    def _device_bits(self):
        """Return the devices that each task got last, as bits, by task."""
        bits = np.zeros(len(self.c.task_duration), np.int64)
        for task, devices in self.devices_of_task.items():
            bits[task] = sum(1 << d for d in devices)
        return bits
