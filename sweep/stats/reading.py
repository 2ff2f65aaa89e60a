"""Accounts of the logs that a sweep read, in sentences: what is left out of them, and changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from sim.base.losses import changed_share, left_out_share, sentence
from sweep.stats.verdict import Verdict

NOTABLE: Final = 0.05
"""Share of a log's work from which on a verdict says that it is left out."""


@dataclass(frozen=True)
class Reading:
    """A log as a sweep read it."""

    trace: str
    jobs: int
    left_out_share: float  # of the log's work, without what options leave out
    unread_share: float  # the same, without what the cluster did in vain
    changed_share: float  # of the log's work, that the reader adds or takes away
    sentence: str  # what is left out and changed; empty if nothing is
    warnings: tuple[str, ...] = ()  # what else to know of the log

    @property
    def lines(self) -> list[str]:
        """The sentence, if there is one, and the warnings, each with a full stop."""
        return [_stopped(line) for line in (self.sentence, *self.warnings) if line]

    @property
    def caveat(self) -> str:
        """The end of a verdict's sentence if much of the log's work is not in it; else empty."""
        if self.left_out_share > NOTABLE:
            return f"{100 * self.left_out_share:.0f} % of the log's work is left out"
        if self.changed_share > NOTABLE:
            return f"reading changed the log's work by {100 * self.changed_share:.0f} %"
        return ""

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``answer.json``."""
        return {
            "trace": self.trace,
            "jobs": self.jobs,
            "left_out_share": self.left_out_share,
            "sentence": " ".join(self.lines),
        }


def readings(config: Mapping[str, Any], provenance: Mapping[str, Any]) -> list[Reading]:
    """Return the logs of a sweep, one a trace, by its configuration and provenance.

    Of several workloads of one trace (a draw for each seed) it is the one with the largest loss.
    """
    by_trace: dict[str, Reading] = {}
    for workload in provenance.get("inputs") or ():
        name = str(workload.get("trace", ""))
        options = (config.get("trace") or {}).get(name) or {}
        reading = describe(name, options.get("path"), workload)
        if reading is None:
            continue
        other = by_trace.get(name)
        if other is None or reading.left_out_share > other.left_out_share:
            by_trace[name] = reading
    return list(by_trace.values())


def describe(trace: str, path: object, workload: Mapping[str, Any]) -> Reading | None:
    """Return a log from the description of its workload; None if no log was read."""
    report = (workload.get("meta") or {}).get("report") or {}
    account, warnings = report.get("account") or {}, report.get("warnings") or ()
    if not account and not warnings:
        return None
    name = PurePath(str(path)).name if path else trace
    return Reading(
        trace,
        int(workload.get("n_jobs", 0)),
        left_out_share(account),
        left_out_share(account, with_wasted=False),
        changed_share(account),
        sentence(name, account, report.get("bad_examples") or {}),
        tuple(f"{name}: {warning}" for warning in warnings),
    )


def with_caveats(sentences: Sequence[str], logs: Sequence[Reading]) -> list[str]:
    """Return an answer's sentences, the first of which says which logs much is left out of.

    Not if one of them says so already.
    """
    caveats = [log for log in logs if log.caveat]
    is_stated = any(log.caveat in line for log in caveats for line in sentences)
    if not caveats or not sentences or is_stated:
        return list(sentences)
    several = len(logs) > 1
    texts = [f"{log.trace}: {log.caveat}" if several else log.caveat for log in caveats]
    first = sentences[0].removesuffix(".")
    return [f"{first}; but {', '.join(texts)}.", *sentences[1:]]


def in_verdicts(verdicts: Sequence[Verdict], logs: Sequence[Reading]) -> list[Verdict]:
    """Return verdicts whose sentences say so if much of their trace is left out."""
    by_trace = {log.trace: log for log in logs}
    return [
        dataclasses.replace(v, sentence=with_caveats([v.sentence], [by_trace[v.trace]])[0])
        if v.trace in by_trace
        else v
        for v in verdicts
    ]


def _stopped(line: str) -> str:
    return line if line.endswith(".") else f"{line}."
