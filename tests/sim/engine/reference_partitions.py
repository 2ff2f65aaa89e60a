"""Partitions of the naive simulator: their machines, and their tiers."""

from __future__ import annotations


class Partitioning:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_partitions(self, cluster):
        self.tier = [self._highest_tier(cluster, j) for j in range(self.n_jobs)]

    def _named(self, cluster, j):
        """Return the partitions that job j names, or the default one; none: it runs anywhere."""
        text = self.c.partitions[self.c.job_partition[j]] or cluster.default_partition
        return text.split("|") if text else []

    def _in_partition(self, cluster, j, m):
        """Tell whether machine m is in a partition in which job j may run."""
        if not cluster.partitions:
            return True
        own = cluster.partitions[cluster.machine_class[m]]
        named = self._named(cluster, j)
        return not named or any(name in own for name in named)

    def _highest_tier(self, cluster, j):
        tiers = [1 if name not in cluster.rules else cluster.rules[name].tier
                 for name in self._named(cluster, j)
                 if any(name in own for own in cluster.partitions)]  # fmt: skip
        return max(tiers, default=1)

    def _tier_of(self, g):
        """Return the tier of a stage's job, the least for the highest, as part of a key."""
        return (-self.tier[self.c.stage_job[g]],)
