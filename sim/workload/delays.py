"""Reasons why jobs waited, by their scheduler, and causes of a late eligibility.

Source: Slurm's reasons, https://slurm.schedmd.com/job_reason_codes.html. A log has the last reason
of a job alone, so an earlier one may be hidden behind it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask
from sim.workload.schema import (
    CATEGORY,
    DELAYED_BY,
    ELIGIBLE,
    JOB_EDGE_KINDS,
    REASON,
    RECORDED,
    SUBMITTED,
)
from sim.workload.tables import codes, column_or_default, values
from sim.workload.workload import Workload

THROTTLE_REASONS = ("JobArrayTaskLimit",)
KINDS = {
    "throttle": r"JobArrayTaskLimit",
    "limit": r"(QOS|Assoc|AccountingPolicy|MaxMemPerLimit|Partition\w*Limit).*|\w+Limit",
    "dependency": r"Dependency.*",
    "hold": r"JobHeld.*|JobHoldMaxRequeue|.*requeued held.*|HELD",
    "begin time": r"BeginTime",
}
"""Kinds of reasons that no free room ends, each by a regular expression; the first counts."""
OTHER, DEPENDENCY = "other", "dependency"
"""Causes of a late eligibility: none that is known, and the end of other jobs."""
NOTICED_S = 60.0
"""Longest time, s, in which a scheduler notices the end of a job that another waits for."""
ROUNDING_S = 1.0
"""Eligibility by so much after the submission is a matter of rounding."""


@dataclass(frozen=True)
class Reasons:
    """Jobs of each kind of `KINDS`, by the reason that the log has of each.

    Attributes
    ----------
    n_jobs : int
        Jobs with a recorded start.
    wait_s : float
        Sum of their waits, from real submission to start, s.
    jobs : dict of str to int
        Number of jobs by kind; kinds without any are left out.
    waits_s : dict of str to float
        Their waits, s.
    by_name : dict of str to int
        Number of jobs by reason of any of the kinds, the most frequent first.
    """

    n_jobs: int
    wait_s: float
    jobs: dict[str, int]
    waits_s: dict[str, float]
    by_name: dict[str, int]

    @property
    def n_named(self) -> int:
        """Number of jobs whose reason is of one of the kinds."""
        return sum(self.jobs.values())

    @property
    def share(self) -> float:
        """Their share of the wait."""
        return sum(self.waits_s.values()) / self.wait_s if self.wait_s > 0 else 0.0


def kind_of(reason: str) -> str:
    """Return the kind of a reason; empty if it is that of no limit, dependency or hold.

    >>> [kind_of(x) for x in ("QOSMaxCpuPerUserLimit", "JobArrayTaskLimit", "Priority")]
    ['limit', 'throttle', '']
    """
    return next((kind for kind, form in KINDS.items() if re.fullmatch(form, reason)), "")


def waits_s(workload: Workload) -> F8:
    """Return recorded waits from the real submission on, (J,) s; NaN if the start is unknown."""
    start_s = column_or_default(workload.jobs, RECORDED[0])
    return np.maximum(start_s - submitted_s(workload), 0.0)


def submitted_s(workload: Workload) -> F8:
    """Return when jobs were really submitted, (J,) s."""
    logged_s = column_or_default(workload.jobs, SUBMITTED)
    return np.where(np.isnan(logged_s), workload.columns.job_submit, logged_s)


def reasons(workload: Workload) -> Reasons | None:
    """Count the jobs that a log has a reason of, by kind; None if it has no reasons."""
    if REASON.name not in workload.jobs.column_names:
        return None
    code, names = _codes(workload, REASON.name)
    wait_s = waits_s(workload)
    known = np.isfinite(wait_s)
    n = np.bincount(code[known], minlength=len(names))
    sums_s = np.bincount(code[known], wait_s[known], minlength=len(names))
    kinds = [kind_of(name) for name in names]
    present = [
        kind for kind in KINDS if any(k == kind and m for k, m in zip(kinds, n, strict=True))
    ]
    rows = {kind: [i for i, k in enumerate(kinds) if k == kind] for kind in present}
    named = sorted((i for i, kind in enumerate(kinds) if kind and n[i]), key=lambda i: -int(n[i]))
    return Reasons(
        int(known.sum()),
        float(wait_s[known].sum()),
        {kind: int(n[i].sum()) for kind, i in rows.items()},
        {kind: float(sums_s[i].sum()) for kind, i in rows.items()},
        {names[i]: int(n[i]) for i in named},
    )


def reason_sentence(counts: Reasons) -> str:
    """Write for how many jobs and how much of the wait the last reason is no lack of room.

    >>> reason_sentence(Reasons(9, 10.0, {"hold": 1}, {"hold": 7.5}, {}))
    "The log's last reason is a hold for 1 of 9 jobs with 75 % of the wait (hold 1)"
    """
    kinds = sorted(counts.jobs, key=lambda kind: -counts.waits_s[kind])
    named = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    parts = ", ".join(f"{kind} {counts.jobs[kind]:,}" for kind in kinds)
    return (
        f"The log's last reason is a {named} for {counts.n_named:,} of {counts.n_jobs:,} jobs with "
        f"{100 * counts.share:.0f} % of the wait ({parts})"
    )


def share_before_eligible(workload: Workload) -> float:
    """Return the share of the recorded wait that was before jobs were eligible; 0 if unknown."""
    wait_s = waits_s(workload)
    eligible_s = column_or_default(workload.jobs, ELIGIBLE)
    before_s = np.clip(eligible_s - submitted_s(workload), 0.0, wait_s)
    known = np.isfinite(before_s)
    total_s = float(wait_s[np.isfinite(wait_s)].sum())
    return float(before_s[known].sum()) / total_s if total_s > 0 else 0.0


@dataclass(frozen=True)
class Delayed:
    """Jobs that became eligible later than submitted, by cause.

    Attributes
    ----------
    simulated : dict of str to int
        Jobs that are simulated from their submission on: the schedule made them eligible.
    shifted : dict of str to int
        Jobs that are submitted when they became eligible.
    """

    simulated: dict[str, int]
    shifted: dict[str, int]


def delayed(workload: Workload, rounding_s: float = ROUNDING_S) -> Delayed:
    """Count the jobs that became eligible later than submitted, by cause; ``other`` if unknown."""
    release_s, logged_s = workload.columns.job_submit, submitted_s(workload)
    eligible_s = column_or_default(workload.jobs, ELIGIBLE)
    is_shifted = release_s > logged_s + rounding_s
    with np.errstate(invalid="ignore"):
        is_simulated = ~is_shifted & (eligible_s > logged_s + rounding_s)
    causes = _causes(workload, logged_s, eligible_s)
    return Delayed(_by_cause(causes, is_simulated), _by_cause(causes, is_shifted))


def _causes(workload: Workload, logged_s: F8, eligible_s: F8) -> NDArray[np.object_]:
    """Return the cause of each job's delay: the log's, else a dependency that ended then."""
    causes = np.full(workload.n_jobs, OTHER, object)
    if DELAYED_BY.name in workload.jobs.column_names:
        code, names = _codes(workload, DELAYED_BY.name)
        causes = np.array([name or OTHER for name in names], object)[code]
    if not workload.job_edges.num_rows:
        return causes
    upstream, downstream = (values(workload.job_edges, k) for k in ("upstream", "downstream"))
    waits = codes(workload.job_edges, "kind", JOB_EDGE_KINDS) != JOB_EDGE_KINDS.index("soft")
    last_s = np.full(workload.n_jobs, np.nan)
    finish_s = column_or_default(workload.jobs, RECORDED[1])
    np.fmax.at(last_s, downstream[waits], finish_s[upstream[waits]])
    with np.errstate(invalid="ignore"):
        is_last = (last_s > logged_s) & (np.abs(eligible_s - last_s) <= NOTICED_S)
    causes[is_last & (causes == OTHER)] = DEPENDENCY
    return causes


def _by_cause(causes: NDArray[np.object_], rows: Mask) -> dict[str, int]:
    return dict(Counter(causes[rows].tolist()).most_common())


def _codes(workload: Workload, name: str) -> tuple[I8, list[str]]:
    column: pa.DictionaryArray = workload.jobs[name].combine_chunks().cast(CATEGORY)
    return column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()
