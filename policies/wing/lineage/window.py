"""Workload of the jobs in a window of two logs, with knowledge from the logs before it (§6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.accounts import account_of
from policies.wing.lineage.dependencies import (
    DAY_S,
    Dependencies,
    Downloads,
    SingleHop,
    drop_cycles,
    without_cycles,
)
from policies.wing.lineage.local_value import local_value
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.options import Options, empty_log, first_notes
from policies.wing.lineage.run_times import with_run_times
from policies.wing.lineage.templates import Templates, classify, medians
from policies.wing.lineage.worth import BLIND, NONE, POLL, JobGraph, RecordedJobs, week_workload
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.workload.amounts import with_account
from sim.workload.schema import DEFAULT_QUANTUM
from sim.workload.tables import take_rows
from sim.workload.workload import Workload

MAX_OMEGA_SHARE: Final = 2 / 3
"""Maximum ω, as a share of the time before the window, so that some jobs' value is known."""
_MAX_DOWNLOADS: Final = 1e6


def workload(
    logs: Logs,
    begin: float,
    end: float,
    options: Options | None = None,
    *,
    rounds: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Workload:
    """Build a workload of the jobs submitted in [begin, end), with knowledge from before `begin`.

    The jobs that ended by `begin` are the history, with the values seen by then. Table 1, applied
    to the history, decides which programs recur, which of their dependencies are hard, which jobs
    poll and how long after their inputs. Jobs of programs that do not recur are ad hoc, and have no
    template. Dependencies, run times and downloads of the window's jobs are the recorded ones.
    Their values are in columns of ``jobs`` that only oracles use (`policies.wing.lineage.worth`).
    Beyond Table 1, a dependency on a run of the same program is not hard, as its first run had no
    input from it. Nor is a dependency between recurring programs that was never seen before, or on
    output written after its reader was submitted.

    A job is one task that holds ``requested`` tokens from its start to its end. A job that failed
    because an input was missing did not run, and is left out.

    Parameters
    ----------
    logs : Logs
        Logs from before the window, in it, and as long after it as value is to be counted.
    begin, end : float
        The window, s, in the logs' time; in the workload it begins at 0.
    options : Options, optional
        Windows and thresholds. ω is at most two thirds of the time before `begin`. If the value is
        not downloads, a job attains its value if it completes within ω of its recorded completion.
    rounds : int, optional
        Hops downstream that count towards the value: 2^rounds; default: all of them.
    meta : mapping, optional
        Overrides entries of the workload's ``meta``, which then has no account of the logs:
        ``report`` counts anomalies by rule, ``known``
        has shares of recurring, polling and blind jobs and of hard dependencies, ``peak_tokens`` is
        the maximum held if no job waits, ``queue_share`` divides a cluster by the queues' peaks.

    Raises
    ------
    InputError
        If no job is submitted in the window, or none ended before it; or if the run times of many
        are unknown, and no option fills them.
    """
    settings = Options() if options is None else options
    _check(logs, begin, end)
    logs = with_run_times(logs, begin, end, settings)
    first_s = float(logs.column("submit_s")[0])
    templates = settings.templates(logs)
    joined = settings.join(logs)
    learnt = _learn(logs, templates, joined.dependencies, begin, settings)
    hops = drop_cycles(joined)
    omega_s = min(settings.omega_s, MAX_OMEGA_SHARE * (begin - first_s))
    downloads, value_report = _downloads(logs, hops, settings.value, omega_s)
    recorded, report = _recorded(logs, templates, hops.dependencies, downloads, learnt, begin)
    whole = bool((recorded.tokens == np.rint(recorded.tokens)).all())
    inside = (recorded.graph.submit_s >= 0) & (recorded.graph.submit_s < end - begin)
    own_meta = {
        "name": "lineage", "begin_s": float(begin), "end_s": float(end),
        "quantum": {"tokens": 1.0 if whole else DEFAULT_QUANTUM},
        "report": {**logs.report, **hops.report, **value_report, **report},
        "known": _shares(recorded, inside), "peak_tokens": _peak(recorded, inside),
        "queue_share": _queue_shares(recorded, inside),
    }  # fmt: skip
    jobs = week_workload(recorded, end - begin, rounds, own_meta | dict(meta or {}), omega_s)
    if meta is not None:  # the logs are not a user's
        return jobs
    relative_s = logs.column("submit_s") - begin
    account = account_of(logs, (relative_s >= 0) & (relative_s < end - begin), (begin, end))
    account.warnings[:0] = first_notes(logs, hops)
    return with_account(jobs, account)


def peak(begin_s: F8, end_s: F8, size: F8 | I8) -> float:
    """Return the maximum held at once by intervals [begin, end) that hold `size` each."""
    time_s, change = np.concatenate([begin_s, end_s]), np.concatenate([size, -size])
    return float(np.cumsum(change[np.lexsort((change, time_s))]).max(initial=0.0))


def _peak(recorded: RecordedJobs, rows: Mask) -> float:
    end_s = recorded.graph.finish_s[rows]
    return peak(end_s - recorded.duration_s[rows], end_s, recorded.tokens[rows])


def _queue_shares(recorded: RecordedJobs, inside: Mask) -> dict[str, float]:
    """Return each queue's share of the cluster, in proportion to the peak of its requests."""
    codes, names = recorded.queue
    peaks = {
        names[code]: max(_peak(recorded, inside & (codes == code)), 1e-3)
        for code in np.unique(codes[inside]).tolist()
    }
    return {name: peak_tokens / sum(peaks.values()) for name, peak_tokens in peaks.items()}


def _shares(recorded: RecordedJobs, inside: Mask) -> dict[str, float]:
    recurring = (recorded.template[0] > 0) & inside
    edge = inside[recorded.graph.up] & inside[recorded.graph.down]
    parts = {
        "jobs of recurring programs": (recurring, inside),
        "of these, polling": (recorded.mode == POLL, recurring),
        "of these, submitted without checking their hard inputs": (
            recorded.mode == BLIND,
            recurring,
        ),
        "hard, of dependencies in the window": (recorded.graph.hard, edge),
    }
    return {name: float(np.mean(hit[all_])) for name, (hit, all_) in parts.items() if all_.any()}


def _check(logs: Logs, begin: float, end: float) -> None:
    submit_s, finish_s = (logs.column(n) for n in ("submit_s", "finish_s"))
    if not logs.n_jobs:
        raise empty_log(logs)
    span = f"the logs have submissions from {submit_s[0]:.15g} to {submit_s[-1]:.15g} s"
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
            f"no job ended before {begin:.15g} s, so there is no history to learn from; {span}: "
            "choose a later begin",
            rule="no past",
        )


@dataclass(frozen=True, eq=False)
class _LearntTemplates:
    """Facts about T templates, learnt from the logs before the window."""

    recurring: Mask  # (T,)
    polls: Mask  # (T,)
    hard: I8  # pairs of recurring templates, upstream × T + downstream; ascending

    def is_hard(self, template: I4, edges: Dependencies) -> Mask:
        """Return a mask of the hard dependencies, by Table 1 and the rules added in `workload`."""
        up, down = template[edges.upstream], template[edges.downstream]
        both = self.recurring[up] & self.recurring[down]
        pair = up.astype(np.int64) * len(self.recurring) + down
        out: Mask = ~both | ((up != down) & np.isin(pair, self.hard))
        return out


def _learn(
    logs: Logs, templates: Templates, edges: Dependencies, begin: float, options: Options
) -> _LearntTemplates:
    """Learn from the jobs that ended before `begin`, and from nothing later."""
    ended = logs.column("finish_s") < begin
    rows = np.flatnonzero(ended)
    number = np.cumsum(ended) - 1
    ended_edges = edges.where(ended[edges.upstream] & ended[edges.downstream])
    up, down = (number[a].astype(np.int32) for a in (ended_edges.upstream, ended_edges.downstream))
    past, _ = without_cycles(
        Dependencies(
            len(rows), up, down, ended_edges.read_s, ended_edges.written_s, ended_edges.n_reads
        )
    )
    empty = np.empty(0, np.int32)
    jobs = take_rows(logs.jobs, rows)
    past_logs = Logs(jobs, np.empty(0), empty, empty.astype(np.int8), empty, empty, logs.files)
    submit_s = past_logs.column("submit_s")
    days = np.ceil((begin - submit_s[0]) / DAY_S)
    learn = (begin - days * DAY_S, begin) if options.learn_s is None else options.learn_s
    past_templates = Templates(templates.job_template[rows], templates.name)
    kinds = classify(past_logs, past_templates, past, options.thresholds, learn=learn)
    hard = kinds.edge_hard & kinds.edge_recurring
    pair = (
        past_templates.job_template[past.upstream].astype(np.int64) * len(templates)
        + past_templates.job_template[past.downstream]
    )
    return _LearntTemplates(kinds.recurring, kinds.template_polls, np.unique(pair[hard]))


def _downloads(
    logs: Logs, hops: SingleHop, value: str, omega_s: float
) -> tuple[Downloads, dict[str, int]]:
    """Return the downloads; for another value, equivalent downloads of each job ω after its end.

    Values that are not whole numbers are scaled to millionths of the largest.
    """
    if value == "downloads":
        return hops.downloads, {}
    n, report = local_value(logs, hops.downloads, value)
    if (n != np.rint(n)).any() or n.max() > _MAX_DOWNLOADS:
        n = np.where(n > 0, np.maximum(n * (_MAX_DOWNLOADS / n.max()), 1.0), 0.0)
    rows = np.flatnonzero(n).astype(np.int32)
    times_s = logs.column("finish_s")[rows] + omega_s
    return Downloads(rows, times_s, np.rint(n[rows]).astype(np.int32)), report


def _recorded(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    downloads: Downloads,
    learnt: _LearntTemplates,
    begin: float,
) -> tuple[RecordedJobs, dict[str, int]]:
    times = ("submit_s", "start_s", "finish_s")
    submit_s, start_s, finish_s = (logs.column(name) - begin for name in times)
    job_template = templates.job_template
    up, down = edges.upstream.astype(np.int64), edges.downstream.astype(np.int64)
    hard = learnt.is_hard(job_template, edges)
    late = hard & (finish_s[up] > submit_s[down])
    hard &= ~late
    needs_input = np.bincount(down[hard], minlength=logs.n_jobs) > 0
    mode = np.where(needs_input, np.where(learnt.polls[job_template], POLL, BLIND), NONE)
    ready_s = np.full(logs.n_jobs, -np.inf)
    np.maximum.at(ready_s, down[hard], finish_s[up[hard]])
    polls = mode == POLL
    lag_s = np.where(polls, submit_s - ready_s, np.nan)
    ended_before = polls & (finish_s < 0)
    usual_s = medians(lag_s[ended_before], job_template[ended_before], len(templates))[job_template]
    lag_s = np.where(polls, np.fmin(lag_s, usual_s), 0.0)
    graph = JobGraph(
        submit_s, finish_s, logs.column("compute_s"), up, down, hard, polls[down],
        downloads.job.astype(np.int64), downloads.time_s - begin, downloads.n.astype(np.int64),
    )  # fmt: skip
    ran = ~logs.has("outcome", "missing_input")
    template = np.where(learnt.recurring[job_template], job_template + 1, 0)
    recorded = RecordedJobs(
        graph, finish_s - start_s, lag_s, logs.column("priority"), logs.column("requested"), mode,
        template=(template, ["", *templates.name]),
        user=(logs.column("user"), logs.names("user")),
        queue=(logs.column("queue"), [name or "default" for name in logs.names("queue")]),
        job_ids=lambda rows: logs.jobs["job_id"].take(pa.array(rows)).combine_chunks(),
    )  # fmt: skip
    report = {
        "inputs written after their reader's submission, not hard": late,
        "jobs that failed because an input was missing, left out": ~ran,
        "jobs that failed in the logs, run as if they had succeeded": logs.has("outcome", "failed"),
        "jobs that had not ended (censored), run for as long as seen": logs.has(
            "run_time", "censored"
        ),
    }
    counted = {rule: int(np.count_nonzero(odd)) for rule, odd in report.items() if odd.any()}
    return recorded if ran.all() else recorded.where(ran), counted
