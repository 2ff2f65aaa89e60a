"""When jobs come and what runs cost, fitted to the load and the variation over time wanted.

Load in windows: how sizes of jobs spread and how many of them come in surges. Variation over time:
how much runs of programs differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.random import stream
from sim.describe.slearn import SAMPLED, Similar, window_loads
from sim.synth.recurring.programs import (
    DAY_S,
    LARGEST,
    SMALL_S,
    Drift,
    Group,
    Preset,
    Programs,
    deviations,
)

N_SURGES = 3
"""How many times jobs come in quick succession."""
SURGE_PACE = 0.01
"""Mean gap between jobs in a surge, over that between others."""
_SIZES = (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.5, 3.0)
_SURGING, _LAST_STEP = (0.0, 0.9, 10), 0.002
_NEAR, _LOAD_NEAR_ENOUGH, _HOPELESS = 0.01, 0.04, 0.4


def fitted(
    work_of: Callable[[float], F8],
    n_jobs: int,
    load: tuple[float, float, float],
    n_slots: int,
    seed: int,
    size: float | None = None,
    draws: int = 1,
) -> tuple[F8, tuple[float, float], float]:
    """Draw when jobs come: at random, but for a share of them that come in a few surges.

    It is searched for, and time stretched, so that the load in windows comes near to `load`. Sizes
    spread as little as they can for that: else a few jobs would make up most of the work.
    """
    works: dict[float, F8] = {}

    def at(shape: tuple[float, float], draw: tuple[F8, F8], rounds: int) -> tuple[F8, F8]:
        spread, surging = shape
        if spread not in works:
            works[spread] = work_of(spread)
        work_s = works[spread]
        return _stretched(_gaps(*draw, surging), work_s, load[0], n_slots, rounds), work_s

    def off(draw: tuple[F8, F8], spread: float, surging: float) -> float:
        return error_of(*at((spread, surging), draw, 2), load, n_slots)

    tried: list[tuple[float, tuple[float, float], tuple[F8, F8]]] = []
    for number in range(draws):
        draw = _drawn(n_jobs, seed, number)
        for spread in _SIZES if size is None else (size,):
            surging, error = _least(partial(off, draw, spread))
            tried.append((error, (spread, surging), draw))
            if error <= _LOAD_NEAR_ENOUGH:
                break
        if tried[-1][0] <= _LOAD_NEAR_ENOUGH:
            break
    _, best, draw = min(tried, key=lambda each: each[0])
    submit_s, work_s = at(best, draw, 3)
    return submit_s, best, error_of(submit_s, work_s, load, n_slots)


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


def _gaps(gap: F8, late: F8, surging: float) -> F8:
    """Return the time from each job to the next one: a surge in each of equal parts of the jobs."""
    part, place = np.divmod(np.arange(len(gap)) * (N_SURGES / len(gap)), 1.0)
    since = place - (0.8 * (1 - surging) * late)[part.astype(np.int64)]
    return np.where((since >= 0) & (since < surging), SURGE_PACE * gap, gap)


def _stretched(gap: F8, work_s: F8, mean: float, n_slots: int, rounds: int = 3) -> F8:
    time = np.concatenate([[0.0], np.cumsum(gap[:-1])])
    time *= work_s.sum() / (n_slots * mean * time[-1])
    for _ in range(rounds):
        time *= np.clip(window_loads(time, work_s, n_slots).mean() / mean, 0.5, 2.0)
    return time


Pair = tuple[float, float]

WELL = 0.08
"""How far the worst figure may be off, as a logarithm, for a draft to be good."""
_ROUNDS, _FREE_ROUNDS, _DRAWS, _STEPS = 4, 2, 6, 8
_NEAR_ENOUGH = 0.05
_LARGEST_AMPLITUDE = 0.8
_TAIL = 1.4
_EXTREME = 2.0
_MOST_USUAL = 1.0
"""Amplitude up to which updates, machines and usual inputs count: what varies more than by about a
factor of e does so by large inputs, else the rest of its runs would take next to nothing."""
SHORTEST_S = 1.0
"""Least mean task duration, s."""


@dataclass(frozen=True)
class Draft:
    """Runs with their times; what is not drawn yet follows from `scale`."""

    preset: Preset
    programs: Programs
    time_s: F8  # when each run is submitted, the history before 0
    usual: F8  # see `deviations`
    large: F8
    version: I8  # of the code
    # mean and spread over programs of the logarithm of the amplitude of runs
    scale: tuple[float, float] = (-0.5, 0.8)
    # spread of the sizes of programs, and share of the jobs that come in surges
    shape: tuple[float, float] = (1.0, 0.0)


def fitted_draft(
    preset: Preset, programs: Programs, over_time: Pair, n_slots: int, drift: Drift, seed: int
) -> tuple[Draft, float]:
    """Fit load and variation over time in turn; the latter sizes are kept once they are found."""
    n_jobs = programs.n_jobs
    n_history = len(programs.program) - n_jobs
    past_s = -preset.history_days * DAY_S * stream(seed, "recurring", "past").random(n_history)
    span_s = n_jobs * preset.job_work_s / (n_slots * preset.load[0])
    time_s = np.concatenate([np.linspace(0.0, span_s, n_jobs), past_s])
    noise = deviations(programs, time_s, drift, preset.large, seed)
    draft = best = Draft(preset, programs, time_s, *noise)
    least = np.inf
    for number in range(_ROUNDS):
        submit_s, shape, load_error = fitted(
            partial(_work, draft), n_jobs, preset.load, n_slots, seed,
            size=None if number < _FREE_ROUNDS else draft.shape[0], draws=_DRAWS if number else 1,
        )  # fmt: skip
        draft = replace(draft, time_s=np.concatenate([submit_s, past_s]), shape=shape)
        for is_calibrated in (False, True):
            if is_calibrated:
                draft = _calibrated(draft, _similar(draft), over_time)
                load_error = error_of(submit_s, _work(draft, shape[0]), preset.load, n_slots)
            error = max(load_error, float(np.abs(_off(draft, _similar(draft), over_time)).max()))
            if error < least:
                best, least = draft, error
        if least <= _NEAR_ENOUGH:
            break
    return best, least


def _work(draft: Draft, spread: float) -> F8:
    """Return the work of each job if sizes of programs had that spread, (J,) s."""
    programs, n_jobs = draft.programs, draft.programs.n_jobs
    mean_s = means(replace(draft, shape=(spread, 0.0)))
    return (mean_s * programs.width[programs.program])[:n_jobs]


def means(draft: Draft) -> F8:
    """Return the mean task duration of each run, so that groups have their sizes and shares.

    Those are of the workload's jobs; the history's are longer where their programs were slower.
    """
    programs, preset = draft.programs, draft.preset
    program = programs.program
    center, spread = draft.scale
    amplitude = maths.exp(center + spread * np.clip(programs.amplitude, -_TAIL, _TAIL))
    usual = np.minimum(amplitude, _MOST_USUAL)[program] * draft.usual
    off = maths.exp(usual + np.minimum(amplitude[program] * draft.large, LARGEST))
    typical = maths.exp(draft.shape[0] * np.clip(programs.size, -_EXTREME, _EXTREME))
    typical /= np.bincount(program, off) / np.maximum(np.bincount(program), 1)
    work = typical[program] * off
    group = programs.group[program]
    for number, of in enumerate(preset.groups):
        rows = np.flatnonzero(group == number)
        total = of.work * preset.job_work_s * programs.n_jobs
        least = SHORTEST_S * programs.width[program[rows]].astype(np.float64)
        work[rows] = _in_group(work[rows], rows < programs.n_jobs, of, total, least)
    work[programs.n_jobs :] *= maths.exp(programs.stale[program[programs.n_jobs :]])
    return work / programs.width[program]


def _in_group(work: F8, is_job: Mask, group: Group, total: float, least: F8) -> F8:
    """Scale the runs of a group so that the workload's add up to `total`; none is below `least`."""
    if not is_job.any():
        return work
    low: F8 = np.maximum(least, SMALL_S * (1 + 1e-6)) if group.large else least
    high = np.inf if group.large else SMALL_S * (1 - 1e-6)
    for _ in range(12):
        work = work * (total / work[is_job].sum())
        under, over = work < low, work > high
        if not (under | over)[is_job].any():
            break
        work = np.where(under, low * np.minimum(low / work, 3.0), work)
        work = np.where(over, high * np.maximum(high / work, 1 / 3), work)
    return np.clip(work, low, high)


def _similar(draft: Draft) -> Similar:
    """Find the runs like each job; each is taken to last as long as its longest task."""
    jobs = np.arange(draft.programs.n_jobs)
    n_tasks = draft.programs.width[draft.programs.program]
    finish_s = draft.time_s + means(draft) * longest(n_tasks, draft.preset)
    window_s = draft.preset.history_days * DAY_S
    return Similar(codes(draft), draft.time_s, finish_s, jobs, window_s)


def longest(n_tasks: I8, preset: Preset) -> F8:
    """Return about how much longer than the mean the longest of a job's tasks lasts."""
    usual = preset.over_space[0] * np.sqrt(SAMPLED * n_tasks)
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
