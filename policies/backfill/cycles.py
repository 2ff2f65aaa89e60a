"""Limits of Slurm's cycles: jobs beyond the first of a user, array or partition, and time.

Source: https://slurm.schedmd.com/slurm.conf.html (SchedulerParameters) and the behaviour of version
22.05: an array is one entry of the queue, from which elements are split off as they start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from policies.backfill.priorities import category
from policies.base import Policy
from sim.base.arrays import I4
from sim.base.parameters import Between, NotNegative
from sim.cluster.cap_groups import throttles_of_arrays
from sim.cluster.cluster import Cluster
from sim.engine.plan import Depth
from sim.workload.columns import Columns
from sim.workload.schema import ARRAY, PARTITION

_Count = Annotated[int, Between(0)]
_Seconds = Annotated[float, Between(0.000001)]


@dataclass(frozen=True)
class Cycles(Policy):
    """Options of cycles that do not try all jobs.

    Attributes
    ----------
    user_depth, partition_depth, association_depth, user_partition_depth : int
        Number of jobs of a user, of a partition, of a user's account, and of a user in a partition
        that a cycle of the backfill thread tries; 0 for all (bf_max_job_user, bf_max_job_part,
        bf_max_job_assoc, bf_max_job_user_part). `association_depth` takes the place of
        `user_depth`. A job of several partitions counts in the first that it names; the partition
        is ``queue`` if jobs have no ``partition``.
    starts : int
        Number of jobs that such a cycle starts; 0 for all (bf_max_job_start).
    array_reserve : int
        Number of elements of an array that get a reservation (bf_max_job_array_resv).
    max_s : float
        Time after which such a cycle ends, s; 0 for `interval_s` (bf_max_time). How long it takes
        is up to `cycle_s` and `job_cycle_s`.
    yield_s, sleep_s : float
        Time after which it lets others work, and for how long, s (bf_yield_interval,
        bf_yield_sleep, there in microseconds). Jobs start at the begin of each part.
    continues : bool
        False: it ends there if jobs came, started or ended (bf_continue).
    main_partition_depth : int
        Number of jobs of a partition that the main loop tries; 0 for all (partition_job_depth).
    main_starts : int
        Number of jobs that a pass of it starts; 0 for all (sched_max_job_start).
    """

    user_depth: _Count = 0
    partition_depth: _Count = 0
    association_depth: _Count = 0
    user_partition_depth: _Count = 0
    starts: _Count = 0
    array_reserve: Annotated[int, Between(1)] = 20
    max_s: NotNegative = 0.0
    yield_s: _Seconds = 2.0
    sleep_s: NotNegative = 0.5
    continues: bool = False
    main_partition_depth: _Count = 0
    main_starts: _Count = 0


def cycle_options(policy: Cycles, columns: Columns, cluster: Cluster) -> dict[str, Any]:
    """Return these options as arguments of a plan's ``Replan``."""
    partition = _partitions(columns, cluster)
    has_name = np.array([bool(name) for name in columns.user_names])
    user = np.where(has_name[columns.job_user], columns.job_user, -1).astype(np.int32)
    per_user = policy.user_depth
    depths = [
        (policy.user_partition_depth, _pairs(user, partition)),
        (policy.partition_depth, partition),
    ]
    if policy.association_depth:
        depths.append((policy.association_depth, _pairs(user, category(columns, "account")[0])))
        per_user = 0
    depths.append((per_user, user))
    array, throttle = _arrays(columns)
    return {
        "max_s": policy.max_s,
        "yield_s": policy.yield_s,
        "sleep_s": policy.sleep_s,
        "continues": policy.continues,
        "depths": tuple(Depth(group, at_most) for at_most, group in depths if at_most),
        "starts": policy.starts,
        "reserved_in": partition,
        "array": array,
        "throttle": throttle,
        "array_reserved": policy.array_reserve,
        "main_depths": (Depth(partition, policy.main_partition_depth),)
        if policy.main_partition_depth
        else (),
        "main_starts": policy.main_starts,
    }


def _partitions(columns: Columns, cluster: Cluster) -> I4:
    """Return the code of the first partition that each job names, (J,)."""
    if PARTITION.name not in columns.features.jobs.column_names:
        return columns.job_queue.astype(np.int32)
    texts = [text or cluster.default_partition for text in columns.partitions]
    first = [text.partition("|")[0] for text in texts]
    codes = {name: code for code, name in enumerate(dict.fromkeys(first))}
    return np.array([codes[name] for name in first], np.int32)[columns.job_partition]


def _pairs(first: I4, second: I4) -> I4:
    """Return a code of each pair of codes, -1 where the first is."""
    pairs = first.astype(np.int64) * (int(second.max(initial=0)) + 1) + second
    codes = np.unique(pairs, return_inverse=True)[1].ravel()
    return np.where(first < 0, -1, codes).astype(np.int32)


def _arrays(columns: Columns) -> tuple[I4 | None, I4 | None]:
    """Return the array of each job, -1 for none, and its throttle, 0 for none."""
    name = ARRAY[0].name
    if name not in columns.features.jobs.column_names:
        return None, None
    codes, texts = category(columns, name)
    throttles = throttles_of_arrays(columns)
    is_array = np.array([bool(text) for text in texts])
    throttle = np.array([throttles.get(text, 0) for text in texts], np.int32)
    return np.where(is_array[codes], codes, -1).astype(np.int32), throttle[codes]
