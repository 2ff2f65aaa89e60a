"""Tokens of jobs, and downloads of their outputs.

Token counts are scaled so that requests reach their published peak of the cluster, and in
proportion to the queues.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.wing.cosmos.workflows import WEEK_S, Workflows
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import Stream, stream
from sim.published import numbers

PEAK = numbers("wing")["cosmos"]["peak"]

USER = 0.6
"""Share of the variance of ad hoc jobs' sizes between users: scripts are inherited (§2.2).
Calibrated on the gain of oracles (docs/wing_workload.md)."""


def draw_user_scores(user: I8, rng: Stream) -> F8:
    """Draw standard normal scores of jobs, with the share `USER` of the variance between users."""
    user_score = rng.normal(size=int(user.max(initial=0)) + 1)[user]
    score: F8 = np.sqrt(USER) * user_score + np.sqrt(1 - USER) * rng.normal(size=len(user))
    return score


TOKENS = 100_000
"""Tokens of the whole cluster at capacity 1, at every scale."""
SPREAD = 1.0
"""Spread of the logarithm of the tokens of programs and of ad hoc jobs; not published."""
LEAN = 0.5
"""Peaks of organisations' requests are proportional to their queues' sizes to this power, as their
numbers of jobs are: small queues are fuller. Calibrated on user priorities
(docs/wing_workload.md)."""
UNEVEN, FULLEST = 0.5, 1.8
"""Peak of an organisation's requests relative to its queue's size: spread and maximum. Not
published; calibrated on user priorities alone (docs/wing_workload.md)."""
WIDEST = 0.1
"""Maximum share of its queue that a job holds, so that it fits a fifth of the cluster; calibrated
too."""
PEAK_WINDOW_S = 3600.0


def draw_widths(
    workflows: Workflows,
    program: I8,
    organisation: I8,
    user: I8,
    submit_s: F8,
    duration_s: F8,
    share: F8,
    seed: int,
    widest: float = WIDEST,
) -> I8:
    """Draw the tokens of each job; see `policies.wing.cosmos.month.Month`.

    The peak of an organisation's requests follows the size of its queue (`LEAN`), with the spread
    `UNEVEN`; the requests of all peak at `PEAK`. No job has more than the share `widest` of its
    queue.
    """
    rng = stream(seed, "synth", "cosmos", "widths")
    program_width = maths.exp(SPREAD * rng.normal(size=len(workflows.workflow)))
    ad_hoc_width = maths.exp(SPREAD * draw_user_scores(user, rng))
    width = np.where(program >= 0, program_width[program], ad_hoc_width)
    target_scale = maths.power(share, LEAN) * maths.exp(UNEVEN * rng.normal(size=len(share)))
    max_tokens = np.maximum(np.floor(widest * share * TOKENS), 1.0)[organisation]
    in_week = (submit_s >= 0) & (submit_s < WEEK_S)
    rows = [np.flatnonzero(in_week & (organisation == o)) for o in range(len(share))]
    factor = np.ones(len(share))
    level = float(TOKENS)
    for _ in range(8):
        tokens = _round_tokens(width * factor[organisation], max_tokens)
        peak = np.array([peak_tokens(submit_s[r], duration_s[r], tokens[r]) for r in rows])
        target = np.minimum(level * target_scale, FULLEST * share * TOKENS)
        factor *= np.clip(target / np.maximum(peak, 1.0), 0.1, 10.0)
        factor = np.minimum(factor, np.maximum(3 * widest * share * TOKENS, 1.0))
        level *= (
            PEAK * TOKENS / peak_tokens(submit_s[in_week], duration_s[in_week], tokens[in_week])
        )
    width = width * factor[organisation]
    low, high = -3.0, 3.0
    for _ in range(30):
        tokens = _round_tokens(width * maths.exp((low + high) / 2), max_tokens)
        is_over = (
            peak_tokens(submit_s[in_week], duration_s[in_week], tokens[in_week]) > PEAK * TOKENS
        )
        low, high = (low, (low + high) / 2) if is_over else ((low + high) / 2, high)
    return _round_tokens(width * maths.exp(low), max_tokens).astype(np.int64)


def _round_tokens(width: F8, max_tokens: F8) -> F8:
    return np.clip(np.rint(width), 1.0, max_tokens)


def peak_tokens(submit_s: F8, duration_s: F8, tokens: F8) -> float:
    """Return the largest mean of tokens held in an hour of the week from 0, if no job waits."""
    return float(hourly_tokens(submit_s, duration_s, tokens)[1:].max())


def hourly_tokens(submit_s: F8, duration_s: F8, tokens: F8) -> F8:
    """Return the mean tokens held in each hour of the week from 0, if no job waits."""
    edges = np.arange(0.0, WEEK_S + 1.0, PEAK_WINDOW_S)
    order = np.argsort(submit_s, kind="stable")
    token_s = _integral(submit_s[order], tokens[order], edges)
    finish = submit_s + duration_s
    order = np.argsort(finish, kind="stable")
    token_s -= _integral(finish[order], tokens[order], edges)
    return np.diff(token_s) / PEAK_WINDOW_S


def _integral(time_s: F8, tokens: F8, edges: F8) -> F8:
    """Return Σ tokens max(0, edge - time) for each edge."""
    count = np.searchsorted(time_s, edges, "right")
    total = np.concatenate([[0.0], np.cumsum(tokens)])[count]
    moment = np.concatenate([[0.0], np.cumsum(tokens * time_s)])[count]
    integral: F8 = total * edges - moment
    return integral


VALUE_RATIO = numbers("wing")["cosmos"]["value_ratio"]

VALUED = 1.0
"""Share of jobs that are downloaded at all. Whole numbers of downloads lie in steps below Zipf's
line; the lower half of the jobs has one. Below 1 the distribution ends early, and the rest have
none."""
NOISE = (-1.9, 0.9)
"""Mean and spread, over programs, of the logarithm of the variation of value between their runs."""
LAST = 0.75
"""Logarithm of the extra downloads of programs at the end of a workflow."""
FIRST_H, FIRST_SPREAD = 26.0, 1.0
SOON, SOON_H = 0.05, 0.25
"""Time from the end of a job to its first download: median over programs, and spread; share of
programs whose output is fetched soon, and their median. Both are set by the published shares of
shiftable jobs."""
EARLY = 0.7
"""The first of n downloads comes sooner by the factor n to this power. Calibrated, as `MORE_DAYS`
is, on user priorities alone."""
MORE_DAYS = 0.2
"""Mean time from the first download to the others. Not published; calibrated on user priorities
alone (docs/wing_workload.md)."""
FAMOUS = 20
"""Recurring jobs of a week with a higher value than any ad hoc one; an assumption."""
MAX_TIMES = 12
"""Maximum number of distinct download times of a job; further downloads share these times."""


@dataclass(frozen=True, eq=False)
class Downloads:
    """D times at which outputs are downloaded, sorted by job and then time."""

    job: I8  # row of the job
    time_s: F8  # within a week of the end of the job
    n: I8  # number of downloads at that time


def draw_downloads(
    workflows: Workflows, program: I8, submit_s: F8, finish_s: F8, up: I8, down: I8, seed: int
) -> Downloads:
    """Draw downloads: of the jobs of each week, the i-th most valuable one has C / i (Zipf)."""
    rng = stream(seed, "synth", "cosmos", "value")
    n_programs = len(workflows.workflow)
    recurring = program >= 0
    size = np.bincount(workflows.workflow)
    end = LAST * (workflows.position + 1) / size[workflows.workflow]
    program_score = -maths.log1p(-_uniform_over_runs(workflows.weight, rng)) + end
    spread = maths.exp(NOISE[0] + NOISE[1] * rng.normal(size=n_programs))
    score = np.where(
        recurring,
        program_score[program] + spread[program] * rng.normal(size=len(program)),
        rng.exponential(size=len(program)),
    )
    week = np.clip(np.floor(submit_s / WEEK_S), -2, 1).astype(np.int64) + 2
    value = _zipf(score, recurring, week)
    return _times(workflows, program, finish_s, value, rng)


def _uniform_over_runs(weight: F8, rng: Stream) -> F8:
    """Draw scores of programs from 0 to 1 that are uniform over runs, `weight` per program."""
    order = rng.permutation(len(weight))
    position = np.empty(len(weight))
    position[order] = np.cumsum(weight[order]) - weight[order] * rng.random(len(weight))
    score: F8 = np.clip(position / weight.sum(), 1e-9, 1 - 1e-9)
    return score


def _zipf(score: F8, recurring: Mask, week: I8) -> I8:
    """Rank the jobs of each week; a penalty of ad hoc ones gives recurring ones their share."""
    value = np.zeros(len(score), dtype=np.int64)
    for number in range(4):
        rows = np.flatnonzero(week == number)
        best_value, min_error = None, np.inf
        low, high = -4.0, 12.0
        top = np.sort(score[rows[recurring[rows]]])[-FAMOUS:].min(initial=np.inf)
        cap = np.where(recurring[rows], np.inf, top)
        for _ in range(30):
            penalty = (low + high) / 2
            shifted = score[rows] - np.where(recurring[rows], 0.0, penalty)
            order = np.argsort(-np.minimum(shifted, cap), kind="stable")
            ranked = np.zeros(len(rows), dtype=np.int64)
            ranked[order] = (VALUED * len(rows) / (np.arange(len(rows)) + 1.0)).astype(np.int64)
            recurring_value = int(ranked[recurring[rows]].sum())
            ratio = recurring_value / max(int(ranked.sum()) - recurring_value, 1)
            if abs(maths.log(max(ratio, 1e-9) / VALUE_RATIO)) < min_error:
                best_value, min_error = ranked, abs(maths.log(max(ratio, 1e-9) / VALUE_RATIO))
            low, high = (penalty, high) if ratio < VALUE_RATIO else (low, penalty)
        if best_value is not None:
            value[rows] = best_value
    return value


def _first_h(quantile: F8) -> F8:
    """Return the time to the first download at the quantile `quantile` over programs."""
    is_late = quantile >= SOON
    within = np.where(is_late, (quantile - SOON) / (1 - SOON), quantile / SOON)
    median = np.where(is_late, FIRST_H, SOON_H)
    return median * maths.exp(FIRST_SPREAD * maths.normal_quantile(np.clip(within, 1e-9, 1 - 1e-9)))


def _times(workflows: Workflows, program: I8, finish_s: F8, value: I8, rng: Stream) -> Downloads:
    program_s = 3600.0 * _first_h(_uniform_over_runs(workflows.weight, rng))
    ad_hoc_s = 3600.0 * _first_h(rng.random(len(program)))
    first_s = np.where(program >= 0, program_s[program], ad_hoc_s)
    first_s *= maths.exp(0.3 * rng.normal(size=len(program)))
    first_s *= maths.power(np.maximum(value, 1).astype(np.float64), -EARLY)
    count = np.minimum(value, MAX_TIMES)
    job = np.repeat(np.arange(len(program)), count)
    number = ranges(np.zeros(len(program), dtype=np.int64), count)
    n = value[job] // count[job] + (number < value[job] % count[job])
    extra_s = rng.exponential(MORE_DAYS * 86_400.0, len(job))
    delay_s = first_s[job] + np.where(number == 0, 0.0, extra_s)
    delay_s = np.where(delay_s < WEEK_S, delay_s, WEEK_S * (1 - rng.random(len(job)) / 2))
    time_s = finish_s[job] + delay_s
    order = np.lexsort((time_s, job))
    return Downloads(job[order], time_s[order], n[order])
