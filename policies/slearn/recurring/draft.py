"""Drafts of recurring workloads: arrival times and run durations fitted to the targets.

The load in windows depends on the spread of job sizes and on the share of jobs that arrive in
surges; variation over time depends on the variation between runs of a program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from policies.slearn.recurring.giants import group_heaviest, history_log_ratio
from policies.slearn.recurring.programs import (
    DAY_S,
    LOG_MAX,
    Drift,
    Programs,
    deviations,
    draw_values,
)
from policies.slearn.recurring.tables import Tables, heaviest
from policies.slearn.task_variation import SAMPLED, SimilarJobs, window_loads
from sim.base import maths
from sim.base.arrays import F8, I4, I8
from sim.base.random import stream

N_SURGES = 3
"""Number of surges: times when jobs arrive in quick succession."""
SURGE_PACES = (0.01, 0.04, 0.16)
"""Mean gap between jobs in a surge, relative to others; the first that fits the load is taken."""
_SURGING, _LAST_STEP = (0.0, 0.9, 7), 0.01
_GOOD_ENOUGH, _LOAD_GOOD_ENOUGH, _HOPELESS = 0.01, 0.04, 0.4


def fit_arrivals(
    work_s: F8, load: tuple[float, float, float], n_slots: int, seed: int, draws: int = 1
) -> tuple[F8, float]:
    """Draw arrivals: a Poisson process, except for a share of the jobs that come in a few surges.

    The share is searched for, and time is stretched, so that the load in windows is near `load`.
    """
    trials: list[tuple[float, F8]] = []
    for number, pace in product(range(draws), SURGE_PACES):
        submit_s = partial(
            _submit_times, _draw_gaps(len(work_s), seed, number), pace, work_s, load[0], n_slots
        )

        def error_at(surging: float, draw: Callable[[float, int], F8] = submit_s) -> float:
            return load_log_error(draw(surging, 0), work_s, load, n_slots)

        surging, error = _minimize(error_at)
        trials.append((error, submit_s(surging, 3)))
        if error <= _LOAD_GOOD_ENOUGH:
            break
    best = min(trials, key=lambda item: item[0])[1]
    return best, load_log_error(best, work_s, load, n_slots)


def _submit_times(
    draw: tuple[F8, F8], pace: float, work_s: F8, mean: float, n_slots: int,
    surging: float, rounds: int,
) -> F8:  # fmt: skip
    return _stretch_to_load(_gaps(*draw, surging, pace), work_s, mean, n_slots, rounds)


def _minimize(function: Callable[[float], float]) -> tuple[float, float]:
    """Return the minimizer of a function over `_SURGING`, and its minimum."""
    low, high, n = _SURGING
    shares = np.linspace(low, high, n)
    step = (high - low) / (n - 1)
    errors = [function(float(share)) for share in shares]
    best, error = float(shares[int(np.argmin(errors))]), min(errors)
    while _HOPELESS > error > _GOOD_ENOUGH and step > _LAST_STEP:
        step /= 2
        for share in (best - step, best + step):
            share = min(max(share, low), high)
            if (value := function(share)) < error:
                best, error = share, value
    return best, error


def load_log_error(
    submit_s: F8, work_s: F8, load: tuple[float, float, float], n_slots: int
) -> float:
    """Return the larger log-ratio error of the load's median and 90th percentile."""
    actual = np.quantile(window_loads(submit_s, work_s, n_slots), [0.5, 0.9])
    return float(np.abs(maths.log(np.maximum(actual, 1e-4) / load[1:])).max())


def _draw_gaps(n: int, seed: int, number: int) -> tuple[F8, F8]:
    """Draw the gaps of a Poisson process of rate 1, and how late in its part a surge begins."""
    gap = stream(seed, "recurring", "gaps", number).exponential(size=n)
    return gap, stream(seed, "recurring", "surges", number).random(N_SURGES)


def _gaps(gap: F8, late: F8, surging: float, pace: float) -> F8:
    """Return the time from each job to the next one: a surge in each of equal parts of the jobs."""
    part, position = np.divmod(np.arange(len(gap)) * (N_SURGES / len(gap)), 1.0)
    since = position - (0.8 * (1 - surging) * late)[part.astype(np.int64)]
    return np.where((since >= 0) & (since < surging), pace * gap, gap)


def _stretch_to_load(gap: F8, work_s: F8, mean: float, n_slots: int, rounds: int = 3) -> F8:
    time_s = np.concatenate([[0.0], np.cumsum(gap[:-1])])
    time_s *= work_s.sum() / (n_slots * mean * time_s[-1])
    for _ in range(rounds):
        time_s *= np.clip(window_loads(time_s, work_s, n_slots).mean() / mean, 0.5, 2.0)
    return time_s


Pair = tuple[float, float]

GOOD_ERROR = 0.08
"""Largest error of any target, as a logarithm, of a draft that is good."""
_ROUNDS, _DRAWS, _STEPS = 3, 2, 6
_DRAFT_GOOD_ENOUGH = 0.05
_AMPLITUDE_MAX = 0.8
_TAIL = 1.4
_USUAL_MAX = 1.0
"""Maximum amplitude of updates, machines and usual inputs: programs that vary by more than about a
factor of e do so by large inputs, else the rest of their runs would take almost no time."""
SHORTEST_S = 1.0
"""Minimum mean task duration, s."""
_SIMILARITIES = np.linspace(0.0, 1.0, 41)
"""Tried similarities between the programs of the heaviest jobs and those of their users."""


@dataclass(frozen=True)
class Draft:
    """Runs with their times; durations follow from `scale`."""

    tables: Tables
    programs: Programs
    time_s: F8  # submission of each run, the history before 0
    usual: F8  # see `deviations`
    large: F8
    version: I8  # of the code
    # mean and spread over programs of the logarithm of the amplitude of runs
    scale: tuple[float, float] = (-0.5, 0.8)


def fitted_draft(
    tables: Tables, programs: Programs, over_time: Pair, n_slots: int, drift: Drift, seed: int
) -> tuple[Draft, float]:
    """Fit load and variation over time alternately; return the best draft and its error."""
    n_jobs = programs.n_jobs
    n_history = len(programs.program) - n_jobs
    past_s = -tables.history_days * DAY_S * stream(seed, "recurring", "past").random(n_history)
    span_s = sum(float(work.sum()) for work in programs.job_work) / (n_slots * tables.load[0])
    time_s = np.concatenate([np.linspace(0.0, span_s, n_jobs), past_s])
    noise = deviations(programs, time_s, drift, tables.large, seed)
    draft = best = Draft(tables, programs, time_s, *noise)
    min_error = np.inf
    for number in range(_ROUNDS):
        draft = _group_giants(draft, seed)
        submit_s, load_error = fit_arrivals(
            _work(draft), tables.load, n_slots, seed, _DRAWS if number else 1
        )
        draft = replace(draft, time_s=np.concatenate([submit_s, past_s]))
        for is_calibrated in (False, True):
            if is_calibrated:
                draft = _group_giants(_calibrate(draft, _similar(draft), over_time), seed)
                load_error = load_log_error(submit_s, _work(draft), tables.load, n_slots)
            error = max(
                load_error, float(np.abs(_time_log_errors(draft, _similar(draft), over_time)).max())
            )
            if error < min_error:
                best, min_error = draft, error
        if min_error <= _DRAFT_GOOD_ENOUGH:
            break
    return best, min_error


def _group_giants(draft: Draft, seed: int) -> Draft:
    """Group the heaviest jobs, and make them as unlike their users' past as in the tables."""
    draft = _redraw_users(draft, seed)
    programs, n_jobs = draft.programs, draft.programs.n_jobs
    user = programs.user[programs.program[:n_jobs]]
    order = np.arange(len(programs.program))
    order[:n_jobs] = group_heaviest(_work(draft), user, draft.tables.together, seed)
    return replace(
        draft,
        programs=replace(programs, program=programs.program[order]),
        usual=draft.usual[order],
        large=draft.large[order],
        version=draft.version[order],
    )


def _redraw_users(draft: Draft, seed: int) -> Draft:
    """Redraw users so that the heaviest jobs differ from their users' past by `unlike_user`."""
    programs, target = draft.programs, draft.tables.unlike_user
    if target is None:
        return draft
    n_jobs, mean_s, work_s = programs.n_jobs, means(draft), _work(draft)
    heavy = heaviest(work_s)
    program, past = programs.program[heavy], programs.program[n_jobs:]
    between = np.full((len(_SIMILARITIES), len(programs.wide)), draft.tables.users[1])
    between[:, program] = _SIMILARITIES[:, None]
    typical = programs.log_work - maths.log(programs.width)
    n_users = int(programs.user.max()) + 1
    weight = np.ones(len(past))
    drawn = list(draw_values(typical, n_users, between, stream(seed, "recurring", "users")))
    ratios = [
        history_log_ratio(
            user[past], mean_s[n_jobs:], weight, user[program], mean_s[heavy], work_s[heavy],
            n_users,
        )
        for user in drawn
    ]  # fmt: skip
    best = drawn[int(np.argmin(np.nan_to_num(np.abs(np.array(ratios) - target), nan=np.inf)))]
    return replace(draft, programs=replace(programs, user=best))


def _work(draft: Draft) -> F8:
    """Return the work of each job, (J,) s."""
    width = draft.programs.width[draft.programs.program]
    return (means(draft) * width)[: draft.programs.n_jobs]


def means(draft: Draft) -> F8:
    """Return the mean task duration of each run.

    Thin and wide jobs have exactly the sizes of `Programs.job_work`, ranked by the typical size of
    their program plus the run's deviation from it. A run of the history takes the size of the next
    smaller job of that ranking, plus the difference to it; a program that was slower in the past
    adds to that (`Programs.stale`).
    """
    programs = draft.programs
    program, n_jobs = programs.program, programs.n_jobs
    center, spread = draft.scale
    amplitude = maths.exp(center + spread * np.clip(programs.amplitude, -_TAIL, _TAIL))
    deviation = np.minimum(amplitude, _USUAL_MAX)[program] * draft.usual
    deviation += np.minimum(amplitude[program] * draft.large, LOG_MAX)
    value = programs.log_work[program] + deviation
    wide = programs.wide[program]
    log_work = np.empty(len(value))
    for number, sizes in enumerate(programs.job_work):
        rows = np.flatnonzero(wide == number)
        jobs, past = rows[rows < n_jobs], rows[rows >= n_jobs]
        if not len(jobs):
            log_work[past] = value[past]
            continue
        order = jobs[np.argsort(value[jobs], kind="stable")]
        logs = maths.log(sizes)
        log_work[order] = logs
        below = np.maximum(np.searchsorted(value[order], value[past], side="right") - 1, 0)
        log_work[past] = logs[below] + value[past] - value[order[below]]
    log_work[n_jobs:] += programs.stale[program[n_jobs:]]
    return np.maximum(maths.exp(log_work) / programs.width[program], SHORTEST_S)


def _similar(draft: Draft) -> SimilarJobs:
    """Find the runs similar to each job; a run is assumed to last as long as its longest task."""
    jobs = np.arange(draft.programs.n_jobs)
    n_tasks = draft.programs.width[draft.programs.program]
    finish_s = draft.time_s + means(draft) * longest_over_mean(n_tasks, draft.tables)
    window_s = draft.tables.history_days * DAY_S
    return SimilarJobs(codes(draft), draft.time_s, finish_s, jobs, window_s)


def longest_over_mean(n_tasks: I8, tables: Tables) -> F8:
    """Estimate the ratio of a job's longest task duration to its mean task duration."""
    sigma = tables.over_space[0] * np.sqrt(SAMPLED * n_tasks)
    ratio: F8 = 1 + sigma * np.sqrt(2 * maths.log(n_tasks))
    return ratio


def codes(draft: Draft) -> I4:
    """Return the six features of each run, (N, 6)."""
    programs, time_s = draft.programs, draft.time_s
    program = programs.program
    version = np.where(programs.renamed[program], draft.version, 0)
    columns = [
        program, program * (int(draft.version.max()) + 1) + version, programs.user[program],
        np.floor(time_s / DAY_S) % 7, np.floor(time_s / 3600) % 24, programs.request[program],
    ]  # fmt: skip
    return np.column_stack(columns).astype(np.int32)


def _time_log_errors(draft: Draft, similar: SimilarJobs, target: Pair) -> F8:
    """Return the logarithms of the target over the actual variation over time."""
    actual = np.nanquantile(similar.variation(means(draft)), [0.5, 0.9])
    return maths.log(np.array(target) / actual)


def _calibrate(draft: Draft, similar: SimilarJobs, target: Pair) -> Draft:
    """Search for the scale at which variation over time meets the target."""
    center, spread = draft.scale
    best, min_error = draft, np.inf
    for _ in range(_STEPS):
        trial = replace(draft, scale=(center, spread))
        errors = _time_log_errors(trial, similar, target)
        if np.abs(errors).max() < min_error:
            best, min_error = trial, float(np.abs(errors).max())
        if min_error < _GOOD_ENOUGH:
            break
        center = min(center + float(errors[0]), _AMPLITUDE_MAX)
        spread = float(np.clip(spread + 0.6 * (errors[1] - errors[0]), 0.0, 3.0))
    return best
