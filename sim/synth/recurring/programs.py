"""Three published workloads (Jajoo et al., NSDI 2022), and who runs what how often in them.

Programs, their users and names, and the runs of each; runs of one program differ by updates of the
code, the mix of hardware, and the input's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream, stream


@dataclass(frozen=True)
class Group:
    """Jobs of about one width, all small or all large."""

    jobs: float  # share of the jobs, and of their summed task durations
    work: float
    # fewest tasks, median, most, and the standard deviation of the logarithm
    width: tuple[int, float, int, float]
    large: bool  # whether a job's tasks add up to `SMALL_S` or more


@dataclass(frozen=True)
class Preset:
    """What a workload is drawn from."""

    groups: tuple[Group, ...]  # shares of each add up to 1
    job_work_s: float  # mean of a job's summed task durations, s
    # share of the runs with an input much larger than usual: assumed. The rarer, the higher a
    # variation over time can be
    large: float
    # targets: Table 4's median and 90th percentile of either variation; Table 5's mean, median
    # and 90th percentile of the load in windows
    over_time: tuple[float, float]
    over_space: tuple[float, float]
    load: tuple[float, float, float]
    recurring: float  # share of the jobs whose program runs more than once
    history_days: int  # length of the history, and of the window that `over_time` is measured in
    # share of the jobs whose program has become faster since the history, and the mean of the
    # logarithm by which it has (exponential, at most 100-fold)
    stale: tuple[float, float]


SMALL_S = 1000.0
"""Where small ends and large begins, summed task durations of a job, s (Table 8)."""


def _presets() -> Iterator[tuple[str, Preset]]:
    """Read what is drawn from, and why, of the file beside this one."""
    text = Path(__file__).with_name("presets.yaml").read_text(encoding="utf-8")
    for name, given in yaml.safe_load(text).items():
        tuples: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in given.items()
        }
        groups = (
            Group(jobs, work, tuple(width), large)
            for jobs, work, width, large in given.pop("groups")
        )
        yield name, Preset(**{**tuples, "groups": tuple(groups)})


PRESETS = dict(_presets())

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
    """Draw programs so that each group has its share of the jobs, popularity falling with rank."""
    counts = apportioned(np.array([group.jobs for group in preset.groups]), n_jobs)
    groups, runs, widths = [], [], []
    for number, (like, n) in enumerate(zip(preset.groups, counts.tolist(), strict=True)):
        again = round(recurring * n)
        n_programs = min(max(round(again / RUNS_PER_PROGRAM), 1), again)
        popular = (
            apportioned(
                maths.power(np.arange(1.0, n_programs + 1), -POPULARITY), again - n_programs
            )
            + 1
        )
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


def _widths(group: Group, weight: I8, rng: Stream) -> I8:
    low, median, high, spread = group.width
    drawn = median * maths.exp(spread * _even(weight * 1.0, rng))
    return np.clip(np.rint(drawn), low, high).astype(np.int64)


def _stale(weight: F8, changed: tuple[float, float], rng: Stream) -> F8:
    """Return 0, or for a share of the jobs an exponential number of some mean, at most log 100."""
    share, mean = changed
    if not share:
        return np.zeros(len(weight))
    beyond = 1.0 - maths.normal_cdf(_even(weight, rng))
    found: F8 = np.clip(-mean * maths.log(beyond / share), 0.0, LARGEST)
    return found


def _even(weight: NDArray[Any], rng: Stream, within: I8 | None = None) -> F8:
    """Return standard normal numbers whose quantiles hold for jobs, by `weight`, not programs."""
    place = rng.permutation(len(weight))
    groups = np.zeros(len(weight), np.int64) if within is None else within
    normal = np.empty(len(weight))
    for group in np.unique(groups):
        rows = place[groups[place] == group]
        end = np.cumsum(weight[rows])
        normal[rows] = maths.normal_quantile((end - weight[rows] / 2) / end[-1])
    return normal


DAY_S = 86_400.0
LARGEST = 4.605170185988092  # log 100

_BLUR = 0.4
"""Standard deviation of inputs that are all usual, or all large."""


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
    """Return how far each run is from what is typical of its program."""
    begin, end = float(time_s.min()), float(time_s.max())
    version = _versions(programs, time_s - begin, end - begin, drift.update_days, seed)
    version[: programs.n_jobs] += programs.stale[programs.program[: programs.n_jobs]] > 0
    n_versions = int(version.max()) + 1
    levels = stream(seed, "recurring", "levels").standard_normal((n_versions, len(programs.group)))
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
    """Return the logarithm of inputs' sizes, in two parts: usual ones, and a share that is large.

    Together they are of mean 0 and variance 1.
    """
    rng = stream(seed, "recurring", "inputs")
    normal, is_large = rng.standard_normal(n), rng.random(n) < large
    apart = np.sqrt((1 - _BLUR**2) / (large * (1 - large))) if large else 0.0
    jump: F8 = np.where(is_large, 1 - large, -large) * apart
    return _BLUR * normal, jump


def _versions(programs: Programs, since_s: F8, span_s: float, update_days: float, seed: int) -> I8:
    """Count each program's updates, a Poisson process, up to each run."""
    rng = stream(seed, "recurring", "updates")
    most = int(3 + 3 * span_s / (update_days * DAY_S))
    gaps = rng.exponential(update_days * DAY_S, (most, len(programs.group)))
    times = np.cumsum(gaps, axis=0)
    version: I8 = (times[:, programs.program] <= since_s).sum(axis=0).astype(np.int64)
    return version
