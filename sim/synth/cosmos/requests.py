"""What people ask for: priorities and tokens of their jobs, and downloads of what these make.

Users mostly give the priority of the script that they started from. Widths are so that requests are
what they should be of queues and cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges, ranks
from sim.base.random import Stream, stream
from sim.published import numbers
from sim.synth.cosmos.workflows import WEEK_S, Flows

_PAPER = numbers("wing")["priorities"]
HIGH_AD_HOC, INVERTED_TEMPLATES = _PAPER["adhoc_above"], _PAPER["templates_inverted"]
INVERTED_JOBS = _PAPER["jobs_on_lower"]
PEAK = numbers("wing")["cosmos"]["peak"]


INHERITED = 0.7
"""Workflows whose priority is that of an earlier one of the organisation; an assumption (§2.2)."""
SLOW = 1.0
"""Programs above what they read are of slow workflows first: few jobs, for so many programs."""
PARTS = (1.0, 0.75, 0.5, 0.35, 0.25, 0.18, 0.12)
"""Shares of programs that may be: fewer of more workflows."""
HIGHEST = 1000
STEP = 10
"""Priorities are whole multiples of the step, from one step to the highest."""


def draw_priorities(
    flows: Flows, program: I8, organisation: I8, up: I8, down: I8, submit_s: F8, seed: int
) -> F8:
    """Draw a priority for each job; see `sim.synth.cosmos.month.Month`.

    A program gets its highest consumer's, if that is above its workflow's; then some go below one.
    """
    rng = stream(seed, "synth", "cosmos", "priorities")
    own = _workflows(flows, rng)[flows.flow]
    recurring = program >= 0
    both = recurring[up] & recurring[down]
    pair = np.unique(program[up[both]] * len(own) + program[down[both]])
    a, b = pair // len(own), pair % len(own)
    a, b = a[a != b], b[a != b]
    lifted = own.copy()
    while True:
        before = lifted.copy()
        np.maximum.at(lifted, a, lifted[b])
        if (lifted == before).all():
            break
    ticket = rng.random(len(own))
    above = lifted.copy()  # what a program that is raised gets: more than all that it reads
    np.maximum.at(above, b, lifted[a])
    above += STEP * (1 + np.floor(rng.random(len(own)) * 20))
    dice = rng.random((2, len(program)))
    best, least = np.zeros(0), np.inf
    for part in PARTS:
        late = SLOW * maths.log(168.0 / flows.period_h) + rng.random(len(flows.organisation))
        turn = ranks(late)[flows.flow]
        may = np.unique(b[ticket[b] < part])
        may = may[np.lexsort((ticket[may], turn[may]))]
        of_program = _raised(may, above, lifted, a, b)
        priority = np.where(recurring, of_program[program], 0.0)
        priority = np.where(recurring, priority, _ad_hoc(recurring, organisation, priority, dice))
        behind = np.zeros(len(program), dtype=bool)
        behind[down[priority[up] < priority[down]]] = True
        above_them = len(np.unique(a[of_program[a] < of_program[b]])) / len(own)
        off = abs(behind.mean() - INVERTED_JOBS) + abs(above_them - INVERTED_TEMPLATES)
        if off < least:
            best, least = priority, float(off)
    return best


def _workflows(flows: Flows, rng: Stream) -> F8:
    fresh = STEP * rng.integers(10, HIGHEST // STEP - 9, size=len(flows.organisation))
    copies = rng.random(len(fresh)) < INHERITED
    pick = rng.random(len(fresh))
    out = fresh.astype(np.float64)
    order = np.argsort(flows.organisation, kind="stable")
    owner = flows.organisation[order]
    start = np.searchsorted(owner, owner, "left")
    for i, row in enumerate(order):
        if copies[row] and i > start[i]:
            out[row] = out[order[start[i] + int(pick[row] * (i - start[i]))]]
    return out


def _raised(may: I8, above: F8, priority: F8, a: I8, b: I8) -> F8:
    """Raise programs of `may`, from the first on, until enough have a consumer above themselves."""
    wanted = round(INVERTED_TEMPLATES * len(priority))
    low, high = 0, len(may)
    while True:
        n = (low + high) // 2
        raised = priority.copy()
        raised[may[:n]] = above[may[:n]]
        if low >= high:
            return raised
        got = len(np.unique(a[raised[a] < raised[b]]))
        low, high = (n + 1, high) if got < wanted else (low, n)


def _ad_hoc(recurring: Mask, organisation: I8, priority: F8, dice: F8) -> F8:
    """Give so many ad hoc jobs a priority above their queue's average recurring job."""
    n = int(organisation.max()) + 1
    total = np.bincount(organisation[recurring], priority[recurring], n)
    count = np.bincount(organisation[recurring], minlength=n)
    mean = np.where(count > 0, total / np.maximum(count, 1), HIGHEST / 2)[organisation]
    step = np.floor(mean / STEP)
    high = step + 1 + np.floor(dice[1] * np.maximum(HIGHEST / STEP - step, 1))
    low = np.maximum(1, np.floor(dice[1] * step))
    out: F8 = STEP * np.where(dice[0] < HIGH_AD_HOC, high, low)
    return out


USER = 0.6
"""Of the variance of ad hoc jobs' sizes, what their user tells: scripts are inherited (§2.2).
Calibrated on what oracles gain (docs/wing_workload.md)."""


def like_their_users(user: I8, rng: Stream) -> F8:
    """Draw normal numbers for jobs, of which their users' part is `USER` of the variance."""
    part = rng.normal(size=int(user.max(initial=0)) + 1)[user]
    out: F8 = np.sqrt(USER) * part + np.sqrt(1 - USER) * rng.normal(size=len(user))
    return out


TOKENS = 100_000
"""Of the whole cluster at capacity 1, whatever the scale."""
SPREAD = 1.0
"""Of widths, of programs and of ad hoc jobs; not published."""
LEAN = 0.5
"""Peaks of organisations' requests go by their queues' sizes to this power, as their numbers of
jobs do: small queues are fuller. Calibrated on user priorities (docs/wing_workload.md)."""
UNEVEN, FULLEST = 0.5, 1.8
"""Peaks of an organisation's requests, of its queue's size: spread, and most. Not published;
calibrated on user priorities alone (docs/wing_workload.md)."""
WIDEST = 0.1
"""Of its queue that a job holds at most, so that it fits a fifth of the cluster; calibrated too."""
PEAK_WINDOW_S = 3600.0


def draw_widths(
    flows: Flows,
    program: I8,
    organisation: I8,
    user: I8,
    submit_s: F8,
    duration_s: F8,
    share: F8,
    seed: int,
) -> I8:
    """Draw how many tokens each job holds; see `sim.synth.cosmos.month.Month`.

    The peak of an organisation's requests is in proportion to its queue, but for `UNEVEN`;
    requests of all peak at `PEAK`.
    """
    rng = stream(seed, "synth", "cosmos", "widths")
    own = maths.exp(SPREAD * rng.normal(size=len(flows.flow)))
    single = maths.exp(SPREAD * like_their_users(user, rng))
    width = np.where(program >= 0, own[program], single)
    wish = maths.power(share, LEAN) * maths.exp(UNEVEN * rng.normal(size=len(share)))
    most = np.maximum(np.floor(WIDEST * share * TOKENS), 1.0)[organisation]
    third = (submit_s >= 0) & (submit_s < WEEK_S)
    rows = [np.flatnonzero(third & (organisation == o)) for o in range(len(share))]
    factor = np.ones(len(share))
    level = float(TOKENS)
    for _ in range(8):
        tokens = _whole(width * factor[organisation], most)
        top = np.array([peak(submit_s[r], duration_s[r], tokens[r]) for r in rows])
        aim = np.minimum(level * wish, FULLEST * share * TOKENS)
        factor *= np.clip(aim / np.maximum(top, 1.0), 0.1, 10.0)
        factor = np.minimum(factor, np.maximum(3 * WIDEST * share * TOKENS, 1.0))
        level *= PEAK * TOKENS / peak(submit_s[third], duration_s[third], tokens[third])
    width = width * factor[organisation]
    low, high = -3.0, 3.0
    for _ in range(30):
        tokens = _whole(width * maths.exp((low + high) / 2), most)
        over = peak(submit_s[third], duration_s[third], tokens[third]) > PEAK * TOKENS
        low, high = (low, (low + high) / 2) if over else ((low + high) / 2, high)
    return _whole(width * maths.exp(low), most).astype(np.int64)


def _whole(width: F8, most: F8) -> F8:
    return np.clip(np.rint(width), 1.0, most)


def peak(submit_s: F8, duration_s: F8, tokens: F8) -> float:
    """Return the most tokens held on average in an hour of the week from 0, if no job waits."""
    return float(held(submit_s, duration_s, tokens)[1:].max())


def held(submit_s: F8, duration_s: F8, tokens: F8) -> F8:
    """Return the tokens held on average in each hour of the week from 0, if no job waits."""
    edges = np.arange(0.0, WEEK_S + 1.0, PEAK_WINDOW_S)
    order = np.argsort(submit_s, kind="stable")
    done = _integral(submit_s[order], tokens[order], edges)
    finish = submit_s + duration_s
    order = np.argsort(finish, kind="stable")
    done -= _integral(finish[order], tokens[order], edges)
    return np.diff(done) / PEAK_WINDOW_S


def _integral(time_s: F8, tokens: F8, edges: F8) -> F8:
    """Return Σ tokens max(0, edge - time) for each edge."""
    count = np.searchsorted(time_s, edges, "right")
    total = np.concatenate([[0.0], np.cumsum(tokens)])[count]
    moment = np.concatenate([[0.0], np.cumsum(tokens * time_s)])[count]
    out: F8 = total * edges - moment
    return out


VALUE_RATIO = numbers("wing")["cosmos"]["value_ratio"]

VALUED = 1.0
"""Jobs that are downloaded at all. Whole numbers of downloads lie in steps below Zipf's line; the
lower half of the jobs has one. Below 1 the distribution ends early, and the rest have none."""
NOISE = (-1.9, 0.9)
"""Mean and spread of the logarithm of how much runs of a program differ in value."""
LAST = 0.75
"""How much more the programs at the end of a workflow are downloaded, as a logarithm."""
FIRST_H, FIRST_SPREAD = 26.0, 1.0
SOON, SOON_H = 0.05, 0.25
"""From the end of a job to its first download: median over programs, and spread; and programs whose
output is fetched soon, with their median. Both are what the shiftable jobs ask for."""
EARLY = 0.7
"""The first of n downloads comes n to this power sooner. Calibrated, as `MORE_DAYS` is, on user
priorities alone."""
MORE_DAYS = 0.2
"""Mean time from the first download to the others. Not published; calibrated on user priorities
alone (docs/wing_workload.md)."""
FAMOUS = 20
"""Recurring jobs of a week that are worth more than any ad hoc one; an assumption."""
MOST_TIMES = 12
"""Downloads of a job are told apart up to so many; more come several at a time."""


@dataclass(frozen=True, eq=False)
class Downloads:
    """D times at which outputs are downloaded, by job and then time."""

    job: I8  # of which job, and how many
    time_s: F8  # when: within a week of the end of the job
    n: I8


def draw_downloads(
    flows: Flows, program: I8, submit_s: F8, finish_s: F8, up: I8, down: I8, seed: int
) -> Downloads:
    """Draw who downloads what: of the jobs of each week, the i-th most valued one C / i times."""
    rng = stream(seed, "synth", "cosmos", "value")
    n_programs = len(flows.flow)
    recurring = program >= 0
    size = np.bincount(flows.flow)
    end = LAST * (flows.place + 1) / size[flows.flow]
    base = -maths.log1p(-_even(flows.weight, rng)) + end
    spread = maths.exp(NOISE[0] + NOISE[1] * rng.normal(size=n_programs))
    score = np.where(
        recurring,
        base[program] + spread[program] * rng.normal(size=len(program)),
        rng.exponential(size=len(program)),
    )
    week = np.clip(np.floor(submit_s / WEEK_S), -2, 1).astype(np.int64) + 2
    value = _zipf(score, recurring, week)
    return _times(flows, program, finish_s, value, rng)


def _even(weight: F8, rng: Stream) -> F8:
    """Draw numbers between 0 and 1 so that runs, `weight` of each program, are spread evenly."""
    order = rng.permutation(len(weight))
    part = np.empty(len(weight))
    part[order] = np.cumsum(weight[order]) - weight[order] * rng.random(len(weight))
    out: F8 = np.clip(part / weight.sum(), 1e-9, 1 - 1e-9)
    return out


def _zipf(score: F8, recurring: Mask, week: I8) -> I8:
    """Rank the jobs of each week, ad hoc ones lower by what gives recurring ones their part."""
    value = np.zeros(len(score), dtype=np.int64)
    for number in range(4):
        rows = np.flatnonzero(week == number)
        best, least = None, np.inf
        low, high = -4.0, 12.0
        top = np.sort(score[rows[recurring[rows]]])[-FAMOUS:].min(initial=np.inf)
        cap = np.where(recurring[rows], np.inf, top)
        for _ in range(30):
            less = (low + high) / 2
            shifted = score[rows] - np.where(recurring[rows], 0.0, less)
            order = np.argsort(-np.minimum(shifted, cap), kind="stable")
            ranked = np.zeros(len(rows), dtype=np.int64)
            ranked[order] = (VALUED * len(rows) / (np.arange(len(rows)) + 1.0)).astype(np.int64)
            mine = int(ranked[recurring[rows]].sum())
            ratio = mine / max(int(ranked.sum()) - mine, 1)
            if abs(maths.log(max(ratio, 1e-9) / VALUE_RATIO)) < least:
                best, least = ranked, abs(maths.log(max(ratio, 1e-9) / VALUE_RATIO))
            low, high = (less, high) if ratio < VALUE_RATIO else (low, less)
        if best is not None:
            value[rows] = best
    return value


def _first_h(part: F8) -> F8:
    """Return the time to the first download, of the share `part` of programs that are sooner."""
    late = part >= SOON
    within = np.where(late, (part - SOON) / (1 - SOON), part / SOON)
    median = np.where(late, FIRST_H, SOON_H)
    return median * maths.exp(FIRST_SPREAD * maths.normal_quantile(np.clip(within, 1e-9, 1 - 1e-9)))


def _times(flows: Flows, program: I8, finish_s: F8, value: I8, rng: Stream) -> Downloads:
    typical = 3600.0 * _first_h(_even(flows.weight, rng))
    single = 3600.0 * _first_h(rng.random(len(program)))
    first = np.where(program >= 0, typical[program], single)
    first *= maths.exp(0.3 * rng.normal(size=len(program)))
    first *= maths.power(np.maximum(value, 1).astype(np.float64), -EARLY)
    count = np.minimum(value, MOST_TIMES)
    job = np.repeat(np.arange(len(program)), count)
    number = ranges(np.zeros(len(program), dtype=np.int64), count)
    n = value[job] // count[job] + (number < value[job] % count[job])
    more = rng.exponential(MORE_DAYS * 86_400.0, len(job))
    delay = first[job] + np.where(number == 0, 0.0, more)
    delay = np.where(delay < WEEK_S, delay, WEEK_S * (1 - rng.random(len(job)) / 2))
    time = finish_s[job] + delay
    order = np.lexsort((time, job))
    return Downloads(job[order], time[order], n[order])
