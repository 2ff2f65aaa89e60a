"""Options of a profile, and the steps that they decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from policies.wing.lineage.dependencies import (
    MAX_UNREAD,
    OMEGA_S,
    OUTSIDE_RULES,
    UNREAD_RULE,
    WINDOW_S,
    SingleHop,
    join,
)
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.partial import ALIKE, NESTED_HINT, near_reads
from policies.wing.lineage.templates import (
    SIMILARITY,
    VARYING,
    Templates,
    Thresholds,
    find_templates,
)
from sim.base.arrays import I4
from sim.base.errors import InputError

MAX_OUTSIDE: Final = 0.5
"""Share of operations beyond the times of their jobs above which they are told first."""


@dataclass(frozen=True)
class Options:
    """Options of a profile.

    Attributes
    ----------
    window_s : float
        T: maximum age of the write that a read depends on, s (§4.2).
    omega_s : float
        ω: downstream jobs count if submitted within this time of a job's completion, s (§4.5.1). It
        is at most a quarter of the time that the log covers.
    learn_s : (float, float) or None
        Interval from which recurrence is learnt, s; None: the whole log.
    similarity : float
        Minimum similarity of signatures of one template.
    varying : tuple of str
        Patterns of text that varies between runs of one program (`templates.varying_patterns`).
    partitions : {"apart", "inside"}
        Names inside that of a folder (``fruit/dt=2025-03-03`` in ``fruit``) are files of their own,
        or parts of the folder.
    fill : float, "median" or None
        Run time that jobs of unknown run time are given in a workload, s, or the median of their
        template's known ones; None: median, but such a workload of many is refused.
    thresholds : Thresholds
        Thresholds of Table 1.
    exact_jobs : int
        Maximum number of valid jobs for which aggregates under ω are exact; for more jobs they are
        intervals.
    jobs_per_cut : int
        Number of jobs that share the two cut-offs enclosing their own, for such intervals.
    value : str
        A job's local value: ``downloads`` of its output, 1 each (``jobs``), its resource-time
        (``compute``), or the value of a column of the job log (§4.3, §4.5.2).
    """

    window_s: float = WINDOW_S
    omega_s: float = OMEGA_S
    learn_s: tuple[float, float] | None = None
    similarity: float = SIMILARITY
    varying: tuple[str, ...] = VARYING
    partitions: Literal["apart", "inside"] = "apart"
    fill: float | Literal["median"] | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    exact_jobs: int = 100_000
    jobs_per_cut: int = 400
    value: str = "downloads"

    def __post_init__(self) -> None:
        for name in ("window_s", "omega_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.similarity <= 1:
            raise InputError(f"similarity must be between 0 and 1, not {self.similarity}")
        if self.partitions not in ("apart", "inside"):
            raise InputError(f"partitions must be apart or inside, not {self.partitions!r}")
        is_number = isinstance(self.fill, (int, float)) and not isinstance(self.fill, bool)
        if not (
            self.fill in (None, "median") or (is_number and 0 < float(self.fill or 0) < np.inf)
        ):
            raise InputError(f"fill must be median or a number of seconds, not {self.fill!r}")

    def templates(self, logs: Logs) -> Templates:
        """Group the jobs of logs into templates."""
        return find_templates(logs, similarity=self.similarity, varying=self.varying)

    def programs(self, logs: Logs) -> I4:
        """Return the template of each job."""
        return self.templates(logs).job_template

    def join(self, logs: Logs) -> SingleHop:
        """Join reads to writes, with cycles, and counts of reads of names near a written one."""
        hops = join(
            logs, self.window_s, inside=self.partitions == "inside", find_programs=self.programs
        )
        near = near_reads(logs, inside=self.partitions == "inside")
        return replace(hops, report=hops.report | near)


def first_notes(logs: Logs, hops: SingleHop) -> tuple[str, ...]:
    """Return what to know of logs before all else, a sentence each."""
    notes = [
        f"{n:,} {rule}" for rule, n in hops.report.items() if rule == ALIKE or NESTED_HINT in rule
    ]
    if hops.unread_share() > MAX_UNREAD:
        n_unread, share = hops.report[UNREAD_RULE], 100 * hops.unread_share()
        notes.append(
            f"{n_unread:,} of {hops.n_writes:,} writes ({share:.1f} %) have no reader, as another "
            "write of their file followed before anyone read it; if they add to the file, the log "
            "should say so (operation append, lifecycleStateChange APPEND)"
        )
    n_outside = sum(hops.report.get(rule, 0) for rule in OUTSIDE_RULES)
    if n_outside > MAX_OUTSIDE * hops.n_operations:
        notes.append(
            f"{n_outside:,} of {hops.n_operations:,} operations lie before or after their job's "
            "run: do the two logs count time from one zero, and in one zone?"
        )
    return (*logs.notes, *notes)


def empty_log(logs: Logs) -> InputError:
    """Return the error of logs without a job: what became of their rows."""
    counts = ", ".join(f"{n:,} × {rule}" for rule, n in logs.report.items()) or "it has no rows"
    text = f"no job is left of the log of jobs: {'; '.join(logs.notes) or counts}"
    return InputError(text, rule="empty log")
