"""Priorities of jobs as Slurm's multifactor plugin calculates them.

Source: Slurm's page on the plugin (https://slurm.schedmd.com/priority_multifactor.html) and the
manual of slurm.conf (``PriorityWeightAge`` and so on), held against ``sprio`` of version 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policies.backfill.fair_share import Shares
from policies.base import Policy
from policies.preempting import levels_of
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.parameters import NotNegative, Positive
from sim.cluster.cluster import Cluster
from sim.cluster.exclusive import exclusive_jobs
from sim.engine.plan import Batch, World
from sim.workload.columns import Columns
from sim.workload.tables import names, values

NO_ACCOUNT = "default"
"""The account of all users, and the QOS of all jobs, where a workload has none."""
TIER = 2.0**32
"""Above any priority, which has 32 bits."""
FACTORS = ("age", "fair_share", "job_size", "partition", "qos")


@dataclass(frozen=True)
class Prioritizing(Policy):
    """Settings of a site's priorities.

    Attributes
    ----------
    weight_age, weight_job_size, weight_fair_share, weight_partition, weight_qos : float
        Weights of the factors.
    max_age_s : float
        Wait at which the factor of age is 1, s. It counts from when a job is eligible: not while it
        waits for a begin time or other jobs (Slurm without PriorityFlags=ACCRUE_ALWAYS).
    favor_small : bool
        False: the factor of size is the mean of the job's part of all CPUs and its part of all
        nodes: it asks for as many as its tasks if no two may share one, else for one. True: one
        less that.
    fair_tree : bool
        True: the factor of fair share is the rank in Fair Tree. False: 2^(-usage over share).
    half_life_s : float
        Time in which usage is halved, s: 0 for never, or at least 1. The plugin takes whole
        seconds, and its first two terms of the exponential are negative below 0.693.
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
        if 0 < self.half_life_s < 1:
            raise InputError(
                f"policy {self.name}: half_life_s must be 0 for no decay, or a number of at least "
                f"1, not {self.half_life_s!r}"
            )
        for name in ("shares", "partitions", "tiers", "qos"):
            for key, value in getattr(self, name).items():
                if not 0 <= value < TIER:
                    raise InputError(
                        f"policy {self.name}: {name} of {key!r} must be 0 to 4294967295, "
                        f"not {value!r}"
                    )


class Priorities:
    """Priorities of the jobs of a run, and what they are made of.

    Parameters
    ----------
    policy : Prioritizing
        The settings.
    world : World
        The run.
    key : (J,) float64
        The plan's keys, smallest first, by tier, then by priority; overwritten.

    Attributes
    ----------
    associations : tuple of (str, str)
        Account and user of each association, (A,).
    can_defer : bool
        True if ends of jobs may be processed with later events, while `ends_can_wait`.
    arrays : dict of str to array
        The state (`policies.backfill.kernels.priority_record`).
    """

    def __init__(self, policy: Prioritizing, world: World, key: F8) -> None:
        from policies.backfill.kernels import priorities as kernels  # loads numba
        from policies.backfill.kernels import priority_record as record  # loads numba
        from sim.base.jit import compiled  # loads numba

        columns = world.columns
        accounts, users = category(columns, "account"), columns.user_names
        pairs = [
            (accounts[1][a], users[u])
            for a, u in zip(accounts[0].tolist(), columns.job_user.tolist(), strict=True)
        ]
        shares = Shares(pairs, policy.shares, policy.parents)
        self.associations = shares.associations
        index = {pair: i for i, pair in enumerate(self.associations)}
        cpus = task_cpus(columns, world.cluster)
        self._whole = _Whole.exclusive(columns, world)
        is_gang = columns.job_min_tasks > 0
        width = np.where(is_gang, columns.job_min_tasks, columns.job_n_tasks)
        # 0.693 for ln 2, and the first two terms of the exponential, as in the plugin
        decay = 1 - 0.693 / policy.half_life_s if policy.half_life_s else 1.0
        setting = np.zeros(record.N_SETTINGS)
        setting[record.WEIGHT_AGE], setting[record.MAX_AGE] = policy.weight_age, policy.max_age_s
        setting[record.WEIGHT_FAIR_SHARE] = policy.weight_fair_share
        setting[record.PERIOD], setting[record.DECAY] = policy.calc_period_s, decay
        # a plan may be filled for a world without views, which tells the kernel's variant
        view = world.view or {name: np.zeros(len(width)) for name in ("start", "done_work")}
        inputs = shares.arrays | {
            "w_setting": setting,
            "w_start": view["start"],
            "w_done_work": view["done_work"],
            "w_association": np.array([index[pair] for pair in pairs]),
            "w_cpus": self._whole.begin(np.where(is_gang, width, 1) * cpus),
            "w_is_gang": is_gang,
            "w_tier_key": -_tiers(policy, columns) * TIER,
            "w_constant": _constant(policy, columns, world.cluster, width * cpus),
            "out_key": key,
        }
        self._state, self.arrays = record.make(inputs, len(width))
        self._changed: I4 = self.arrays["out_changed"]
        self._times, self._next = self.arrays["state_f"], record.NEXT
        registers = self.arrays["state_i"]
        registers[record.FAIR_TREE] = policy.fair_tree
        # such jobs wait together, once: only then the order of those that wait is all that counts
        registers[record.RIGID] = (
            (columns.job_min_tasks == columns.job_n_tasks).all()
            and len(columns.stage_job) == len(width)
            and not len(world.cluster.outages)
            and not world.fails
        )
        registers[record.LAGS] = bool(world.cluster.launch)
        # deferred ends are told apart by their times
        self.can_defer = world.takes_time and not world.cluster.launch
        self._is_rigid = bool(registers[record.RIGID])
        self._kernels: Any = kernels
        no_events, self._no_times = np.zeros(0, dtype=np.int32), np.zeros(0)
        events = no_events, no_events, self._no_times
        self._update: Any = compiled(kernels.update, self._state, 0.0, *events)
        self._kernels.begin(self._state)

    @property
    def timer_s(self) -> float:
        """Time of the next calculation that the order of waiting jobs needs, s; inf for none."""
        timer_s: float = self._times.item(self._next)
        return timer_s

    @property
    def ends_can_wait(self) -> bool:
        """True if the end of a job leaves the order of those that wait as it is.

        If two wait, until the next calculation. For one alone none is scheduled, so that its key
        must be updated at once: it competes with jobs that have started some of their tasks.
        """
        return self._is_rigid or self.timer_s < np.inf

    def update(self, batch: Batch) -> I4:
        """Process the events of a batch; return the jobs with new keys."""
        now, kind, row, time_s = batch
        self._whole.update()
        n: int = self._update(
            self._state, now, kind, row, self._no_times if time_s is None else time_s
        )
        return self._changed[:n]

    def calculate(self, at_s: float) -> None:
        """Calculate usage and the factors of fair share at a time, s, out of turn."""
        self._whole.update()
        self._kernels.calculate(self._state, at_s)

    def weighted(self, job: int) -> tuple[float, dict[str, float]]:
        """Return the priority of a job and each factor times its weight, as last calculated."""
        priority: float = self._kernels.weigh(self._state, job)
        values = self.arrays["state_weighted"].tolist()
        return priority, dict(zip(FACTORS, values, strict=True))


@dataclass
class _Whole:
    """CPUs of jobs, and those that the machines of exclusive ones have beyond what they ask for.

    Attributes
    ----------
    jobs : (N,) int64
        Jobs that take whole machines.
    more : (J,) int64
        Quanta of CPUs beyond their slots: a live view.
    quantum : float
        CPUs of a quantum.
    """

    jobs: I8
    more: I8
    quantum: float
    requested: F8 = field(default_factory=lambda: np.zeros(0))
    cpus: F8 = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def exclusive(cls, columns: Columns, world: World) -> _Whole:
        """Find the exclusive jobs of a run; none without views, as where a variant is chosen."""
        jobs = np.flatnonzero(exclusive_jobs(columns, world.cluster))
        if not len(jobs) or "whole" not in world.view:
            return cls(jobs[:0], np.zeros(0, np.int64), 1.0)
        resource = columns.resources.index(counted_resource(columns, world.cluster))
        return cls(jobs, world.view["whole"][:, resource], float(columns.quantum[resource]))

    def begin(self, cpus: F8) -> F8:
        """Take the CPUs that jobs ask for, (J,); return those that they use, a live view."""
        self.requested, self.cpus = cpus.astype(np.float64), cpus.astype(np.float64)
        view = self.cpus.view()
        view.setflags(write=False)
        return view

    def update(self) -> None:
        """Update the CPUs of exclusive jobs."""
        if len(self.jobs):
            self.cpus[self.jobs] = self.requested[self.jobs] + self.more[self.jobs] * self.quantum


def _tiers(policy: Prioritizing, columns: Columns) -> F8:
    """Return what goes before the priority of each job, (J,): the tier of its partition.

    Jobs that may preempt others by their levels come before these, as in Slurm.
    """
    tiers = [policy.tiers.get(name, 1) for name in columns.queue_names]
    tier = np.array(tiers, dtype=np.float64)[columns.job_queue]
    level = levels_of(columns, policy.preemption)
    if level is None:
        return tier
    pairs = np.stack([level, tier], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].ravel().astype(np.float64)


def _constant(policy: Prioritizing, columns: Columns, cluster: Cluster, cpus: F8) -> F8:
    """Return the factors that never change, each times its weight, (J, 3)."""
    total, n_nodes = cluster_cpus(columns, cluster)
    nodes = np.where(columns.job_one_per_node, columns.job_n_tasks, 1)
    size = (cpus / total + nodes / n_nodes) / 2
    size = np.clip(1 - size if policy.favor_small else size, 0.0, 1.0)
    factors = [policy.partitions.get(name, 1) for name in columns.queue_names]
    partition = np.array(factors)[columns.job_queue]
    code, qos_names = category(columns, "qos")
    qos = np.array([policy.qos.get(name, 0) for name in qos_names])[code]
    weighted = (
        policy.weight_job_size * size,
        policy.weight_partition * (partition / max([1, *policy.partitions.values(), *factors])),
        policy.weight_qos * (qos / max([1, *policy.qos.values()])),
    )
    return np.stack(weighted, axis=1)


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
    cpus = columns.stage_demand_f[:, columns.resources.index(counted_resource(columns, cluster))]
    per_task: F8 = np.maximum.reduceat(cpus, columns.job_stage0[:-1])
    return per_task


def cluster_cpus(columns: Columns, cluster: Cluster) -> tuple[float, float]:
    """Return numbers of CPUs and of nodes; each slot of a pool is a node of one CPU."""
    if cluster.unit:
        return float(cluster.capacity[0, 0]), float(cluster.capacity[0, 0])
    cpu = cluster.resources.index(counted_resource(columns, cluster))
    return float(cluster.capacity[:, cpu].sum()), float(len(cluster.capacity))


def counted_resource(columns: Columns, cluster: Cluster) -> str:
    """Return the resource that usage counts: ``cpu``, or else the first that jobs ask for."""
    names = [name for name in cluster.resources if name in columns.resources]
    return "cpu" if "cpu" in names else names[0]
