"""Domains of gangs of the naive simulator: each is tried by itself, from the narrowest level on."""

from __future__ import annotations


class Topologies:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_topology(self):
        self.topology = self.world.cluster.topology
        self.crossing = [1.0] * self.n_jobs

    def _levels_of(self, j):
        """Return the level that gang j requires, and the narrowest it asks for; -1 for none."""
        if self.unit or not self.c.job_min_tasks[j]:
            return -1, -1
        level_of = {name: level for level, name in enumerate(self.topology.levels)}
        required = self.c.levels_required[self.c.job_level_required[j]]
        preferred = self.c.levels_preferred[self.c.job_level_preferred[j]]
        if not required and not preferred:
            preferred = self.topology.preferred
        required, preferred = level_of.get(required, -1), level_of.get(preferred, -1)
        return required, max(required, preferred)

    def _is_searched(self, j):
        return self._is_heterogeneous(j) or self._levels_of(j)[1] >= 0

    def _in_domains(self, j, search, slots):
        """Return what a search finds in the domains that gang j asks for; None if it finds none.

        `search` takes the machines that are left out; `slots` tells how many slots of the first
        component find room on a machine.
        """
        required, narrowest = self._levels_of(j)
        machines = range(len(self.free))
        if narrowest < 0:
            return search(set())
        n_slots = self.components[j][0].size
        count = [min(slots(m), n_slots) for m in machines]

        def sizes(level):
            domain = self.topology.domain[level].tolist()
            return {d: sum(count[m] for m in machines if domain[m] == d) for d in {*domain}}

        for level in range(narrowest, max(required, 0) - 1, -1):
            domain, size = self.topology.domain[level].tolist(), sizes(level)
            for d in sorted(size, key=lambda d: (size[d], d)):
                if size[d] >= n_slots:
                    places = search({m for m in machines if domain[m] != d})
                    if places is not None:
                        return places
        if required >= 0:
            return None
        domain, size, within = self.topology.domain[narrowest].tolist(), sizes(narrowest), set()
        for d in sorted(size, key=lambda d: (-size[d], d)):
            if size[d] > 0:
                within.add(d)
                if sum(size[other] for other in within) >= n_slots:
                    places = search({m for m in machines if domain[m] not in within})
                    if places is not None:
                        return places
        return search(set())

    def _note_crossing(self, j, places):
        """Note how much slower gang j is for the widest level whose domains it crosses."""
        self.crossing[j] = 1.0
        for level, factor in enumerate(self.topology.factor.tolist()):
            if len({int(self.topology.domain[level][m]) for m, _ in places}) > 1:
                self.crossing[j] = factor
                return
