"""Counts of events and runs, by rule, and sentences of those that a user must know first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.wing.lineage.openlineage.datasets import ALTER, CLEAR, change_of
from policies.wing.lineage.openlineage.runs import Run
from policies.wing.lineage.openlineage.tables import is_streaming
from policies.wing.lineage.openlineage.wrappers import Containment

WRAPPERS_RULE: Final = "runs that contain others"
MAX_CENSORED: Final = 0.02
"""Share of runs that have not ended above which they are told first."""
_N_SHOWN: Final = 5


@dataclass
class EventCounts:
    """Counts of events that are of no run, or unlike what they should be.

    Attributes
    ----------
    n_values : int
        Number of JSON values.
    bad : list of (str, str)
        Place and reason of each malformed one.
    statics : dict of str to int
        Events about a job or a dataset without a run, by rule.
    wrapper : str
        Keys under which the first malformed value has an event; empty if none has.
    """

    n_values: int = 0
    bad: list[tuple[str, str]] = field(default_factory=list)
    statics: dict[str, int] = field(default_factory=dict)
    wrapper: str = ""

    def report(self, n_unzoned: int) -> dict[str, int]:
        """Return the counts by rule; `n_unzoned` events have a time without a zone."""
        counts = {f"events: {rule}": n for rule, n in self.statics.items()}
        if n_unzoned:
            counts["events: eventTime without a zone, taken as UTC"] = n_unzoned
        if self.bad:
            shown = ", ".join(f"{place} ({reason})" for place, reason in self.bad[:_N_SHOWN])
            more = ", …" if len(self.bad) > _N_SHOWN else ""
            counts[f"events: malformed, lines {shown}{more}"] = len(self.bad)
        return counts

    def notes(self) -> list[str]:
        """Say how many events are malformed, and why the first one is."""
        if not self.bad:
            return []
        place, reason = self.bad[0]
        return [
            f"{_share(len(self.bad), self.n_values)} events are malformed: line {place}: {reason}"
        ]


def run_counts(jobs: Sequence[Run], inside: Containment) -> tuple[dict[str, int], list[str]]:
    """Count runs by rule; return the counts, and sentences with the shares of runs.

    Parameters
    ----------
    jobs : sequence of Run
        Runs that become jobs.
    inside : Containment
        Runs that do not, as they contain others.
    """
    n, n_wrappers = len(jobs), len(inside.wrappers)
    n_open = sum(run.end_s is None for run in jobs)
    n_streaming = sum(run.end_s is None and is_streaming(run) for run in jobs)
    is_open = "have not ended (censored)"
    if n_streaming:
        is_open += f"; {n_streaming:,} of them stream, and write at each RUNNING event"
    elif n_open <= MAX_CENSORED * n:
        is_open = ""
    rows = (
        (
            WRAPPERS_RULE + ", left out", n_wrappers, n + n_wrappers,
            "contain others by their parent facet, and are left out (--set wrappers=keep)",
        ),
        (WRAPPERS_RULE + " and are inside these, kept", inside.n_circular, n, ""),
        (
            "runs without START", sum(run.start_s is None for run in jobs), n,
            "have no START: they start at their first event",
        ),
        ("runs that did not end (censored)", n_open, n, is_open),
        (
            "runs of unknown run time",
            sum(run.run_time in ("no_start", "no_end") for run in jobs), n,
            "have a single event: their run times are unknown, not 0 s",
        ),
        (
            "runs with several STARTs", sum(run.start_s != run.last_start_s for run in jobs), n,
            "have several STARTs: the first counts",
        ),
        (
            "runs with several ends", sum(run.first_end_s != run.end_s for run in jobs), n,
            "have several ends: the latest counts",
        ),
    )  # fmt: skip
    counts = {f"events: {rule}": count for rule, count, _, _ in rows if count}
    counts |= {f"events: {rule}": count for rule, count in _output_counts(jobs).items() if count}
    notes = [
        f"{_share(count, total)} runs {text}" for _, count, total, text in rows if count and text
    ]
    return counts, notes


def _output_counts(jobs: Sequence[Run]) -> dict[str, int]:
    changes = [change_of(bits) for run in jobs for bits in run.outputs.values()]
    n_lost = sum(len(run.outputs) for run in jobs if run.outcome != "done")
    return {
        "outputs of runs that failed": n_lost,
        "outputs emptied or dropped, no writes": sum(change == CLEAR for change in changes),
        "outputs altered, no writes": sum(change == ALTER for change in changes),
    }


def _share(n: int, total: int) -> str:
    return f"{n:,} of {total:,} ({100 * n / max(total, 1):.1f} %)"
