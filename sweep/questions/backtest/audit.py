"""Audit of a log: the test whether a policy that serves one pool in order can have made it.

A log is audited before a policy is blamed. Waiting jobs are replayed beside the recorded use of the
cluster (`sweep.questions.backtest.kernels.line`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.cluster.cluster import Cluster
from sim.workload.schema import RECORDED, REQUESTED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.questions.backtest.audit_sentences import audit_sentences
from sweep.questions.backtest.capacity import has_demands, logged_size
from sweep.questions.backtest.findings import Audit, PoolAudit
from sweep.questions.backtest.kernels.line import replay_line
from sweep.questions.backtest.recorded_use import (
    Recorded,
    has_priorities,
    places_of_release,
    pools,
    recorded,
)
from sweep.questions.backtest.starts import find_starts

GRACE_RESOLUTIONS, GRACE_LAGS, MAX_LAG_S = 2.0, 4.0, 15.0
"""The default grace in units of the resolution and of the median lag; largest lag that counts for
it, s, lest a log that is not in order excuses itself."""


@dataclass(frozen=True)
class _Replay:
    """Replay of one pool: spells in which the first in line fits, and lags of its jobs, s."""

    spells_s: F8
    lags_s: F8  # NaN for jobs that did not fit as they started
    wait_s: float


def audit(workload: Workload, cluster: Cluster, *, grace_s: float | None = None) -> Audit:
    """Audit a log: each pool is replayed in one pass.

    A log with priorities is audited in their order and in that of submission, as its scheduler may
    have ignored them; the findings are of the order that explains it better.

    Parameters
    ----------
    workload : Workload
        Jobs with ``recorded_start_s``.
    cluster : Cluster
        The cluster that they ran on.
    grace_s : float, optional
        Time that a job that fits may take to start, s; by default `GRACE_RESOLUTIONS` times the
        resolution or `GRACE_LAGS` times the median lag, which counts up to `MAX_LAG_S`.

    Raises
    ------
    InputError
        If no start is recorded, or each is before the job's submission.
    """
    orders = (True, False) if has_priorities(workload) else (False,)
    audits = [_audit(workload, cluster, grace_s, by_priority=order) for order in orders]
    return min(audits, key=lambda result: result.head_could_start)


def _audit(
    workload: Workload, cluster: Cluster, grace_s: float | None, *, by_priority: bool
) -> Audit:
    """Audit a log in the order of its priorities, or of submission."""
    log = _recorded(workload, cluster, by_priority)
    lines = [(pool, _replay(pool)) for pool in _pools(log, workload, cluster, by_priority)]
    lags_s = np.concatenate([line.lags_s[pool.rows] for pool, line in lines])
    lags_s = lags_s[~np.isnan(lags_s)]
    median_s, p95_s = np.quantile(lags_s, (0.5, 0.95)) if len(lags_s) else (np.nan, np.nan)
    starts = find_starts(workload)
    unit_s = starts.resolution_s
    if grace_s is None:
        lag_s = min(float(np.nan_to_num(median_s)), MAX_LAG_S)
        grace_s = max(GRACE_RESOLUTIONS * unit_s, GRACE_LAGS * lag_s)
    findings = tuple(
        PoolAudit(
            pool.name,
            len(pool.rows),
            _share(float(np.maximum(line.spells_s - grace_s, 0).sum()), line.wait_s),
            line.wait_s,
        )
        for pool, line in lines
    )
    wait_s = sum(pool.wait_s for pool in findings)
    could_s = sum(pool.head_could_start * pool.wait_s for pool in findings)
    peak, over_s = _over_capacity(log, max(grace_s, unit_s))
    waits_s = (log.start_s - log.enter_s)[log.rows]
    values: dict[str, Any] = {
        "n_jobs": len(log.rows),
        "n_waited": int((waits_s > grace_s).sum()),
        "head_could_start": _share(could_s, wait_s),
        "grace_s": grace_s,
        "peak_over_capacity": peak,
        "over_capacity_s": over_s,
        "lag_median_s": float(median_s),
        "lag_p95_s": float(p95_s),
        "resolution_s": unit_s,
        "over_limit": _over_limit(workload, unit_s),
        "n_unrecorded": starts.n_unrecorded,
        "n_early": starts.n_early,
        "early_s": float(starts.early_s.max()),
        "by_priority": by_priority,
    }
    result = Audit(**values, lags_s=lags_s, pools=findings, sentences=())
    return replace(result, sentences=audit_sentences(result, workload))


def _recorded(workload: Workload, cluster: Cluster, by_priority: bool) -> Recorded:
    log = recorded(workload, cluster)
    return log if by_priority else replace(log, place=places_of_release(workload))


def _pools(
    log: Recorded, workload: Workload, cluster: Cluster, by_priority: bool
) -> list[Recorded]:
    """Return the lines of a log; for more than slots on the log's own nodes, not on a pool."""
    if cluster.unit and has_demands(workload) and (size := logged_size(workload)).kinds:
        machines = size.build()
        return pools(_recorded(workload, machines, by_priority), workload, machines)
    return pools(log, workload, cluster)


def _replay(pool: Recorded) -> _Replay:
    time, kind, item = pool.events()
    lag_s, wait_s = np.empty(len(pool.need)), np.empty(1)
    spell_s, spell_job = np.empty(len(time)), np.empty(len(time), np.int64)
    use0, use_node, use_share, n_nodes, per_node, node_free = pool.node_arrays()
    n_spells = replay_line(
        time, kind, item, pool.place, pool.need, pool.use, use0, use_node, use_share, n_nodes,
        per_node, pool.capacity.copy(), node_free, lag_s, spell_s, spell_job, wait_s,
    )  # fmt: skip
    return _Replay(spell_s[:n_spells], lag_s, float(wait_s[0]))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _over_capacity(log: Recorded, ignored_s: float) -> tuple[float, float]:
    """Return the excess of the largest use over the capacity, as a fraction, and its time, s.

    Periods up to `ignored_s` do not count: an end may be noticed later than the next start.
    """
    time = np.concatenate([log.end_s, log.begin_s])
    order = np.argsort(time, kind="stable")
    change = np.concatenate([-log.use, log.use])[order]
    time = time[order]
    use = np.cumsum(change, axis=0)
    excess = (use / np.maximum(log.capacity, 1)).max(axis=1) - 1
    edges = np.flatnonzero(time[1:] > time[:-1])  # last change of each instant
    length_s, excess = time[edges + 1] - time[edges], excess[edges]
    is_over = excess > 0
    first = np.flatnonzero(np.diff(is_over, prepend=False))
    if not is_over.any():
        return 0.0, 0.0
    period_s = np.add.reduceat(length_s, first)[::2]
    peak = np.maximum.reduceat(excess, first)[::2]
    is_long = period_s > ignored_s
    return float(peak[is_long].max(initial=0.0)), float(period_s[is_long].sum())


def _over_limit(workload: Workload, unit_s: float) -> float:
    start_s, finish_s = (column_or_default(workload.jobs, column) for column in RECORDED)
    limit_s = column_or_default(workload.jobs, REQUESTED)
    run_s = finish_s - start_s
    known = np.isfinite(run_s) & np.isfinite(limit_s)
    return _share(float((run_s[known] > limit_s[known] + unit_s).sum()), float(known.sum()))
