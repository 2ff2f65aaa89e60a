"""Jobs without a deadline: ordinary ones, in slow waves and bursts, and such that always wait.

The ordinary ones keep the cluster about as busy as published. Those that always have tasks waiting
take what the ordinary ones leave, so that a spare token has more than one taker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8

WAVE_S, WAVE = (1800.0, 5400.0), 0.35
"""Period of the slow wave of a run, between these, and how far it goes up and down."""
BURST_EVERY_S, BURST_S, BURST = 3600.0, (300.0, 900.0), 0.8
"""Mean time between bursts, how long one lasts, and what it adds to the mean."""
WIDTH, WIDTH_SIGMA, WIDEST = 20.0, 0.8, 200
"""Tasks of the first stage of a job: median, spread and most; the second has a quarter."""
TASK_S, TASK_SIGMA = 60.0, 0.8
"""Median and spread of the durations of their tasks, s."""
STEP_S = 10.0


@dataclass(frozen=True, eq=False)
class Background:
    """J jobs of one or two stages, by when they are submitted."""

    submit_s: F8  # when each is submitted, s
    n_tasks: I8  # tasks of its stages, which follow each other
    duration_s: F8  # how long each task lasts, job by job, s


def draw_background(slots: float, until_s: float, rng: np.random.Generator) -> Background:
    """Draw jobs that keep `slots` slots busy on average.

    The demand at each time is the mean times 1 plus a wave plus bursts, scaled so that it averages
    the mean up to `until_s`; jobs come at random with that rate.
    """
    at = np.arange(0.0, until_s, STEP_S)
    demand = _demand(at, until_s, rng)
    width = WIDTH * np.exp(WIDTH_SIGMA**2 / 2)
    of_one = 1.25 * width * TASK_S * np.exp(TASK_SIGMA**2 / 2)
    rate = slots * demand / of_one
    reached = np.concatenate([[0.0], np.cumsum(rate * STEP_S)])
    n = int(rng.poisson(reached[-1]))
    submit_s = np.interp(np.sort(rng.random(n)) * reached[-1], reached, np.append(at, until_s))
    first = np.clip(np.rint(WIDTH * np.exp(WIDTH_SIGMA * rng.normal(size=n))), 1, WIDEST)
    n_tasks = np.stack([first, np.ceil(first / 4)], axis=1).astype(np.int64)
    duration_s = TASK_S * np.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    # so that the run's load is the mean and no chance of its own
    duration_s *= slots * until_s / duration_s.sum() if n else 1.0
    return Background(submit_s, n_tasks, duration_s)


def draw_waiting(n: int, slots: float, until_s: float, rng: np.random.Generator) -> Background:
    """Draw `n` jobs that come at 0, with as much work as `slots` slots do up to `until_s`."""
    mean_s = TASK_S * np.exp(TASK_SIGMA**2 / 2)
    n_tasks = np.full((n, 1), max(1, round(slots * until_s / mean_s / max(n, 1))), np.int64)
    duration_s = TASK_S * np.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    return Background(np.zeros(n), n_tasks, duration_s)


def _demand(at: F8, until_s: float, rng: np.random.Generator) -> F8:
    period_s, phase = rng.uniform(*WAVE_S), rng.uniform(0, 2 * np.pi)
    demand: F8 = 1 + WAVE * np.sin(2 * np.pi * at / period_s + phase)
    begin_s = rng.exponential(BURST_EVERY_S)
    while begin_s < until_s:
        end_s = begin_s + rng.uniform(*BURST_S)
        demand[(at >= begin_s) & (at < end_s)] += BURST
        begin_s = end_s + rng.exponential(BURST_EVERY_S)
    scaled: F8 = demand / demand.mean()
    return scaled
