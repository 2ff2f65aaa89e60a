"""Recorded waits of a log: how much was before jobs were eligible, and its scheduler's reasons."""

from __future__ import annotations

import numpy as np

from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic
from sim.workload import delays

NAMED = 12
"""Largest number of reasons that are told by name."""


def recorded_waits(data: Dataset) -> list[Statistic]:
    """Summarise recorded waits: mean, share before eligibility, and reasons that no room ends.

    Reasons are the last ones that the log's scheduler gave: limits, dependencies, holds, throttles
    of arrays and begin times, each with its jobs and its share of the wait
    (`sim.workload.delays`). Nothing for a workload without recorded starts.
    """
    workload = data.workload
    assert workload is not None
    section = Section("load")
    wait_s = delays.waits_s(workload)
    known = np.isfinite(wait_s)
    if not known.any():
        return []
    section.group = "recorded wait, from submission to start"
    section.add("recorded_wait", "mean", wait_s[known].mean(), "span")
    before = delays.share_before_eligible(workload)
    section.add("before_eligible", "share before the job was free to start", before, "share")
    counts = delays.reasons(workload)
    if counts is None:
        return section.statistics
    section.add("reason_named", "share with a reason that no free room ends", counts.share, "share")
    section.group = "jobs by a last reason that no free room ends"
    section.add("reason_jobs", f"of {counts.n_jobs:,} jobs", counts.n_named, "count")
    for name, n in [*counts.by_name.items()][:NAMED]:
        section.add(f"reason_{name}", f"{name} ({delays.kind_of(name)})", n, "count")
    section.group = "share of the recorded wait by the kind of its last reason"
    for kind, kind_wait_s in counts.waits_s.items():
        share = kind_wait_s / counts.wait_s if counts.wait_s else np.nan
        section.add(f"reason_wait_{kind}", kind, share, "share")
    return section.statistics
