"""Partitions of the naive simulator: which jobs they admit, their machines, and their tiers."""

from __future__ import annotations

import dataclasses
import math


def named(columns, cluster, j):
    """Return the partitions that job j names, or the default one; none: it runs anywhere."""
    text = columns.partitions[columns.job_partition[j]] or cluster.default_partition
    return text.split("|") if text else []


def fits_rule(columns, cluster, j, name, requested_s):
    """Tell whether the cluster has the partition, and it admits job j with that request."""
    if not any(name in own for own in cluster.partitions):
        return False
    if name not in cluster.rules:
        return True
    rule = cluster.rules[name]
    n_nodes = columns.job_n_nodes[j] or columns.job_min_tasks[j] or 1
    return not (
        (rule.max_time_s is not None and requested_s > rule.max_time_s)
        or (rule.min_nodes is not None and n_nodes < rule.min_nodes)
        or (rule.max_nodes is not None and n_nodes > rule.max_nodes)
    )


def with_default_times(columns, cluster):
    """Return the columns, in which each job has its partition's time if it requests none."""
    requested = columns.job_requested.copy()
    for j, requested_s in enumerate(requested.tolist()):
        if not math.isnan(requested_s):
            continue
        admit = [n for n in named(columns, cluster, j) if fits_rule(columns, cluster, j, n, 0.0)]
        rule = cluster.rules.get(admit[0]) if admit else None
        times = [] if rule is None else [rule.default_time_s, rule.max_time_s]
        requested[j] = next((t for t in times if t is not None), math.nan)
    return dataclasses.replace(columns, job_requested=requested)


class Partitioning:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_partitions(self, cluster):
        self.admitted = [
            [name for name in named(self.c, cluster, j)
             if fits_rule(self.c, cluster, j, name, float(self.c.job_requested[j]))]
            for j in range(self.n_jobs)
        ]  # fmt: skip
        self.tier = [
            max(
                (cluster.rules[name].tier if name in cluster.rules else 1 for name in names),
                default=1,
            )
            for names in self.admitted
        ]

    def _init_exclusive(self):
        """Let exclusive jobs take all of a resource of each machine, and the others a bit of it."""
        self.whole, rules = None, self.world.cluster.rules
        self.exclusive = exclusive = [
            not self.unit
            and (
                bool(self.c.job_exclusive[j])
                or any(name in rules and rules[name].exclusive for name in self.admitted[j])
            )
            for j in range(self.n_jobs)
        ]
        if any(exclusive):
            self.whole, n_tasks = len(self.capacity[0]), len(self.c.task_duration)
            self.demand = [
                [*demand, n_tasks if exclusive[j] else 1]
                for demand, j in zip(self.demand, self.c.stage_job, strict=True)
            ]
            self.capacity = [[*row, n_tasks] for row in self.capacity]

    def _shares(self, used):
        """Return the share of each resource but that of whole machines."""
        pairs = zip(used, self.total, strict=True)
        shares = [u * (1.0 / t) if t else 0.0 for u, t in pairs]
        return shares[: self.whole]

    def _is_admitted(self, j):
        """Tell whether job j may be submitted: it names no partition, or one that admits it."""
        return bool(self.admitted[j] or not named(self.c, self.world.cluster, j))

    def _in_partition(self, cluster, j, m):
        """Tell whether machine m is in a partition in which job j may run."""
        if not cluster.partitions or not named(self.c, cluster, j):
            return True
        return any(
            name in cluster.partitions[cluster.machine_class[m]] for name in self.admitted[j]
        )

    def _tier_of(self, g):
        """Return the tier of a stage's job, the least for the highest, as part of a key."""
        return (-self.tier[self.c.stage_job[g]],)
