"""Caps of groups of jobs, in the kernel's arrays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask
from sim.cluster.cap_groups import Groups, amounts
from sim.cluster.caps import MINUTES, NODES, RUNNING, SUBMITTED, is_licence
from sim.engine.kernels import caps as counters

if TYPE_CHECKING:
    from sim.workload.columns import Columns


def lay_out_caps(
    columns: Columns, groups: Groups, resources: tuple[str, ...], quantum: F8, counts_any: bool
) -> dict[str, NDArray[Any]]:
    """Return the fields of caps, of one job each where none are counted (`counts_any`)."""
    if not counts_any:
        return ABSENT
    quanta = partial(groups.quanta, resources, quantum)
    counts = np.full(len(groups.cap), counters.AMOUNT, np.int8)
    counts[groups.counts(RUNNING)] = counters.RUNNING
    counts[_are_held(groups)] = counters.HELD
    counts[groups.counts(SUBMITTED)] = counters.SUBMITTED
    counts[groups.counts(MINUTES)] = counters.MINUTES
    rows = [row.resource for row in groups.caps]
    resource = np.array([0 if name is None else resources.index(name) for name in rows], np.int32)
    blocks = np.array([row.blocks for row in groups.caps], np.int8)
    limit_s = np.where(_in_groups_of(groups, groups.counts(MINUTES)), columns.job_requested, 0.0)
    return {
        "w_job_group0": groups.job_group0,
        "w_job_group": groups.group,
        "w_job_group_amount": _amounts(columns, groups),
        "w_job_group_spared": groups.is_spared.astype(np.int8),
        "w_job_cap_limit_s": limit_s,
        "w_job_cap_limit": np.ceil(limit_s).astype(np.int64),
        "c_change_s": groups.change_s,
        "c_change_group": groups.change_group,
        "c_change_cap": quanta(groups.change_number, groups.change_group),
        "c_group_counts": counts,
        "c_group_resource": resource[groups.cap],
        "c_group_blocks": blocks[groups.cap],
        "state_job_limit_left": np.ceil(limit_s).astype(np.int64),
        "state_group_cap": quanta(groups.number, np.arange(len(groups.cap), dtype=np.int32)),
        "state_group_used": np.zeros(len(groups.cap), np.int64),
        "state_sum_group": np.zeros(len(groups.cap), np.int64),
    }


def kinds_by_caps(columns: Columns, groups: Groups, kind: I4, n_kinds: int) -> tuple[I4, I4, int]:
    """Split kinds of stages by the groups of their jobs, so that all of a kind exceed caps or none.

    Return the kind of each stage, its kind while its job counts as running, and their number. Of
    jobs whose minutes are counted each that runs has kinds of its own.
    """
    has_minutes = _in_groups_of(groups, groups.counts(MINUTES))
    has_count = _in_groups_of(groups, groups.counts(RUNNING) | _are_held(groups))
    limit_s = np.where(has_minutes, np.ceil(columns.job_requested), 0)
    taken = np.zeros((len(groups.caps), len(limit_s)), np.int64)  # jobs hold the same of each
    taken[groups.cap[groups.group], groups.jobs()] = _amounts(columns, groups)
    job = np.unique(np.vstack([groups.signature, limit_s, taken]), axis=1, return_inverse=True)[
        1
    ].ravel()
    own = job[columns.stage_job] * n_kinds + kind
    changes = (has_minutes | has_count)[columns.stage_job]
    alone = np.where(has_minutes, np.arange(len(job)) + 1, 0)[columns.stage_job]
    codes = np.concatenate(
        [np.stack([own, 0 * own, 0 * own]), np.stack([own, changes + 0, alone])], axis=1
    )
    all_kinds = np.unique(codes, axis=1, return_inverse=True)[1].ravel().astype(np.int32)
    return all_kinds[: len(kind)], all_kinds[len(kind) :], int(all_kinds.max()) + 1


def has_minutes(groups: Groups) -> bool:
    """Tell whether minutes are counted, for which the use of each job is."""
    return any(row.counted.endswith(MINUTES) for row in groups.caps)


def _in_groups_of(groups: Groups, are_counted: Mask) -> Mask:
    """Return which jobs are in one of some groups, (J,)."""
    n_jobs = len(groups.job_group0) - 1
    jobs: I8 = groups.jobs()[are_counted[groups.group]]
    return np.bincount(jobs, minlength=n_jobs) > 0


def _are_held(groups: Groups) -> Mask:
    """Return which groups count what running jobs hold: nodes or licences."""
    is_held = [row.counted == NODES or is_licence(row.counted) for row in groups.caps]
    return np.array(is_held, bool)[groups.cap]


def _amounts(columns: Columns, groups: Groups) -> I8:
    """Return what each job takes of each of its groups' counters that are of no resource."""
    jobs, rows = groups.jobs(), groups.cap[groups.group]
    taken = np.zeros(len(jobs), np.int64)
    for i, row in enumerate(groups.caps):
        if row.resource is None:
            taken[rows == i] = amounts(columns, row)[jobs[rows == i]]
    return taken


ABSENT: dict[str, NDArray[Any]] = {
    "w_job_group0": np.zeros(1, np.int64),
    "w_job_group": np.zeros(0, np.int32),
    "w_job_group_amount": np.zeros(0, np.int64),
    "w_job_group_spared": np.zeros(0, np.int8),
    "w_job_cap_limit_s": np.zeros(1),
    "w_job_cap_limit": np.zeros(1, np.int64),
    "c_change_s": np.zeros(0),
    "c_change_group": np.zeros(0, np.int32),
    "c_change_cap": np.zeros(0, np.int64),
    "c_group_counts": np.zeros(0, np.int8),
    "c_group_resource": np.zeros(0, np.int32),
    "c_group_blocks": np.zeros(0, np.int8),
    "state_job_limit_left": np.zeros(1, np.int64),
    "state_group_cap": np.zeros(0, np.int64),
    "state_group_used": np.zeros(0, np.int64),
    "state_sum_group": np.zeros(0, np.int64),
}
"""Fields of a run without caps; their arrays are never written."""
