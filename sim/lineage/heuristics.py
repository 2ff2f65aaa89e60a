"""What jobs and dependencies are like: Table 1, every threshold a parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I1, I4, Mask
from sim.base.errors import InputError
from sim.lineage.dependencies import Dependencies
from sim.lineage.logs import Logs
from sim.lineage.single_hop import DAY_S
from sim.lineage.templates import Templates

INPUT_MODES = ("none", "blind", "poll")
"""A job needs no input of recurring jobs, is submitted without looking, or waits for it."""
QUARTER_S = 90 * DAY_S


@dataclass(frozen=True)
class Thresholds:
    """The numbers in Table 1, and those that it leaves open."""

    min_submissions: int = 3  # least runs of a recurring template, in the whole log
    # a recurring template has a run in each whole period of what is learnt from. None: 30 days if
    # that is three months or longer, else a week (or all of it, if it is shorter)
    period_s: float | None = None
    # greatest coefficient of variation of a periodic template's inter-arrival times: clocks are
    # exact to seconds, while what waits for input varies as its inputs' run times do
    periodic_cv: float = 0.01
    # a polling job is submitted at most so long after its last input was complete
    polling_lag_s: float = 15 * 60.0
    polling_share: float = 0.5  # a template polls if at least this share of its jobs do
    # more than this share of a template's jobs consume one job's output: a hard dependency
    hard_share: float = 0.95


@dataclass(frozen=True, eq=False)
class Character:
    """What Table 1 tells apart."""

    recurring: Mask  # of templates; `never_missed`: no job failed for want of an input
    periodic: Mask
    never_missed: Mask
    # mean time between submissions and its coefficient of variation; NaN with too few
    interarrival_s: F8
    interarrival_cv: F8
    template_polls: Mask  # templates most of whose jobs poll
    job_recurring: Mask  # of jobs; ad hoc jobs are those not recurring
    job_polls: Mask
    edge_recurring: Mask  # of dependencies; ad hoc ones are those not recurring
    edge_hard: Mask
    edge_polls: Mask
    input_mode: I1  # an index into `INPUT_MODES`


def characterise(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    thresholds: Thresholds | None = None,
    *,
    learn: tuple[float, float] | None = None,
) -> Character:
    """Apply Table 1's heuristics."""
    limits = Thresholds() if thresholds is None else thresholds
    submit_s, of_job = logs.column("submit_s"), templates.of_job
    recurring = recurring_templates(submit_s, of_job, len(templates), limits, learn)
    mean_s, cv = inter_arrivals(submit_s, of_job, len(templates))
    periodic = recurring & (cv <= limits.periodic_cv)
    missed = np.zeros(len(templates), bool)
    missed[of_job[logs.has("outcome", "missing_input")]] = True

    job_recurring = recurring[of_job]
    edge_recurring = job_recurring[edges.upstream] & job_recurring[edges.downstream]
    edge_hard = hard_edges(submit_s, of_job, edges, edge_recurring, limits.hard_share)
    lag_s = _since_last_input(logs, edges.where(edge_recurring))
    may_poll = recurring & ~periodic & ~missed
    has_input = ~np.isnan(lag_s)
    with np.errstate(invalid="ignore"):
        soon = has_input & (lag_s >= 0) & (lag_s <= limits.polling_lag_s)
    job_polls = may_poll[of_job] & soon
    share = _share(of_job, job_polls, has_input, len(templates))
    mode = np.zeros(logs.n_jobs, np.int8)
    needs = np.zeros(logs.n_jobs, bool)
    needs[edges.downstream[edge_recurring & edge_hard]] = True
    mode[needs] = INPUT_MODES.index("blind")
    mode[job_polls] = INPUT_MODES.index("poll")
    return Character(
        recurring=recurring, periodic=periodic, never_missed=~missed, interarrival_s=mean_s,
        interarrival_cv=cv, template_polls=may_poll & (share >= limits.polling_share),
        job_recurring=job_recurring, job_polls=job_polls, edge_recurring=edge_recurring,
        edge_hard=edge_hard, edge_polls=edge_recurring & job_polls[edges.downstream],
        input_mode=mode,
    )  # fmt: skip


def recurring_templates(
    submit_s: F8,
    template: I4,
    n_templates: int,
    limits: Thresholds,
    learn: tuple[float, float] | None = None,
) -> Mask:
    """Return which templates recur: often enough, and in each period of what is learnt from."""
    if not len(submit_s):
        return np.zeros(n_templates, bool)
    begin, end = (float(submit_s[0]), float(submit_s[-1])) if learn is None else learn
    if end < begin or (learn is not None and end == begin):
        raise InputError(f"what is learnt from must end after {begin:g} s, not at {end:g} s")
    span = end - begin
    default = 30 * DAY_S if span >= QUARTER_S else 7 * DAY_S
    period = default if limits.period_s is None else limits.period_s
    n_periods = max(1, int(span / period + 1e-6))
    often = np.bincount(template, minlength=n_templates) >= limits.min_submissions
    last = begin + n_periods * period if span >= period else np.inf
    inside = (submit_s >= begin) & (submit_s < last)
    number = ((submit_s[inside] - begin) / period).astype(np.int64).clip(0, n_periods - 1)
    seen = np.zeros((n_templates, n_periods), bool)
    seen[template[inside], number] = True
    return often & seen.all(axis=1)


def inter_arrivals(submit_s: F8, template: I4, n_templates: int) -> tuple[F8, F8]:
    """Return mean and coefficient of variation of each template's inter-arrival times.

    The mean is NaN below two submissions, the variation below three.
    """
    order = np.argsort(template, kind="stable")
    same = template[order][1:] == template[order][:-1]
    of, gap = template[order][1:][same], np.diff(submit_s[order])[same]
    n = np.bincount(of, minlength=n_templates)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(of, gap, n_templates) / n
        deviation = np.sqrt(np.bincount(of, (gap - mean[of]) ** 2, n_templates) / n)
        cv = np.where(n >= 2, deviation / mean, np.nan)
    return mean, cv


def hard_edges(
    submit_s: F8, template: I4, edges: Dependencies, edge_recurring: Mask, hard_share: float
) -> Mask:
    """Return which dependencies are hard: (a) ad hoc, (b) on one job each, (c) on equally many.

    For each pair of recurring templates the jobs of the downstream one are looked at that were
    submitted once the upstream one's first output had been read: (b) if more than `hard_share` of
    them consume the output of exactly one job, or (c) if all consume equally many.
    """
    hard = ~edge_recurring
    place = np.flatnonzero(edge_recurring)
    if not len(place):
        return hard
    up, down = edges.upstream[place], edges.downstream[place]
    n_templates = int(template.max()) + 1
    pair = template[up].astype(np.int64) * n_templates + template[down]
    pairs, of = np.unique(pair, return_inverse=True)
    # one entry a (pair of templates, downstream job), with how many jobs it consumes there
    entry, n_consumed = np.unique(of * np.int64(len(submit_s)) + down, return_counts=True)
    of_entry = entry // len(submit_s)
    first_job = np.full(len(pairs), len(submit_s), np.int64)
    np.minimum.at(first_job, of_entry, entry % len(submit_s))
    by_template = np.argsort(template, kind="stable")
    start = np.searchsorted(template[by_template], np.arange(n_templates + 1))
    code = pairs % n_templates
    # jobs of the downstream template from `first_job` on; rows are in order of submission
    key = template[by_template].astype(np.int64) * len(submit_s) + by_template
    n_jobs = start[code + 1] - np.searchsorted(key, code * np.int64(len(submit_s)) + first_job)
    n_one = np.bincount(of_entry, n_consumed == 1, len(pairs))
    least = np.full(len(pairs), np.iinfo(np.int64).max)
    np.minimum.at(least, of_entry, n_consumed)
    most = np.zeros(len(pairs), np.int64)
    np.maximum.at(most, of_entry, n_consumed)
    n_entries = np.bincount(of_entry, minlength=len(pairs))
    is_hard = (n_one > hard_share * n_jobs) | ((least == most) & (n_entries == n_jobs))
    hard[place] = is_hard[of]
    return hard


def _since_last_input(logs: Logs, edges: Dependencies) -> F8:
    """Return the time from the last input's completion to each job's submission; NaN: no input."""
    last_s = np.full(logs.n_jobs, -np.inf)
    np.maximum.at(last_s, edges.downstream, logs.column("finish_s")[edges.upstream])
    return np.where(np.isinf(last_s), np.nan, logs.column("submit_s") - last_s)


def _share(group: I4, hit: Mask, counted: Mask, n_groups: int) -> F8:
    n = np.bincount(group[counted], minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: F8 = np.bincount(group[counted & hit], minlength=n_groups) / n
    return out
