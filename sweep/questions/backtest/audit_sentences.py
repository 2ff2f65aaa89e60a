"""Sentences on an audit, one for each finding."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc

from sim.base.arrays import F8
from sim.workload.delays import ROUNDING_S, delayed, reason_sentence, reasons
from sim.workload.schema import ELIGIBLE, SUBMITTED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.questions.backtest.findings import Audit
from sweep.questions.backtest.recorded_use import has_priorities, held_resources
from sweep.questions.backtest.starts import written_s

FEW_WAITED = 30
"""With fewer jobs that waited, little can be told about waits."""
MAX_LINES = 6
"""Maximum number of partitions or qualities of service in a sentence."""
_UNITS = {60.0: "whole minutes", 1.0: "whole seconds"}
_NO_PRIORITIES = (
    "The log records no priorities: if its scheduler had some, it served jobs in another order "
    "(sacct has them in its column Priority)."
)
_NOT_ELIGIBLE = (
    "The log does not tell when jobs were free to start, so their waits count from submission, and "
    "have those for a begin time or a dependency (sacct has it in its column Eligible)."
)
_CAUSES = {
    "throttle": ("element of an array under a throttle", "elements of arrays under a throttle"),
    "dependency": ("job that depends on others", "jobs that depend on others"),
    "begin": ("with a begin time", "with a begin time"),
    "hold": ("held", "held"),
    "other": ("for a reason that the log does not name", "for a reason that the log does not name"),
}
_SIMULATED = ("throttle", "dependency")
_UNREAD = {"gpu_s": "GPUs", "mem_gib_s": "memory"}
_NOT_COMPARED = "such jobs are simulated, and not compared."
_LENGTHS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"))


def audit_sentences(audit: Audit, workload: Workload) -> tuple[str, ...]:
    """Write the findings of an audit, the most important first."""
    submitted_s = column_or_default(workload.jobs, SUBMITTED)
    sentences = [
        _warned(workload, _order(audit, workload, _order_of_line(audit, workload, submitted_s))),
        "" if audit.is_in_order or has_priorities(workload) else _NO_PRIORITIES,
        _unrecorded(audit, workload),
        _early(audit),
        _unread(audit, workload),
        _released(audit, workload),
        _reasons(workload),
        _over_capacity(audit),
        _lag(audit),
        _resolution(audit),
        _over_limit(audit),
        _lines(audit),
        "" if len(audit.pools) > 1 else _groups(workload, "queue", "queues, audited as one line"),
        _groups(workload, "qos", "qualities of service"),
        _few(audit),
    ]
    return tuple(filter(None, sentences))


def seconds(length_s: float) -> str:
    """Write a length of time in the unit that suits it.

    >>> [seconds(x) for x in (0.512, 90, 7200.0, 1e6)]
    ['0.51 s', '90 s', '2 h', '11.6 days']
    """
    for unit_s, name in _LENGTHS:
        if length_s >= 2 * unit_s:
            return f"{length_s / unit_s:.3g} {name}"
    return f"{length_s:.3g} s" if length_s >= 1 else f"{length_s:.2g} s"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _order_of_line(audit: Audit, workload: Workload, submitted_s: F8) -> str:
    if audit.by_priority:
        return "of its priorities"
    order = "of submission" if np.isnan(submitted_s).all() else "of release"
    return f"{order}, not of its priorities" if has_priorities(workload) else order


def _order(audit: Audit, workload: Workload, order: str) -> str:
    if not audit.n_waited:
        return f"No job waited for longer than {seconds(audit.grace_s)}, so nothing tests a policy."
    share = _percent(audit.head_could_start)
    first = "the first in line" if len(audit.pools) < 2 else "the first in line of its partition"
    if audit.is_in_order:
        return (
            f"The log can be that of a policy which serves one pool in the order {order}: in "
            f"{share} of the time in which a job waited, {first} had fitted for more than "
            f"{seconds(audit.grace_s)}."
        )
    missing = ["other priorities", "several partitions", "nodes that were down"]
    missing += ["limits by day and night"]
    counts = reasons(workload)
    if counts is not None and "limit" in counts.jobs:
        missing = ["limits of users, accounts or QOS, as its reasons say", *missing[:-1]]
    if len(audit.pools) > 1:
        missing.remove("several partitions")
    return (
        f"In {share} of the time in which a job waited, {first}, in the order {order}, had "
        f"fitted for more than {seconds(audit.grace_s)}: no policy that serves one pool in this "
        "order can have produced this log. Its scheduler may have had "
        f"{', '.join(missing[:-1])} or {missing[-1]}."
    )


def _warned(workload: Workload, text: str) -> str:
    """Add what the log's reader warns of, which the sentence would contradict alone."""
    warnings = (workload.meta.get("report") or {}).get("warnings") or ()
    if not warnings:
        return text
    return f"{text.removesuffix('.')}; the log's reader warns: {'; '.join(warnings)}."


def _unrecorded(audit: Audit, workload: Workload) -> str:
    n = audit.n_unrecorded
    if not n:
        return ""
    if math.isfinite(written_s(workload)):
        return (
            f"{_share_of_jobs(n, audit)} still waited when the log was written: waits count up to "
            "then, in the log and in simulations."
        )
    return f"{_count_jobs(n, audit)} no recorded start: {_NOT_COMPARED}"


def _early(audit: Audit) -> str:
    if not audit.n_early:
        return ""
    return (
        f"{_count_jobs(audit.n_early, audit)} a start before the submission, by up to "
        f"{seconds(audit.early_s)}, as the log's clock was wrong: {_NOT_COMPARED}"
    )


def _count_jobs(n: int, audit: Audit) -> str:
    return f"{_share_of_jobs(n, audit)} {'has' if n == 1 else 'have'}"


def _share_of_jobs(n: int, audit: Audit) -> str:
    return f"{n:,} of {audit.n_jobs + audit.n_unrecorded + audit.n_early:,} jobs"


def _released(audit: Audit, workload: Workload) -> str:
    """Say from when on waits count, by what jobs waited for before they were free to start."""
    rounding_s = max(audit.resolution_s, ROUNDING_S)
    counts = delayed(workload, rounding_s)
    n = sum(counts.simulated.values()) + sum(counts.shifted.values())
    if not n:
        eligible_s = column_or_default(workload.jobs, ELIGIBLE)
        return _NOT_ELIGIBLE if audit.n_waited and np.isnan(eligible_s).all() else ""
    simulated = {c: k for c, k in counts.simulated.items() if c in _SIMULATED}
    unsimulated = {c: k for c, k in counts.simulated.items() if c not in _SIMULATED}
    parts = []
    if simulated:
        parts.append(
            f"{_by_cause(simulated)}, which {_are(simulated)} simulated from submission on (the "
            "audit counts from when free)"
        )
    if counts.shifted:
        parts.append(f"{_by_cause(counts.shifted)}: audit, waits and simulations count from then")
    if unsimulated:
        parts.append(
            f"{_by_cause(unsimulated)}: the audit counts from then, waits and simulations from "
            "submission"
        )
    jobs = "1 of the jobs was" if n == 1 else f"{n:,} of the jobs were"
    return f"{jobs} free to start only later than submitted: {'; '.join(parts)}."


def _by_cause(counts: Mapping[str, int]) -> str:
    parts = [
        f"{n:,} {_CAUSES[cause][n != 1] if cause in _CAUSES else cause}"
        for cause, n in counts.items()
    ]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _are(counts: Mapping[str, int]) -> str:
    return "is" if sum(counts.values()) == 1 else "are"


def _reasons(workload: Workload) -> str:
    """Say for how many jobs and how much of the wait the last reason is no lack of room."""
    counts = reasons(workload)
    return "" if counts is None or not counts.n_named else f"{reason_sentence(counts)}."


def _unread(audit: Audit, workload: Workload) -> str:
    """Name the resources that the log has and its tasks do not demand."""
    account = (workload.meta.get("report") or {}).get("account") or {}
    names = [
        name for kind, name in _UNREAD.items() if account.get(kind, {}).get("by_option", 0) > 0
    ]
    if not names:
        return ""
    if len(audit.pools) > 1 and held_resources(workload):
        return (
            f"The audit goes by {' and '.join(names)}, too, and no simulation does: tasks do not "
            "demand them (trace.tasks=nodes reads them)."
        )
    return (
        f"The audit goes by CPUs alone: {' and '.join(names)} of the log are not read "
        "(trace.tasks=nodes reads them), so a job that waited for them counts as one that fitted."
    )


def _over_capacity(audit: Audit) -> str:
    if not audit.peak_over_capacity:
        return ""
    return (
        f"Recorded use is up to {_percent(audit.peak_over_capacity)} above the capacity, for "
        f"{seconds(audit.over_capacity_s)} in all: the cluster was larger, or jobs shared nodes."
    )


def _lag(audit: Audit) -> str:
    if not len(audit.lags_s):
        return "No job that fitted in its turn started, so the lag from room to start is unknown."
    return (
        f"A job that fitted in its turn started {seconds(audit.lag_median_s)} later (median of "
        f"{len(audit.lags_s):,}; 95th percentile {seconds(audit.lag_p95_s)})."
    )


def _resolution(audit: Audit) -> str:
    unit = _UNITS.get(audit.resolution_s, f"multiples of {audit.resolution_s:g} s")
    return f"Its waits are {unit}." if audit.resolution_s >= 1 else ""


def _over_limit(audit: Audit) -> str:
    if not audit.over_limit:
        return ""
    return f"{_percent(audit.over_limit)} of the jobs with a time limit ran past it."


def _lines(audit: Audit) -> str:
    if len(audit.pools) < 2:
        return ""
    parts = [
        f"{pool.name or 'unnamed'} {_percent(pool.head_could_start)} ({_jobs(pool.n_jobs)})"
        for pool in sorted(audit.pools, key=lambda pool: -pool.n_jobs)[:MAX_LINES]
    ]
    return f"Time in which the first in line had fitted, by partition: {', '.join(parts)}."


def _jobs(n: int) -> str:
    return f"{n:,} job{'s' * (n != 1)}"


def _groups(workload: Workload, name: str, words: str) -> str:
    """Name the values of a column of jobs, if there are several."""
    if name not in workload.jobs.column_names:
        return ""
    values = sorted(filter(None, pc.unique(workload.jobs[name]).to_pylist()))
    if len(values) < 2:
        return ""
    more = ", ..." if len(values) > MAX_LINES else ""
    return f"Jobs are of {len(values)} {words} ({', '.join(values[:MAX_LINES])}{more})."


def _few(audit: Audit) -> str:
    if not 0 < audit.n_waited < FEW_WAITED:
        return ""
    return f"Only {audit.n_waited} of {audit.n_jobs:,} jobs waited: too few to tell policies apart."
