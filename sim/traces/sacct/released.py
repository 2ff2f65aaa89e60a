"""Releases: when jobs were free to start, and by which cause that was after their submission.

A dependency on other jobs and the throttle of an array depend on the schedule. A simulation has
them, too, so such jobs are submitted when they really were. A begin time and a hold do not depend
on it: such a job is submitted when it became eligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.traces.sacct.arrays import LATE_S, Arrays
from sim.traces.sacct.columns import Log, by_text, has_text, mask
from sim.traces.sacct.dependencies import Dependencies
from sim.traces.sacct.groups import Groups
from sim.traces.sacct.selection import Selection
from sim.workload.delays import ROUNDING_S, kind_of

CAUSES: Final = ("", "throttle", "dependency", "begin", "hold", "other")


@dataclass(frozen=True, eq=False)
class Releases:
    """Releases of K records.

    Attributes
    ----------
    release_s : (K,) float64
        From when on it is free to start, but for what is simulated.
    cause : (K,) int64
        Index into `CAUSES`, for what became eligible after its submission.
    """

    release_s: F8
    cause: I8


def find_releases(
    chosen: Selection, groups: Groups, arrays: Arrays, dependencies: Dependencies
) -> Releases:
    """Find the releases of the K head records."""
    log, first_run = chosen.head_log, chosen.first_run
    submit_s = first_run.submit_s
    eligible_s = np.fmin(first_run.eligible_s, first_run.start_s)
    eligible_s = np.where(np.isnan(first_run.eligible_s), submit_s, eligible_s)
    eligible_s = np.fmax(eligible_s, submit_s)
    depends = np.zeros(len(groups.first), dtype=bool)
    depends[dependencies.downstream] = True
    waits = depends[groups.job]
    is_held = np.zeros(len(submit_s), dtype=bool)
    release_s = eligible_s.copy()
    rows = arrays.rows[arrays.is_throttled & ~groups.is_array[arrays.rows]]
    free_s = np.full(len(submit_s), np.inf)
    free_s[arrays.rows] = arrays.free_s[arrays.key]
    is_held[rows] = eligible_s[rows] > free_s[rows] + LATE_S
    release_s[is_held] = np.fmax(free_s, submit_s)[is_held]
    release_s[waits] = submit_s[waits]
    is_late = eligible_s > submit_s + ROUNDING_S
    cause = np.full(len(submit_s), CAUSES.index("other"))
    for name, is_cause in reversed(_causes(log, is_held, waits).items()):
        cause[is_cause] = CAUSES.index(name)
    return Releases(release_s, np.where(is_late, cause, 0))


def _causes(log: Log, is_held: Mask, waits: Mask) -> dict[str, Mask]:
    """Return the records of each cause; the first of several counts."""
    kinds = by_text(log["Reason"], kind_of) if "Reason" in log else None

    def has_reason(kind: str) -> Mask:
        return np.zeros(len(is_held), dtype=bool) if kinds is None else mask(pc.equal(kinds, kind))

    return {
        "throttle": is_held,
        "dependency": waits | has_reason("dependency"),
        "hold": has_reason("hold") | has_text(log, "Held"),
        "begin": has_reason("begin time") | has_text(log, "Begin"),
    }
