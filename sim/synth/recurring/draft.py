"""When jobs come and what runs cost, fitted to the load and the variation over time wanted.

Load in windows: how sizes of jobs spread and how many of them come in surges. Variation over time:
how much runs of programs differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I4, I8
from sim.base.random import stream
from sim.describe.slearn import SAMPLED, Similar, window_loads
from sim.synth.recurring.giants import gathered, unlike
from sim.synth.recurring.programs import DAY_S, LARGEST, Drift, Programs, deviations, sharings
from sim.synth.recurring.tables import Tables, heaviest

N_SURGES = 3
"""How many times jobs come in quick succession."""
SURGE_PACES = (0.01, 0.04, 0.16)
"""Mean gap between jobs in a surge, over that between others: the first that does."""
_SURGING, _LAST_STEP = (0.0, 0.9, 7), 0.01
_NEAR, _LOAD_NEAR_ENOUGH, _HOPELESS = 0.01, 0.04, 0.4


def fitted(
    work_s: F8, load: tuple[float, float, float], n_slots: int, seed: int, draws: int = 1
) -> tuple[F8, float]:
    """Draw when jobs come: at random, but for a share of them that come in a few surges.

    It is searched for, and time stretched, so that the load in windows comes near to `load`.
    """
    tried: list[tuple[float, F8]] = []
    for number, pace in product(range(draws), SURGE_PACES):
        submit_s = partial(
            _submitted, _drawn(len(work_s), seed, number), pace, work_s, load[0], n_slots
        )

        def off(surging: float, at: Callable[[float, int], F8] = submit_s) -> float:
            return error_of(at(surging, 0), work_s, load, n_slots)

        surging, error = _least(off)
        tried.append((error, submit_s(surging, 3)))
        if error <= _LOAD_NEAR_ENOUGH:
            break
    best = min(tried, key=lambda each: each[0])[1]
    return best, error_of(best, work_s, load, n_slots)


def _submitted(
    draw: tuple[F8, F8], pace: float, work_s: F8, mean: float, n_slots: int,
    surging: float, rounds: int,
) -> F8:  # fmt: skip
    return _stretched(_gaps(*draw, surging, pace), work_s, mean, n_slots, rounds)


def _least(off: Callable[[float], float]) -> tuple[float, float]:
    """Return where in `_SURGING` a function is least, and how much it is there."""
    low, high, n = _SURGING
    shares = np.linspace(low, high, n)
    step = (high - low) / (n - 1)
    errors = [off(float(share)) for share in shares]
    best, error = float(shares[int(np.argmin(errors))]), min(errors)
    while _HOPELESS > error > _NEAR and step > _LAST_STEP:
        step /= 2
        for share in (best - step, best + step):
            share = min(max(share, low), high)
            if (tried := off(share)) < error:
                best, error = share, tried
    return best, error


def error_of(submit_s: F8, work_s: F8, load: tuple[float, float, float], n_slots: int) -> float:
    """Return how far the worse of two percentiles of the load is off, as a logarithm."""
    got = np.quantile(window_loads(submit_s, work_s, n_slots), [0.5, 0.9])
    return float(np.abs(maths.log(np.maximum(got, 1e-4) / load[1:])).max())


def _drawn(n: int, seed: int, number: int) -> tuple[F8, F8]:
    """Return the gaps of a Poisson process of pace 1, and how late in its part a surge begins."""
    gap = stream(seed, "recurring", "gaps", number).exponential(size=n)
    return gap, stream(seed, "recurring", "surges", number).random(N_SURGES)


def _gaps(gap: F8, late: F8, surging: float, pace: float) -> F8:
    """Return the time from each job to the next one: a surge in each of equal parts of the jobs."""
    part, place = np.divmod(np.arange(len(gap)) * (N_SURGES / len(gap)), 1.0)
    since = place - (0.8 * (1 - surging) * late)[part.astype(np.int64)]
    return np.where((since >= 0) & (since < surging), pace * gap, gap)


def _stretched(gap: F8, work_s: F8, mean: float, n_slots: int, rounds: int = 3) -> F8:
    time = np.concatenate([[0.0], np.cumsum(gap[:-1])])
    time *= work_s.sum() / (n_slots * mean * time[-1])
    for _ in range(rounds):
        time *= np.clip(window_loads(time, work_s, n_slots).mean() / mean, 0.5, 2.0)
    return time


Pair = tuple[float, float]

WELL = 0.08
"""How far the worst figure may be off, as a logarithm, for a draft to be good."""
_ROUNDS, _DRAWS, _STEPS = 3, 2, 6
_NEAR_ENOUGH = 0.05
_LARGEST_AMPLITUDE = 0.8
_TAIL = 1.4
_MOST_USUAL = 1.0
"""Amplitude up to which updates, machines and usual inputs count: what varies more than by about a
factor of e does so by large inputs, else the rest of its runs would take next to nothing."""
SHORTEST_S = 1.0
"""Least mean task duration, s."""
_ALIKE = np.linspace(0.0, 1.0, 41)
"""How alike to the programs of the heaviest jobs those of their users may be."""


@dataclass(frozen=True)
class Draft:
    """Runs with their times; what is not drawn yet follows from `scale`."""

    tables: Tables
    programs: Programs
    time_s: F8  # when each run is submitted, the history before 0
    usual: F8  # see `deviations`
    large: F8
    version: I8  # of the code
    # mean and spread over programs of the logarithm of the amplitude of runs
    scale: tuple[float, float] = (-0.5, 0.8)


def fitted_draft(
    tables: Tables, programs: Programs, over_time: Pair, n_slots: int, drift: Drift, seed: int
) -> tuple[Draft, float]:
    """Fit load and variation over time in turn."""
    n_jobs = programs.n_jobs
    n_history = len(programs.program) - n_jobs
    past_s = -tables.history_days * DAY_S * stream(seed, "recurring", "past").random(n_history)
    span_s = sum(float(work.sum()) for work in programs.job_work) / (n_slots * tables.load[0])
    time_s = np.concatenate([np.linspace(0.0, span_s, n_jobs), past_s])
    noise = deviations(programs, time_s, drift, tables.large, seed)
    draft = best = Draft(tables, programs, time_s, *noise)
    least = np.inf
    for number in range(_ROUNDS):
        draft = _with_giants(draft, seed)
        submit_s, load_error = fitted(
            _work(draft), tables.load, n_slots, seed, _DRAWS if number else 1
        )
        draft = replace(draft, time_s=np.concatenate([submit_s, past_s]))
        for is_calibrated in (False, True):
            if is_calibrated:
                draft = _with_giants(_calibrated(draft, _similar(draft), over_time), seed)
                load_error = error_of(submit_s, _work(draft), tables.load, n_slots)
            error = max(load_error, float(np.abs(_off(draft, _similar(draft), over_time)).max()))
            if error < least:
                best, least = draft, error
        if least <= _NEAR_ENOUGH:
            break
    return best, least


def _with_giants(draft: Draft, seed: int) -> Draft:
    """Let the heaviest jobs come together, and be as unlike their users' past as is told."""
    draft = _with_users(draft, seed)
    programs, n_jobs = draft.programs, draft.programs.n_jobs
    user = programs.user[programs.program[:n_jobs]]
    order = np.arange(len(programs.program))
    order[:n_jobs] = gathered(_work(draft), user, draft.tables.together, seed)
    return replace(
        draft,
        programs=replace(programs, program=programs.program[order]),
        usual=draft.usual[order],
        large=draft.large[order],
        version=draft.version[order],
    )


def _with_users(draft: Draft, seed: int) -> Draft:
    """Draw users again so that those of the heaviest jobs' programs are as alike as fits."""
    programs, wanted = draft.programs, draft.tables.unlike_user
    if wanted is None:
        return draft
    n_jobs, mean_s, work_s = programs.n_jobs, means(draft), _work(draft)
    heavy = heaviest(work_s)
    of, past = programs.program[heavy], programs.program[n_jobs:]
    between = np.full((len(_ALIKE), len(programs.wide)), draft.tables.users[1])
    between[:, of] = _ALIKE[:, None]
    typical = programs.log_work - maths.log(programs.width)
    n_users = int(programs.user.max()) + 1
    once = np.ones(len(past))
    drawn = list(sharings(typical, n_users, between, stream(seed, "recurring", "users")))
    off = [
        unlike(user[past], mean_s[n_jobs:], once, user[of], mean_s[heavy], work_s[heavy], n_users)
        for user in drawn
    ]
    best = drawn[int(np.argmin(np.nan_to_num(np.abs(np.array(off) - wanted), nan=np.inf)))]
    return replace(draft, programs=replace(programs, user=best))


def _work(draft: Draft) -> F8:
    """Return the work of each job, (J,) s."""
    width = draft.programs.width[draft.programs.program]
    return (means(draft) * width)[: draft.programs.n_jobs]


def means(draft: Draft) -> F8:
    """Return the mean task duration of each run.

    Thin and wide jobs have exactly the sizes that there are for them, in the order of what is
    typical of their programs and of how far they are from it. A run of the history is as large as
    the job that is next below it in that order, and larger by what lies between; and larger still
    where its program was slower.
    """
    programs = draft.programs
    program, n_jobs = programs.program, programs.n_jobs
    center, spread = draft.scale
    amplitude = maths.exp(center + spread * np.clip(programs.amplitude, -_TAIL, _TAIL))
    off = np.minimum(amplitude, _MOST_USUAL)[program] * draft.usual
    off += np.minimum(amplitude[program] * draft.large, LARGEST)
    value = programs.log_work[program] + off
    wide = programs.wide[program]
    log_work = np.empty(len(value))
    for number, sizes in enumerate(programs.job_work):
        rows = np.flatnonzero(wide == number)
        mine, past = rows[rows < n_jobs], rows[rows >= n_jobs]
        if not len(mine):
            log_work[past] = value[past]
            continue
        order = mine[np.argsort(value[mine], kind="stable")]
        logs = maths.log(sizes)
        log_work[order] = logs
        below = np.maximum(np.searchsorted(value[order], value[past], side="right") - 1, 0)
        log_work[past] = logs[below] + value[past] - value[order[below]]
    log_work[n_jobs:] += programs.stale[program[n_jobs:]]
    return np.maximum(maths.exp(log_work) / programs.width[program], SHORTEST_S)


def _similar(draft: Draft) -> Similar:
    """Find the runs like each job; each is taken to last as long as its longest task."""
    jobs = np.arange(draft.programs.n_jobs)
    n_tasks = draft.programs.width[draft.programs.program]
    finish_s = draft.time_s + means(draft) * longest(n_tasks, draft.tables)
    window_s = draft.tables.history_days * DAY_S
    return Similar(codes(draft), draft.time_s, finish_s, jobs, window_s)


def longest(n_tasks: I8, tables: Tables) -> F8:
    """Return about how much longer than the mean the longest of a job's tasks lasts."""
    usual = tables.over_space[0] * np.sqrt(SAMPLED * n_tasks)
    found: F8 = 1 + usual * np.sqrt(2 * maths.log(n_tasks))
    return found


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


def _off(draft: Draft, similar: Similar, wanted: Pair) -> F8:
    """Return the logarithms by which variation over time falls short of what is wanted."""
    got = np.nanquantile(similar.variation(means(draft)), [0.5, 0.9])
    return maths.log(np.array(wanted) / got)


def _calibrated(draft: Draft, similar: Similar, wanted: Pair) -> Draft:
    """Search for the scale at which variation over time is as wanted."""
    center, spread = draft.scale
    best, least = draft, np.inf
    for _ in range(_STEPS):
        tried = replace(draft, scale=(center, spread))
        off = _off(tried, similar, wanted)
        if np.abs(off).max() < least:
            best, least = tried, float(np.abs(off).max())
        if least < _NEAR:
            break
        center = min(center + float(off[0]), _LARGEST_AMPLITUDE)
        spread = float(np.clip(spread + 0.6 * (off[1] - off[0]), 0.0, 3.0))
    return best
