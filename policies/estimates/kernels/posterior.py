"""Expected task durations of stages: a prior from similar runs, and the tasks that have finished.

`policies.estimates.posterior` has the method.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.estimates.kernels.priors import add, prior
from policies.estimates.weights import RECENT
from sim.base.jit import JIT, inlined, jit, part
from sim.base.maths.kernels.logarithm import log
from sim.base.record import field_arrays, record

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_stage_job", "i4", 1),  # [G]
    ("w_job_stage0", "i8", 1),  # [J+1]
    ("w_size", "i8", 1),  # [G] tasks
    ("w_log_spread", "f8", 1),  # [G] variance of a task's logarithm, read once the stage is done
    ("w_constants", "f8", 1),  # GUESS, LEARNS, LEAST_TASKS, MOST_TASKS
    ("w_stage_left", "i4", 1),  # [G] unfinished tasks
    ("w_stage_started", "i4", 1),  # [G]
    ("w_stage_done_work", "f8", 1),  # [G] of finished tasks, s
    # [G, 4] median, s, its weight in tasks, variance of its logarithm, and the same before surprise
    ("state_prior", "f8", 2),
    ("state_expected_s", "f8", 1),  # [G] as given out last
    ("state_spread", "f8", 1),  # [2] sum of w_log_spread of finished stages, and their number
    ("state_surprise", "f8", 1),  # [2] of recent errors over their variances: sum and number
    ("state_live", "i4", 1),  # [G] unfinished stages of the jobs that have arrived
    ("state_n_live", "i8", 1),  # [1]
    ("state_seen", "i4", 1),  # [G] unfinished tasks when last refined; -1 not arrived
    # [G, 4] running tasks at the last tick, its time, work of finished tasks then, s, and the time
    # that those which run had run, s
    ("state_running", "f8", 2),
    ("state_jobs", "i4", 1),  # [J] jobs with a changed stage, as they were found
    ("state_stages", "i4", 1),  # [G] changed stages
)
GUESS, LEARNS, LEAST_TASKS, MOST_TASKS = range(4)
MEDIAN_S, WEIGHT, VARIANCE, CERTAIN = range(4)
N_RUNNING, SINCE, DONE_WORK, ELAPSED = range(4)
Posterior = namedtuple("Posterior", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("PosteriorState", FIELDS, ("w_",)) if JIT else None


def make(
    inputs: Mapping[str, NDArray[Any]],
    live: Mapping[str, NDArray[Any]],
    n_jobs: int,
    n_stages: int,
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Lay out the record and its arrays: `inputs` by name without ``w_``, and no arrival yet.

    `live` are views of the kernel's counters, which must not be copied.
    """
    state = {
        "prior": np.zeros((n_stages, 4)),
        "expected_s": np.full(n_stages, np.nan),
        "spread": np.array([SPREAD, 1.0]),
        "surprise": np.zeros(2),
        "live": np.zeros(n_stages, np.int32),
        "n_live": np.zeros(1, np.int64),
        "seen": np.full(n_stages, -1, np.int32),
        "running": np.zeros((n_stages, 4)),
        "jobs": np.zeros(n_jobs, np.int32),
        "stages": np.zeros(n_stages, np.int32),
    }
    arrays = field_arrays(FIELDS, {**inputs, **live}, state)
    by_name = {name: array for (name, _, _), array in zip(FIELDS, arrays, strict=True)}
    return (_pack(arrays) if _pack else Posterior(*arrays)), by_name


SPREAD = 0.6931471805599453
"""Variance of the logarithm of exponential durations, by their coefficient of variation, 1: log 2.

It counts as one stage.
"""

DECAY = 1.0 - 1.0 / RECENT
MAX_SURPRISE = 10.0
"""Cap on one prior's squared error over its variance."""


@jit
def refine(st, priors, rows, now):
    """Learn from finished stages, and refine those of the jobs of `rows`; of all for a row -1.

    Returns the numbers of changed stages and of their jobs: in `state_stages` and `state_jobs`.
    """
    n_live = _learn(st, priors, now)
    is_timer = False
    for i in range(len(rows)):
        if rows[i] < 0:
            is_timer = True
            continue
        for g in range(st.w_job_stage0[rows[i]], st.w_job_stage0[rows[i] + 1]):
            if st.state_seen[g] < 0:
                _enter(st, priors, g, now)
                st.state_live[n_live] = g
                n_live += 1
    st.state_n_live[0] = n_live
    n, n_jobs = 0, 0
    if is_timer:
        for i in range(n_live):
            _meter(st, st.state_live[i], now)
            n, n_jobs = _refine(st, st.state_live[i], n, n_jobs)
        return n, n_jobs
    for i in range(len(rows)):
        for g in range(st.w_job_stage0[rows[i]], st.w_job_stage0[rows[i] + 1]):
            n, n_jobs = _refine(st, g, n, n_jobs)
    return n, n_jobs


@inlined
def _learn(st, priors, now):
    """Add the stages that have finished to the priors; return the number of the others."""
    n_live = 0
    for i in range(st.state_n_live[0]):
        g = st.state_live[i]
        if st.w_stage_left[g] > 0:
            st.state_live[n_live] = g
            n_live += 1
            continue
        if st.w_constants[LEARNS] > 0:
            log_s = add(priors, g, st.w_stage_done_work[g] / st.w_size[g], now)
            _add_surprise(st, g, log_s)
        if st.w_log_spread[g] == st.w_log_spread[g]:  # not NaN
            st.state_spread[0] += st.w_log_spread[g]
            st.state_spread[1] += 1.0
    return n_live


@part
def _add_surprise(st, g, log_s):
    """Add the squared error of a prior over its variance."""
    variance = st.state_prior[g, CERTAIN]
    if 0.0 < variance < inf:
        error = log_s - log(st.state_prior[g, MEDIAN_S])
        surprise = st.state_surprise
        surprise[0] = DECAY * surprise[0] + min(error * error / variance, MAX_SURPRISE)
        surprise[1] = DECAY * surprise[1] + 1.0


@part
def _enter(st, priors, g, now):
    """Set the prior of stage `g`, whose job arrives."""
    median_s, weight, variance = st.w_constants[GUESS], st.w_constants[LEAST_TASKS], inf
    if st.w_constants[LEARNS] > 0:
        _, variance, predicted_s = prior(priors, g, now)
        st.state_prior[g, CERTAIN] = variance
        if variance < inf:
            median_s = predicted_s
            if st.state_surprise[0] > st.state_surprise[1]:
                variance *= st.state_surprise[0] / st.state_surprise[1]
            spread = st.state_spread[0] / st.state_spread[1]
            if spread < variance * st.w_constants[MOST_TASKS]:
                weight = max(weight, spread / variance)
            else:
                weight = st.w_constants[MOST_TASKS]
    st.state_prior[g, MEDIAN_S] = median_s
    st.state_prior[g, WEIGHT] = weight
    st.state_prior[g, VARIANCE] = variance
    st.state_seen[g] = 0
    st.state_running[g, SINCE] = now


@part
def _meter(st, g, now):
    """Add up the time for which the running tasks of stage `g` have run.

    Between ticks the number of running tasks counts as the mean of both.
    """
    run = st.state_running[g]
    n_running = float(st.w_stage_started[g] - (st.w_size[g] - st.w_stage_left[g]))
    elapsed = run[ELAPSED] + (run[N_RUNNING] + n_running) / 2.0 * (now - run[SINCE])
    elapsed -= st.w_stage_done_work[g] - run[DONE_WORK]
    run[ELAPSED] = max(elapsed, 0.0) if n_running > 0.0 else 0.0
    run[N_RUNNING], run[SINCE], run[DONE_WORK] = n_running, now, st.w_stage_done_work[g]


@part
def _refine(st, g, n, n_jobs):
    """Refine the expected duration of stage `g`; list it and its job if it changes."""
    left, run = st.w_stage_left[g], st.state_running[g]
    if left == st.state_seen[g] and run[N_RUNNING] == 0.0:
        return n, n_jobs
    st.state_seen[g] = left
    weight = st.state_prior[g, WEIGHT]
    work_s = st.state_prior[g, MEDIAN_S] * weight + st.w_stage_done_work[g]
    weight += st.w_size[g] - left
    expected_s = work_s / weight
    if run[N_RUNNING] > 0.0:
        expected_s = max(expected_s, (work_s + run[ELAPSED]) / (weight + run[N_RUNNING]))
    if expected_s == st.state_expected_s[g]:
        return n, n_jobs
    st.state_expected_s[g] = expected_s
    j = st.w_stage_job[g]
    st.state_stages[n] = g
    if n_jobs == 0 or st.state_jobs[n_jobs - 1] != j:
        st.state_jobs[n_jobs] = j
        n_jobs += 1
    return n + 1, n_jobs
