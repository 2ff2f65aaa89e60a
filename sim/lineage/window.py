"""The jobs of a window of two logs as a workload, known by what the logs before it show (§6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.lineage.dependencies import (
    DAY_S,
    Dependencies,
    Downloads,
    SingleHop,
    drop_cycles,
    join,
    without_cycles,
)
from sim.lineage.logs import Logs
from sim.lineage.profile import Options, local_value
from sim.lineage.templates import Templates, classify, find_templates, medians
from sim.lineage.worth import BLIND, NONE, POLL, JobGraph, RecordedJobs, week_workload
from sim.workload.schema import DEFAULT_QUANTUM
from sim.workload.tables import plain
from sim.workload.workload import Workload

SEEN: Final = 2 / 3
"""Most of the time before the window that ω may last, so that some jobs' worth is known."""
_MOST: Final = 1e6


def workload(
    logs: Logs,
    begin: float,
    end: float,
    options: Options | None = None,
    *,
    rounds: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Workload:
    """Return the jobs submitted in [begin, end) as a workload, with what was known of them before.

    Which programs recur, which of their dependencies are hard, which jobs poll and how long after
    their inputs, is what Table 1 makes of the jobs that had ended by `begin`; they are the history,
    with what they were worth by then. Jobs of programs that do not recur are ad hoc, and have no
    template. Which job of the window read which, how long it ran and what was downloaded is what
    happened; what it was worth is in columns of ``jobs`` that only oracles look at
    (`sim.lineage.worth`). Beyond Table 1, a dependency on a run of the same program is not hard,
    as its first run did without; nor is one between recurring programs that was never seen before,
    or on what was made after its reader was submitted.

    A job is one task that holds ``requested`` tokens from its start to its end. One that failed for
    want of an input did not run, and is left out.

    Parameters
    ----------
    logs : Logs
        What happened: before the window, in it, and as long after it as value is to be counted.
    begin, end : float
        The window, s, in the logs' time; in the workload it begins at 0.
    options : Options, optional
        Windows and thresholds. ω is at most two thirds of the time before `begin`. What is not
        valued by downloads is worth its value if it completes within ω of when it did.
    rounds : int, optional
        How far downstream worth is counted: 2^rounds hops; left out, all the way.
    meta : mapping, optional
        Put into the workload's ``meta``, in place of its own: ``report`` counts what was odd, by
        rule, ``known`` has shares of what was told apart, ``peak_tokens`` is the most held if no
        job waits, and ``queue_share`` divides a cluster by each queue's peak.

    Raises
    ------
    InputError
        If no job is submitted in the window, or none had ended before it.
    """
    given = Options() if options is None else options
    _check(logs, begin, end)
    first_s = float(logs.column("submit_s")[0])
    templates = find_templates(logs, similarity=given.similarity)
    joined = join(logs, given.window_s)
    known = _learn(logs, templates, joined.dependencies, begin, given)
    hops = drop_cycles(joined)
    omega_s = min(given.omega_s, SEEN * (begin - first_s))
    taken, odd = _taken(logs, hops, given.value, omega_s)
    of, report = _recorded(logs, templates, hops.dependencies, taken, known, begin)
    whole = bool((of.tokens == np.rint(of.tokens)).all())
    inside = (of.past.submit_s >= 0) & (of.past.submit_s < end - begin)
    said = {
        "name": "lineage", "begin_s": float(begin), "end_s": float(end),
        "quantum": {"tokens": 1.0 if whole else DEFAULT_QUANTUM},
        "report": {**logs.report, **hops.report, **odd, **report}, "known": _shares(of, inside),
        "peak_tokens": _peak(of, inside), "queue_share": _queue_shares(of, inside),
    }  # fmt: skip
    return week_workload(of, end - begin, rounds, said | dict(meta or {}), omega_s)


def peak(begin_s: F8, end_s: F8, size: F8 | I8) -> float:
    """Return the most that is held at once of what is held for some time each."""
    at, change = np.concatenate([begin_s, end_s]), np.concatenate([size, -size])
    return float(np.cumsum(change[np.lexsort((change, at))]).max(initial=0.0))


def _peak(of: RecordedJobs, rows: Mask) -> float:
    end_s = of.past.finish_s[rows]
    return peak(end_s - of.duration_s[rows], end_s, of.tokens[rows])


def _queue_shares(of: RecordedJobs, inside: Mask) -> dict[str, float]:
    """Return a share for each queue of the window, in proportion to the peak of its requests."""
    codes, names = of.queue
    peaks = {
        names[code]: max(_peak(of, inside & (codes == code)), 1e-3)
        for code in np.unique(codes[inside]).tolist()
    }
    return {name: held / sum(peaks.values()) for name, held in peaks.items()}


def _shares(of: RecordedJobs, inside: Mask) -> dict[str, float]:
    recurring = (of.template[0] > 0) & inside
    edge = inside[of.past.up] & inside[of.past.down]
    parts = {
        "jobs of recurring programs": (recurring, inside),
        "of these, polling": (of.mode == POLL, recurring),
        "of these, blind to inputs that they can't do without": (of.mode == BLIND, recurring),
        "hard, of dependencies in the window": (of.past.hard, edge),
    }
    return {name: float(np.mean(hit[all_])) for name, (hit, all_) in parts.items() if all_.any()}


def _check(logs: Logs, begin: float, end: float) -> None:
    submit_s, finish_s = (logs.column(n) for n in ("submit_s", "finish_s"))
    if not logs.n_jobs:
        raise InputError("the job log is empty: there is no job to schedule", rule="empty log")
    span = f"the logs' are submitted from {submit_s[0]:.15g} to {submit_s[-1]:.15g} s"
    if not (np.isfinite(begin) and begin < end):
        raise InputError(
            f"the window needs a finite begin before its end, not [{begin!r}, {end!r}); {span}",
            rule="empty window",
        )
    if not ((submit_s >= begin) & (submit_s < end)).any():
        raise InputError(
            f"no job is submitted in [{begin:.15g}, {end:.15g}) s; {span}", rule="empty window"
        )
    if not (finish_s < begin).any():
        raise InputError(
            f"no job had ended before {begin:.15g} s, so that nothing is known of any; {span}: "
            "begin the window later",
            rule="no past",
        )


@dataclass(frozen=True, eq=False)
class _Known:
    """What the logs before the window show of T templates."""

    recurring: Mask  # (T,)
    polls: Mask  # (T,)
    hard: I8  # pairs of recurring templates, upstream × T + downstream; ascending

    def is_hard(self, template: I4, edges: Dependencies) -> Mask:
        """Return which dependencies are hard, by Table 1 and what it leaves open."""
        up, down = template[edges.upstream], template[edges.downstream]
        both = self.recurring[up] & self.recurring[down]
        pair = up.astype(np.int64) * len(self.recurring) + down
        out: Mask = ~both | ((up != down) & np.isin(pair, self.hard))
        return out


def _learn(
    logs: Logs, templates: Templates, edges: Dependencies, begin: float, options: Options
) -> _Known:
    """Learn from the jobs that had ended; nothing that came later has a part in it."""
    ended = logs.column("finish_s") < begin
    rows = np.flatnonzero(ended)
    number = np.cumsum(ended) - 1
    kept = edges.where(ended[edges.upstream] & ended[edges.downstream])
    up, down = (number[a].astype(np.int32) for a in (kept.upstream, kept.downstream))
    past, _ = without_cycles(
        Dependencies(len(rows), up, down, kept.read_s, kept.written_s, kept.n_reads)
    )
    empty = np.empty(0, np.int32)
    jobs = pa.table(
        {n: plain(c.take(pa.array(rows)).combine_chunks())
         for n, c in zip(logs.jobs.column_names, logs.jobs.columns, strict=True)}
    )  # fmt: skip
    those = Logs(jobs, np.empty(0), empty, empty.astype(np.int8), empty, empty, logs.files)
    submit_s = those.column("submit_s")
    days = np.ceil((begin - submit_s[0]) / DAY_S)
    learn = (begin - days * DAY_S, begin) if options.learn_s is None else options.learn_s
    of = Templates(templates.job_template[rows], templates.name)
    found = classify(those, of, past, options.thresholds, learn=learn)
    hard = found.edge_hard & found.edge_recurring
    pair = (
        of.job_template[past.upstream].astype(np.int64) * len(templates)
        + of.job_template[past.downstream]
    )
    return _Known(found.recurring, found.template_polls, np.unique(pair[hard]))


def _taken(
    logs: Logs, hops: SingleHop, value: str, omega_s: float
) -> tuple[Downloads, dict[str, int]]:
    """Return the downloads; of another value, as many of each job ω after its end as it is worth.

    What is no whole number is counted in millionths of the greatest.
    """
    if value == "downloads":
        return hops.downloads, {}
    worth, odd = local_value(logs, hops.downloads, value)
    if (worth != np.rint(worth)).any() or worth.max() > _MOST:
        worth = np.where(worth > 0, np.maximum(worth * (_MOST / worth.max()), 1.0), 0.0)
    rows = np.flatnonzero(worth).astype(np.int32)
    times_s = logs.column("finish_s")[rows] + omega_s
    return Downloads(rows, times_s, np.rint(worth[rows]).astype(np.int32)), odd


def _recorded(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    loads: Downloads,
    known: _Known,
    begin: float,
) -> tuple[RecordedJobs, dict[str, int]]:
    times = ("submit_s", "start_s", "finish_s")
    submit_s, start_s, finish_s = (logs.column(name) - begin for name in times)
    of = templates.job_template
    up, down = edges.upstream.astype(np.int64), edges.downstream.astype(np.int64)
    hard = known.is_hard(of, edges)
    late = hard & (finish_s[up] > submit_s[down])
    hard &= ~late
    needs = np.bincount(down[hard], minlength=logs.n_jobs) > 0
    mode = np.where(needs, np.where(known.polls[of], POLL, BLIND), NONE)
    ready_s = np.full(logs.n_jobs, -np.inf)
    np.maximum.at(ready_s, down[hard], finish_s[up[hard]])
    polls = mode == POLL
    lag_s = np.where(polls, submit_s - ready_s, np.nan)
    before = polls & (finish_s < 0)
    usual_s = medians(lag_s[before], of[before], len(templates))[of]
    lag_s = np.where(polls, np.fmin(lag_s, usual_s), 0.0)
    past = JobGraph(
        submit_s, finish_s, logs.column("compute_s"), up, down, hard, polls[down],
        loads.job.astype(np.int64), loads.time_s - begin, loads.n.astype(np.int64),
    )  # fmt: skip
    ran = ~logs.has("outcome", "missing_input")
    recorded = RecordedJobs(
        past, finish_s - start_s, lag_s, logs.column("priority"), logs.column("requested"), mode,
        template=(np.where(known.recurring[of], of + 1, 0), ["", *templates.name]),
        user=(logs.column("user"), logs.names("user")),
        queue=(logs.column("queue"), [name or "default" for name in logs.names("queue")]),
        job_ids=lambda rows: logs.jobs["job_id"].take(pa.array(rows)).combine_chunks(),
    )  # fmt: skip
    report = {
        "inputs made after their reader's submission, not hard": late,
        "jobs that failed for want of an input, left out": ~ran,
        "jobs that failed in the logs, run as if they had not": logs.has("outcome", "failed"),
    }
    counted = {rule: int(np.count_nonzero(odd)) for rule, odd in report.items() if odd.any()}
    return recorded if ran.all() else recorded.where(ran), counted
