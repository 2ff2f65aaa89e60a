"""Programs, their users and names, and their runs.

Runs of one program differ by updates of the code, the mix of hardware, and the input's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.slearn.recurring.tables import Stratum, Tables, quantiles_at
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranks
from sim.base.random import Stream, stream

POPULARITY = 0.5
"""Exponent of the power law by which a program's popularity falls with its rank."""


@dataclass(frozen=True)
class Programs:
    """P programs and the N runs of them, those of the history last."""

    stratum: I8  # stratum of the tables to which its typical job belongs
    wide: I8  # 1 if its jobs are wide, else 0
    log_work: F8  # logarithm of its jobs' typical summed task duration, s
    width: I8  # number of tasks
    user: I8
    request: I8
    amplitude: F8  # standard normal score: variation of its runs among programs
    steadiness: F8  # standard normal score: variation of its tasks among programs
    stale: F8  # logarithm of the duration of its runs in the history over those since
    renamed: Mask  # every update of its code changes its job name
    program: I8  # program of each run
    n_jobs: int  # runs that are jobs of the workload itself
    job_work: tuple[F8, F8]  # sizes of the thin jobs, ascending, and of the wide ones, s


def draw_programs(
    tables: Tables, n_jobs: int, n_history: int | None, recurring: float | None, seed: int
) -> Programs:
    """Draw programs with the strata's shares of jobs and past runs."""
    shares = np.array([spec.jobs for spec in tables.strata])
    counts = apportion(shares, n_jobs).tolist()
    past_factors = _past_factors(tables, recurring)
    parts = []
    for number, (spec, n) in enumerate(zip(tables.strata, counts, strict=True)):
        for now, past in _runs(spec, n, n_jobs, past_factors):
            parts.append((np.full(len(now), number), now, past))
    n_old, n_old_runs = (round(per_job * n_jobs) for per_job in tables.history_only)
    names = stream(seed, "recurring", "names")
    old_stratum = names.choice(len(shares), n_old, p=shares)
    old_runs = apportion(np.ones(n_old), max(n_old_runs, n_old))
    parts.append((old_stratum, np.zeros(n_old, np.int64), old_runs))
    stratum, now, past = (np.concatenate(column) for column in zip(*parts, strict=True))
    if n_history is not None:
        past = apportion(past, n_history)
    n = len(now)
    order = stream(seed, "recurring", "order")
    programs = np.arange(n)
    log_work, width, works = _sizes(tables, stratum, now, counts, seed)
    weight, mean = np.maximum(now, 1e-6), log_work - maths.log(width)
    return Programs(
        stratum=stratum,
        wide=np.array([int(not spec.thin) for spec in tables.strata])[stratum],
        log_work=log_work,
        width=width,
        user=_assign_values(mean, max(round(tables.users[0] * n_jobs), 1), tables.users[1], names),
        request=_assign_values(
            mean, max(round(tables.requests[0] * n_jobs), 1), tables.requests[1], names
        ),
        amplitude=_normal(weight, stream(seed, "recurring", "amplitudes")),
        steadiness=stream(seed, "recurring", "steadiness").standard_normal(n),
        stale=_stale(weight, tables.stale, stream(seed, "recurring", "stale")),
        renamed=names.random(n) < 0.5,
        program=np.concatenate(
            [order.permutation(np.repeat(programs, runs)) for runs in (now, past)]
        ),
        n_jobs=n_jobs,
        job_work=works,
    )


def _past_factors(tables: Tables, recurring: float | None) -> tuple[float, float]:
    """Return factors of the share of jobs with past runs, and of the share without."""
    if recurring is None:
        return 1.0, 1.0
    with_history = sum(spec.jobs * sum(runs[0] for runs in spec.runs[1:]) for spec in tables.strata)
    return (min(recurring / with_history, 1.0) if with_history else 1.0), min(
        (1 - recurring) / (1 - with_history), 1.0
    )


def _runs(
    spec: Stratum, n: int, n_jobs: int, past_factors: tuple[float, float]
) -> Iterator[tuple[I8, I8]]:
    """Draw runs of each program, now and in the past, for each class of programs."""
    new, once, often = (runs[0] for runs in spec.runs)
    with_past = (1 - new) * past_factors[0] if past_factors[0] < 1 else 1 - new * past_factors[1]
    total = max(once + often, 1e-12)
    shares = np.array([1 - with_past, with_past * once / total, with_past * often / total])
    jobs = apportion(shares, n).tolist()
    for number, (share, programs, past) in enumerate(spec.runs):
        if not jobs[number]:
            continue
        job_factor = jobs[number] / (share * n) if share else 1.0
        n_programs = min(max(round(programs * n_jobs * job_factor), 1), jobs[number])
        popularity = maths.power(np.arange(1.0, n_programs + 1), -POPULARITY)
        now = 1 + apportion(popularity, jobs[number] - n_programs)
        n_past = number  # minimum past runs of the class: none, one, two
        rest = max(round(past * n_jobs * job_factor) - n_past * n_programs, 0) if number == 2 else 0
        yield now, n_past + apportion(now, rest)


def _sizes(
    tables: Tables, stratum: I8, now: I8, counts: list[int], seed: int
) -> tuple[F8, I8, tuple[F8, F8]]:
    """Return each program's typical log size and width, and the sizes of thin and wide jobs."""
    log_work, width = np.empty(len(now)), np.empty(len(now), np.int64)
    works: tuple[list[F8], list[F8]] = ([], [])
    for number, (spec, n) in enumerate(zip(tables.strata, counts, strict=True)):
        rows = np.flatnonzero(stratum == number)
        logs = maths.log(np.array(spec.work_s))
        works[not spec.thin].append(quantiles_at(logs, (np.arange(n) + 0.5) / max(n, 1)))
        weight = np.maximum(now[rows], 1e-6)
        log_work[rows] = quantiles_at(
            logs, _uniform_over_jobs(weight, stream(seed, "recurring", "sizes", number))
        )
        cum_share = np.cumsum([share for _, share in spec.widths])
        score = (
            _uniform_over_jobs(weight, stream(seed, "recurring", "widths", number)) * cum_share[-1]
        )
        width[rows] = np.array([n_tasks for n_tasks, _ in spec.widths])[
            np.searchsorted(cum_share, score, side="right")
        ]
    thin, wide = (maths.exp(np.sort(np.concatenate([*logs, []]))) for logs in works)
    return log_work, width, (thin, wide)


def _assign_values(mean: F8, n_values: int, between: float, rng: Stream) -> I8:
    """Assign each program one of `n_values` values with popularities proportional to 1 / k.

    Programs of one value have similar mean task durations (logarithms), so that the share `between`
    of their variance, by rank, is between values.
    """
    return next(draw_values(mean, n_values, np.full((1, len(mean)), between), rng))


def draw_values(mean: F8, n_values: int, between: F8, rng: Stream) -> Iterator[I8]:
    """Yield such an assignment for each row of `between`, which has a share for each program."""
    n = len(mean)
    rank = ranks(mean)
    normal, noise = maths.normal_quantile((rank + 0.5) / n), rng.standard_normal(n)
    sizes = rng.permutation(apportion(1.0 / np.arange(1, n_values + 1), n))
    for share in between:
        score = np.sqrt(share) * normal + np.sqrt(1 - share) * noise
        value = np.empty(n, np.int64)
        value[np.argsort(score, kind="stable")] = np.repeat(np.arange(n_values), sizes)
        yield value


def apportion(share: NDArray[Any], n: int) -> I8:
    """Apportion `n` in whole numbers to `share` (of any sum), by largest remainders."""
    if n <= 0 or share.sum() <= 0:
        return np.zeros(len(share), np.int64)
    exact = share * (n / share.sum())
    whole: I8 = np.floor(exact).astype(np.int64)
    rest = np.argsort(whole - exact, kind="stable")[: n - int(whole.sum())]
    whole[rest] += 1
    return whole


def _stale(weight: F8, changed: tuple[float, float], rng: Stream) -> F8:
    """Return 0, or for a share of the jobs exponential numbers of a mean, at most log 100."""
    share, mean = changed
    if not share:
        return np.zeros(len(weight))
    beyond = 1.0 - _uniform_over_jobs(weight, rng)
    return np.clip(-mean * maths.log(beyond / share), 0.0, LOG_MAX)


def _uniform_over_jobs(weight: NDArray[Any], rng: Stream) -> F8:
    """Draw uniform scores from 0 to 1, uniform over jobs (`weight`), not over programs."""
    order = rng.permutation(len(weight))
    scores = np.empty(len(weight))
    end = np.cumsum(weight[order])
    scores[order] = (end - weight[order] / 2) / (end[-1] if len(end) else 1.0)
    return scores


def _normal(weight: NDArray[Any], rng: Stream) -> F8:
    return maths.normal_quantile(np.clip(_uniform_over_jobs(weight, rng), 1e-12, 1 - 1e-12))


DAY_S = 86_400.0
LOG_MAX = 4.605170185988092  # log 100

_BLUR = 0.4
"""Standard deviation of usual inputs among themselves, and of large ones."""


@dataclass(frozen=True)
class Drift:
    """Shares of the variance of a run's logarithm, and the pace of change."""

    # variance due to each, of any sum. An update of the code changes the runtime for good; a run
    # meets one of two kinds of machines; its input has a size of its own
    updates: float = 0.25
    hardware: float = 0.15
    inputs: float = 0.6
    # mean time between two updates of a program's code. More than half of the programs are
    # updated within a month (Jyothi et al., *Morpheus*, OSDI 2016)
    update_days: float = 20.0
    # share of the runs on the newer kind of machines, at the begin of the history and at the end
    # of the workload
    newer: tuple[float, float] = (0.2, 0.45)


def deviations(
    programs: Programs, time_s: F8, drift: Drift, large: float, seed: int
) -> tuple[F8, F8, I8]:
    """Return each run's deviation from its program's typical: usual part, large inputs, version."""
    begin, end = float(time_s.min()), float(time_s.max())
    version = _versions(programs, time_s - begin, end - begin, drift.update_days, seed)
    version[: programs.n_jobs] += programs.stale[programs.program[: programs.n_jobs]] > 0
    n_versions = int(version.max()) + 1
    levels = stream(seed, "recurring", "levels").standard_normal((n_versions, len(programs.wide)))
    age = (time_s - begin) / max(end - begin, 1.0)
    share = drift.newer[0] + (drift.newer[1] - drift.newer[0]) * age
    newer = stream(seed, "recurring", "hardware").random(len(time_s)) < share
    mix = sum(drift.newer) / 2
    kind = np.where(newer, mix - 1, mix) / np.sqrt(mix * (1 - mix))
    blur, jump = _inputs(len(time_s), large, seed)
    parts = np.array([drift.updates, drift.hardware, drift.inputs])
    update, hardware, inputs = np.sqrt(parts / parts.sum())
    usual = update * levels[version, programs.program] + hardware * kind + inputs * blur
    return usual, inputs * jump, version


def _inputs(n: int, large: float, seed: int) -> tuple[F8, F8]:
    """Draw the logarithm of inputs' sizes in two parts: usual variation, and a share that is large.

    Their sum has mean 0 and variance 1.
    """
    rng = stream(seed, "recurring", "inputs")
    normal, is_large = rng.standard_normal(n), rng.random(n) < large
    apart = np.sqrt((1 - _BLUR**2) / (large * (1 - large))) if large else 0.0
    jump: F8 = np.where(is_large, 1 - large, -large) * apart
    return _BLUR * normal, jump


def _versions(programs: Programs, since_s: F8, span_s: float, update_days: float, seed: int) -> I8:
    """Count each program's updates, a Poisson process, up to each run."""
    rng = stream(seed, "recurring", "updates")
    n_max = int(3 + 3 * span_s / (update_days * DAY_S))
    gaps = rng.exponential(update_days * DAY_S, (n_max, len(programs.wide)))
    times = np.cumsum(gaps, axis=0)
    version: I8 = (times[:, programs.program] <= since_s).sum(axis=0).astype(np.int64)
    return version
