"""Machines on which stages may run: of classes, partitions and flavors of their jobs; tiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I4, I8, Mask
from sim.cluster.classes import ANY, SEPARATOR, class_bits, name_bits
from sim.cluster.flavors import flavors_of, has_flavors, ranks, usable_sets
from sim.cluster.partitions import NO_RULES
from sim.workload import tables
from sim.workload.schema import PLANS_ON

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def allowed_codes(columns: Columns, cluster: Cluster) -> I8:
    """Return the codes of machines on which each stage may run, as bits, (G,): class, partition.

    Partitions that do not admit its job are left out. A job that none admits never runs; all count.
    Of what its tasks take, machines are of flavors that its queue names (`sim.cluster.flavors`).
    """
    allowed = class_bits(columns.runs_on, cluster.classes)[columns.stage_runs_on]
    allowed = allowed & _partition_codes(columns, cluster)[columns.stage_job]
    return allowed & flavor_codes(columns, cluster) if has_flavors(cluster.quotas) else allowed


def flavor_codes(columns: Columns, cluster: Cluster) -> I8:
    """Return the codes of machines that are of flavors of each stage's queue, as bits, (G,)."""
    names, no_amounts = columns.resources, np.zeros((cluster.n_machines, len(columns.resources)))
    flavors = flavors_of(
        cluster.quotas, names, cluster.classes, cluster.machine_class, no_amounts.astype(np.int64)
    )
    known = [queue for queue in columns.queue_names if queue in cluster.quotas]
    rank = np.zeros((len(columns.queue_names), len(flavors.name)), np.int64)
    rank[[queue in cluster.quotas for queue in columns.queue_names]] = ranks(
        cluster.quotas, known, flavors
    )
    sets = usable_sets(
        rank[columns.job_queue[columns.stage_job]], flavors, columns.stage_demand > 0
    )
    codes = np.zeros(len(sets), np.int64)
    for code, class_set in enumerate(flavors.class_set.tolist()):
        codes |= (sets >> class_set & 1) << code
    return codes


def planned_codes(columns: Columns, cluster: Cluster, allowed: I8) -> I8:
    """Return the codes of machines that count for the planned start of each job, as bits, (J,).

    `allowed` has those that can run it; they are these, too, unless its ``plans_on`` says more.
    """
    jobs = columns.features.jobs
    if PLANS_ON.name not in jobs.column_names:
        return allowed
    texts, index = tables.names(jobs, PLANS_ON.name), tables.values(jobs, PLANS_ON.name)
    bits = np.array([0 if text == ANY else -1 for text in texts])
    bits &= class_bits(texts, cluster.classes)
    planned: I8 = allowed | bits[index] & _partition_codes(columns, cluster)
    return planned


def _partition_codes(columns: Columns, cluster: Cluster) -> I8:
    """Return the codes of machines in the partitions that admit each job, as bits, (J,)."""
    if not cluster.partitions:
        return np.full(len(columns.job_submit), -1)
    texts = [text or cluster.default_partition for text in columns.partitions]
    codes_by_text = name_bits(cluster.partitions, texts)
    codes = codes_by_text[columns.job_partition]
    if may_refuse(cluster):
        codes = np.zeros(len(codes), np.int64)
        for name, jobs in _admissions(columns, cluster):
            codes |= np.where(jobs, name_bits(cluster.partitions, [name])[0], 0)
        runs_anywhere = np.array([text == ANY for text in texts])[columns.job_partition]
        everywhere = name_bits(cluster.partitions, [ANY])[0]
        codes[runs_anywhere | unadmitted_jobs(columns, cluster)] = everywhere
    return codes


def may_refuse(cluster: Cluster) -> bool:
    """Tell whether some partition does not admit all jobs."""
    return any(rules.may_refuse for rules in cluster.rules.values())


def unadmitted_jobs(columns: Columns, cluster: Cluster) -> Mask:
    """Tell of each job whether none of the cluster's partitions that it names admits it, (J,)."""
    if not may_refuse(cluster):
        return np.zeros(len(columns.job_submit), bool)
    named = np.array([len(names) > 0 for names in _names_of_texts(columns, cluster)])
    unadmitted: Mask = named[columns.job_partition]
    for _, jobs in _admissions(columns, cluster):
        unadmitted &= ~jobs
    return unadmitted


def _admissions(columns: Columns, cluster: Cluster) -> Iterator[tuple[str, Mask]]:
    """Yield each partition that jobs name, and which of these it admits, (J,)."""
    names_of_texts = _names_of_texts(columns, cluster)
    n_nodes = job_nodes(columns)
    for name in dict.fromkeys(name for names in names_of_texts for name in names):
        is_named = np.array([name in names for names in names_of_texts])[columns.job_partition]
        rules = cluster.rules.get(name, NO_RULES)
        yield name, is_named & rules.admits(columns.job_requested, n_nodes)


def job_nodes(columns: Columns) -> I4:
    """Return the number of nodes of each job, (J,): ``n_nodes``, or else a node for each slot."""
    n_nodes = columns.job_n_nodes
    return np.where(n_nodes > 0, n_nodes, np.maximum(columns.job_min_tasks, 1))


def _names_of_texts(columns: Columns, cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the partitions that each text of ``columns.partitions`` names; the default for ""."""
    texts = [text or cluster.default_partition for text in columns.partitions]
    known = {name for names in cluster.partitions for name in names}
    return [tuple(name for name in text.split(SEPARATOR) if name in known) for text in texts]


def exclusive_partitions(columns: Columns, cluster: Cluster) -> Mask:
    """Tell of each job whether a partition that admits it is exclusive, (J,)."""
    is_exclusive = np.zeros(len(columns.job_submit), bool)
    if any(rules.exclusive for rules in cluster.rules.values()):
        for name, jobs in _admissions(columns, cluster):
            is_exclusive |= jobs & cluster.rules.get(name, NO_RULES).exclusive
    return is_exclusive


def has_tiers(cluster: Cluster) -> bool:
    """Tell whether the partitions of the cluster have different tiers."""
    known = {name for names in cluster.partitions for name in names}
    return len({cluster.rules.get(name, NO_RULES).tier for name in known} | {NO_RULES.tier}) > 1


def job_tiers(columns: Columns, cluster: Cluster) -> I4:
    """Return the tier of each job, (J,): the highest of the partitions that admit it."""
    tiers = np.full(len(columns.job_submit), -1, np.int32)
    for name, jobs in _admissions(columns, cluster):
        tier = cluster.rules.get(name, NO_RULES).tier
        tiers[jobs] = np.maximum(tiers[jobs], tier)
    return np.where(tiers < 0, np.int32(NO_RULES.tier), tiers)
