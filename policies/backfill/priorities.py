"""Priorities of jobs as Slurm's multifactor plugin calculates them.

Source: Slurm's page on the plugin (https://slurm.schedmd.com/priority_multifactor.html) and the
manual of slurm.conf (``PriorityWeightAge`` and so on), held against ``sprio`` of version 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from policies.backfill.fair_share import Shares, Usage
from policies.base import Policy
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.parameters import NotNegative, Positive
from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, World
from sim.workload.columns import Columns
from sim.workload.tables import names, values

NO_ACCOUNT = "default"
"""The account of all users, and the QOS of all jobs, where a workload has none."""
TIER = 2.0**32
"""Above any priority, which has 32 bits."""


@dataclass(frozen=True)
class Prioritizing(Policy):
    """Settings of a site's priorities.

    Attributes
    ----------
    weight_age, weight_job_size, weight_fair_share, weight_partition, weight_qos : float
        Weights of the factors.
    max_age_s : float
        Wait at which the factor of age is 1, s.
    favor_small : bool
        False: the factor of size is the mean of the job's part of all CPUs and one node's of all
        nodes. True: one less that.
    fair_tree : bool
        True: the factor of fair share is the rank in Fair Tree. False: 2^(-usage over share).
    half_life_s : float
        Time in which usage is halved, s; 0 for never.
    calc_period_s : float
        Time between calculations, s.
    shares : mapping of str to int
        Shares of an account, or of a user in it (``account/user``); 1 for others.
    parents : mapping of str to str
        The account above an account; the root for others.
    partitions : mapping of str to int
        Job factor of each partition, 1 for others; the factor is that over the largest.
    tiers : mapping of str to int
        Tier of each partition, 1 for others; all jobs of a higher tier go first.
    qos : mapping of str to int
        Priority of each QOS, 0 for others; the factor is that over the largest.
    """

    weight_age: NotNegative = 1000.0
    weight_job_size: NotNegative = 1000.0
    weight_fair_share: NotNegative = 10_000.0
    weight_partition: NotNegative = 1000.0
    weight_qos: NotNegative = 1000.0
    max_age_s: Positive = 7 * 86_400.0
    favor_small: bool = False
    fair_tree: bool = True
    half_life_s: NotNegative = 7 * 86_400.0
    calc_period_s: Positive = 300.0
    shares: Mapping[str, int] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    tiers: Mapping[str, int] = field(default_factory=dict)
    qos: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("shares", "partitions", "tiers", "qos"):
            for key, value in getattr(self, name).items():
                if not 0 <= value < TIER:
                    raise InputError(
                        f"policy {self.name}: {name} of {key!r} must be 0 to 4294967295, "
                        f"not {value!r}"
                    )


class Priorities:
    """Priorities of the jobs of a run, and what they are made of.

    Attributes
    ----------
    key : (J,) float64
        Smallest first: by tier, then by priority; 0 before submission.
    n_waiting : int
        Number of waiting jobs at the last update.
    next_s : float
        Time of the next calculation, s.
    """

    def __init__(self, policy: Prioritizing, world: World) -> None:
        columns = world.columns
        self.policy, self.view = policy, world.view
        accounts, users = category(columns, "account"), columns.user_names
        pairs = [
            (accounts[1][a], users[u])
            for a, u in zip(accounts[0].tolist(), columns.job_user.tolist(), strict=True)
        ]
        self.shares = Shares(pairs, policy.shares, policy.parents)
        index = {pair: i for i, pair in enumerate(self.shares.associations)}
        self.association: I4 = np.array([index[pair] for pair in pairs], dtype=np.int32)
        self.usage = Usage(len(index), policy.half_life_s)
        self.cpus = task_cpus(columns, world.cluster)  # of one task, then of the allocation
        self.is_gang = columns.job_min_tasks > 0
        width = np.where(self.is_gang, columns.job_min_tasks, columns.job_n_tasks)
        self.constant = self._constant(columns, world.cluster, width * self.cpus)
        self.cpus = np.where(self.is_gang, width, 1) * self.cpus
        self.counted_s = np.zeros(len(width))  # task seconds of other jobs
        tier = [policy.tiers.get(name, 1) for name in columns.queue_names]
        self.tier: F8 = np.array(tier, dtype=np.float64)[columns.job_queue]
        self.present = np.zeros(0, dtype=np.int32)
        self.key = np.zeros(len(width))
        self.n_waiting = 0
        self.n_calculated = 0  # number of the last calculation; the first is number 0, at 0 s
        if policy.fair_tree:
            self.factor = self.shares.fair_tree(self.usage.cpu_s)
        else:
            self.factor = np.full(len(index), np.nan)
            self.above = self.shares.effective_above(self.usage.cpu_s)

    @property
    def next_s(self) -> float:
        """Time of the next calculation, s."""
        return (self.n_calculated + 1) * self.policy.calc_period_s

    def update(self, batch: Batch) -> I4:
        """Process the events of an instant; return the jobs with new priorities."""
        n = self._n_due(batch.now) - self.n_calculated
        if n > 0:
            self.catch_up(n)
        ended = (batch.kind == Event.JOB_DONE) | (batch.kind == Event.JOB_FAILED)
        if ended.any():
            self._end(batch.row[ended], batch.now)
        arrived = batch.rows(Event.JOB_ARRIVED)
        waiting = self._waiting()
        self.present = np.concatenate([self.present, arrived])
        self.n_waiting = len(waiting) + len(arrived)
        changed = np.concatenate([waiting, arrived]) if n > 0 else arrived
        users = self.association[arrived]
        users = users[np.isnan(self.factor[users])]
        if len(users):
            cpu_s = self.usage.cpu_s
            self._set_classic(users, cpu_s[users], np.full(len(users), np.cumsum(cpu_s)[-1]))
        self.key[changed] = -self.tier[changed] * TIER - self.priority(changed)
        return changed

    def priority(self, jobs: I4) -> F8:
        """Return the priorities of jobs as of the last calculation, or of a later submission."""
        priority: F8 = np.floor(np.maximum(sum(self.weighted(jobs).values()), 1.0))
        return priority

    def weighted(self, jobs: I4) -> dict[str, F8]:
        """Return each factor times its weight, by the name of the factor."""
        policy = self.policy
        age_s = np.maximum(self.usage.at_s - self.view["submit"][jobs], 0.0)
        return {
            "age": policy.weight_age * np.minimum(age_s / policy.max_age_s, 1.0),
            "fair_share": policy.weight_fair_share * self.factor[self.association[jobs]],
            **{name: column[jobs] for name, column in self.constant.items()},
        }

    def _constant(self, columns: Columns, cluster: Cluster, cpus: F8) -> dict[str, F8]:
        policy = self.policy
        total, n_nodes = cluster_cpus(cluster)
        size = (cpus / total + 1 / n_nodes) / 2
        size = np.clip(1 - size if policy.favor_small else size, 0.0, 1.0)
        factors = [policy.partitions.get(name, 1) for name in columns.queue_names]
        partition = np.array(factors)[columns.job_queue]
        code, qos_names = category(columns, "qos")
        qos = np.array([policy.qos.get(name, 0) for name in qos_names])[code]
        return {
            "job_size": policy.weight_job_size * size,
            "partition": policy.weight_partition
            * (partition / max([1, *policy.partitions.values(), *factors])),
            "qos": policy.weight_qos * (qos / max([1, *policy.qos.values()])),
        }

    def _waiting(self) -> I4:
        """Return the jobs that wait, in the order of submission."""
        waiting: I4 = self.present[np.isnan(self.view["start"][self.present])]
        return waiting

    def _n_due(self, now: float) -> int:
        """Return the number of the last calculation until now."""
        period_s = self.policy.calc_period_s
        n = int(now // period_s)
        if (n + 1) * period_s <= now:  # the quotient is rounded
            return n + 1
        return n - 1 if n * period_s > now else n

    def catch_up(self, n: int) -> None:
        """Calculate usage `n` times, every period, and the last time the factors, too."""
        period_s, usage = self.policy.calc_period_s, self.usage
        if n > 1:
            association, cpus, start_s = self._running()
            while n > 1 and (start_s > usage.at_s).any():
                usage.decay_to(self.next_s, association, cpus, start_s)
                self.n_calculated += 1
                n -= 1
            usage.decay_often(n - 1, period_s, association, cpus)
            self.n_calculated += n - 1
        self.calculate(self.next_s)
        self.n_calculated += 1

    def calculate(self, at_s: float) -> None:
        """Calculate usage and the factors of fair share at a time, s."""
        if not self.policy.fair_tree:
            self.above = self.shares.effective_above(self.usage.cpu_s)
        added = self.usage.decay_to(at_s, *self._running())
        if self.policy.fair_tree:
            self.factor = self.shares.fair_tree(self.usage.cpu_s)
        else:
            self._classic(added)

    def _running(self) -> tuple[I4, F8, F8]:
        """Return association, CPUs and start of running gangs; count the ended tasks of others."""
        jobs = self.present[self.view["start"][self.present] >= 0]
        is_gang = self.is_gang[jobs]
        self._count_tasks(jobs[~is_gang])
        self.gangs = jobs[is_gang]
        return self.association[self.gangs], self.cpus[self.gangs], self.view["start"][self.gangs]

    def _classic(self, added: F8) -> None:
        """Set the classic factors, given what running gangs added to the usage.

        As the plugin does: usage of accounts is from before this calculation. Jobs are looked at in
        the order of submission, running ones to add to the usage, and the first waiting one of a
        user to calculate the factor. That of users with no waiting job is left to their next job.
        """
        running, waiting = self.gangs, self._waiting()
        first = np.full(len(self.factor), len(self.key))
        np.minimum.at(first, self.association[waiting], waiting)
        owner = self.association[running]
        later = np.where(running < first[owner], 0.0, added)
        own = self.usage.cpu_s - np.bincount(owner, later, len(first))
        order = np.argsort(running, kind="stable")
        from_row = np.append(np.cumsum(added[order][::-1])[::-1], 0.0)
        users = np.flatnonzero(first < len(self.key))
        after = from_row[np.searchsorted(running[order], first[users])]
        self.factor = np.full(len(first), np.nan)
        self._set_classic(users, own[users], np.cumsum(self.usage.cpu_s)[-1] - after)

    def _set_classic(self, users: I4 | I8, own: F8, total: F8) -> None:
        part = np.divide(own, total, out=np.zeros(len(own)), where=total > 0)
        self.factor[users] = self.shares.classic(users, part, self.above[users])

    def _end(self, jobs: I4, now: float) -> None:
        """Add the usage of jobs since the last calculation, and forget them."""
        self._count_tasks(jobs[~self.is_gang[jobs]])
        gangs = jobs[self.is_gang[jobs] & (self.view["start"][jobs] >= 0)]
        since_s = np.maximum(self.view["start"][gangs], self.usage.at_s)
        self.usage.add_run(self.association[gangs], self.cpus[gangs], now - since_s)
        for j in jobs.tolist():  # rarely more than one
            self.present = self.present[self.present != j]

    def _count_tasks(self, jobs: I4) -> None:
        if not len(jobs):
            return
        work_s = self.view["done_work"][jobs]
        new_s = work_s - self.counted_s[jobs]
        self.usage.add(self.association[jobs], new_s * self.cpus[jobs])
        self.counted_s[jobs] = work_s


def category(columns: Columns, name: str) -> tuple[I4, tuple[str, ...]]:
    """Return codes, (J,), and names of an optional column of jobs; `NO_ACCOUNT` without it."""
    jobs = columns.features.jobs
    if name in jobs.column_names:
        return values(jobs, name), names(jobs, name)
    return np.zeros(jobs.num_rows, dtype=np.int32), (NO_ACCOUNT,)


def task_cpus(columns: Columns, cluster: Cluster) -> F8:
    """Return the CPUs of a task of each job, the most of its stages, (J,); slots on a pool."""
    n_jobs = len(columns.job_submit)
    if cluster.unit:
        return np.ones(n_jobs)
    cpus = columns.stage_demand_f[:, columns.resources.index(cpu_resource(cluster))]
    per_task: F8 = np.maximum.reduceat(cpus, columns.job_stage0[:-1])
    return per_task


def cluster_cpus(cluster: Cluster) -> tuple[float, float]:
    """Return numbers of CPUs and of nodes; each slot of a pool is a node of one CPU."""
    if cluster.unit:
        return float(cluster.capacity[0, 0]), float(cluster.capacity[0, 0])
    cpu = cluster.resources.index(cpu_resource(cluster))
    return float(cluster.capacity[:, cpu].sum()), float(len(cluster.capacity))


def cpu_resource(cluster: Cluster) -> str:
    """Return the resource that usage counts: ``cpu``, or else the first."""
    return "cpu" if "cpu" in cluster.resources else cluster.resources[0]
