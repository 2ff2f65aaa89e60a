"""Downloads of what jobs make: how many, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import stream
from sim.published import numbers
from sim.synth.cosmos.flows import WEEK_S, Flows

VALUE_RATIO = numbers("wing")["cosmos"]["value_ratio"]

VALUED = 1.0
"""Jobs that are downloaded at all. Whole numbers of downloads lie in steps below Zipf's line; the
lower half of the jobs has one. Below 1 the distribution ends early, and the rest have none."""
NOISE = (-1.9, 0.9)
"""Mean and spread of the logarithm of how much runs of a program differ in value."""
LAST = 0.75
"""How much more the programs at the end of a workflow are downloaded, as a logarithm."""
FIRST_H, FIRST_SPREAD = 14.0, 1.0
SOON, SOON_H = 0.05, 0.25
"""From the end of a job to its first download: median over programs, and spread; and programs whose
output is fetched soon, with their median. Both are what the shiftable jobs ask for."""
MORE_DAYS = 0.4
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
    base = -np.log1p(-_even(flows.weight, rng)) + end
    spread = np.exp(NOISE[0] + NOISE[1] * rng.normal(size=n_programs))
    score = np.where(
        recurring,
        base[program] + spread[program] * rng.normal(size=len(program)),
        rng.exponential(size=len(program)),
    )
    week = np.clip(np.floor(submit_s / WEEK_S), -2, 1).astype(np.int64) + 2
    value = _zipf(score, recurring, week)
    return _times(flows, program, finish_s, value, rng)


def _even(weight: F8, rng: np.random.Generator) -> F8:
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
            if abs(np.log(max(ratio, 1e-9) / VALUE_RATIO)) < least:
                best, least = ranked, abs(np.log(max(ratio, 1e-9) / VALUE_RATIO))
            low, high = (less, high) if ratio < VALUE_RATIO else (low, less)
        if best is not None:
            value[rows] = best
    return value


def _first_h(part: F8) -> F8:
    """Return the time to the first download, of the share `part` of programs that are sooner."""
    late = part >= SOON
    within = np.where(late, (part - SOON) / (1 - SOON), part / SOON)
    median = np.where(late, FIRST_H, SOON_H)
    out: F8 = median * np.exp(FIRST_SPREAD * ndtri(np.clip(within, 1e-9, 1 - 1e-9)))
    return out


def _times(
    flows: Flows, program: I8, finish_s: F8, value: I8, rng: np.random.Generator
) -> Downloads:
    typical = 3600.0 * _first_h(_even(flows.weight, rng))
    single = 3600.0 * _first_h(rng.random(len(program)))
    first = np.where(program >= 0, typical[program], single)
    first *= np.exp(0.3 * rng.normal(size=len(program)))
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
