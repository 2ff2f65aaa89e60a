"""Who runs what how often: programs, their users and names, and the runs of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.synth.recurring.presets import Group, Preset

RUNS_PER_PROGRAM = 25.0
"""Mean number of runs of a program that comes back, in the workload itself."""

POPULARITY = 0.5
"""By which power of its rank the popularity of a program falls."""

PROGRAMS_PER_USER = 6
REQUESTS = tuple(f"cpu={c:g} mem={m:g}" for c in (0.5, 1, 2, 4, 8) for m in (1, 2, 4, 8, 16, 32))


@dataclass(frozen=True)
class Programs:
    """P programs and the N runs of them, those of the history last."""

    group: I8  # group of the preset, number of tasks, user and place in `REQUESTS` of each program
    width: I8
    user: I8
    request: I8
    size: F8  # standard normal: how large its jobs are among those of the group
    amplitude: F8  # standard normal: how much its runs vary among programs
    steadiness: F8  # standard normal: how much its tasks vary among programs
    stale: F8  # by how much, as a logarithm, its runs of the history last longer than those since
    renamed: Mask  # whether every update of its code gives it another job name
    program: I8  # program of each run
    n_jobs: int  # how many of the runs are of the workload itself


def draw_programs(
    preset: Preset, n_jobs: int, n_history: int, recurring: float, seed: int
) -> Programs:
    """Draw programs so that each group has its share of the jobs.

    A share `recurring` of the jobs of each group are runs of programs whose popularity falls
    with rank; the others are of a program that runs once and is not in the history.
    """
    counts = apportioned(np.array([group.jobs for group in preset.groups]), n_jobs)
    groups, runs, widths = [], [], []
    for number, (like, n) in enumerate(zip(preset.groups, counts.tolist(), strict=True)):
        again = round(recurring * n)
        n_programs = min(max(round(again / RUNS_PER_PROGRAM), 1), again)
        popular = apportioned(np.arange(1.0, n_programs + 1) ** -POPULARITY, again - n_programs) + 1
        of = np.concatenate([popular[:n_programs], np.ones(n - again, np.int64)])
        groups.append(np.full(len(of), number))
        runs.append(of)
        widths.append(_widths(like, of, stream(seed, "recurring", "widths", number)))
    group, n_runs = np.concatenate(groups), np.concatenate(runs)
    n_programs = len(group)
    known = n_runs > 1
    past = apportioned(np.where(known, n_runs, 0.0), n_history)
    order = stream(seed, "recurring", "order")
    mine = np.repeat(np.arange(n_programs), n_runs)
    before = np.repeat(np.arange(n_programs), past)
    names = stream(seed, "recurring", "names")
    n_users = max(n_programs // PROGRAMS_PER_USER, 1)
    return Programs(
        group=group,
        width=np.concatenate(widths),
        user=np.minimum(names.zipf(1.5, n_programs) - 1, n_users - 1),
        request=names.integers(len(REQUESTS), size=n_programs),
        size=_even(n_runs * 1.0, stream(seed, "recurring", "sizes"), group),
        amplitude=_even(n_runs * 1.0, stream(seed, "recurring", "amplitudes")),
        steadiness=stream(seed, "recurring", "steadiness").standard_normal(n_programs),
        stale=_stale(n_runs * 1.0, preset.stale, stream(seed, "recurring", "stale")),
        renamed=names.random(n_programs) < 0.5,
        program=np.concatenate([order.permutation(mine), order.permutation(before)]),
        n_jobs=n_jobs,
    )


def apportioned(share: NDArray[Any], n: int) -> I8:
    """Return whole numbers that add up to `n`, as near to `share` (of any sum) as can be."""
    if n <= 0 or share.sum() <= 0:
        return np.zeros(len(share), np.int64)
    exact = share * (n / share.sum())
    whole = np.floor(exact).astype(np.int64)
    rest = np.argsort(whole - exact, kind="stable")[: n - int(whole.sum())]
    whole[rest] += 1
    found: I8 = whole
    return found


def _widths(group: Group, weight: I8, rng: np.random.Generator) -> I8:
    low, median, high, spread = group.width
    drawn = median * np.exp(spread * _even(weight * 1.0, rng))
    found: I8 = np.clip(np.rint(drawn), low, high).astype(np.int64)
    return found


def _stale(weight: F8, changed: tuple[float, float], rng: np.random.Generator) -> F8:
    """Return 0, or for a share of the jobs an exponential number of some mean, at most log 100."""
    from scipy.special import ndtr

    share, mean = changed
    if not share:
        return np.zeros(len(weight))
    beyond = 1.0 - ndtr(_even(weight, rng))
    found: F8 = np.clip(-mean * np.log(beyond / share), 0.0, np.log(100.0))
    return found


def _even(weight: NDArray[Any], rng: np.random.Generator, within: I8 | None = None) -> F8:
    """Return standard normal numbers whose quantiles hold for jobs, by `weight`, not programs."""
    from scipy.special import ndtri

    place = rng.permutation(len(weight))
    groups = np.zeros(len(weight), np.int64) if within is None else within
    found = np.empty(len(weight))
    for group in np.unique(groups):
        rows = place[groups[place] == group]
        end = np.cumsum(weight[rows])
        found[rows] = ndtri((end - weight[rows] / 2) / end[-1])
    return found
