"""Why runs of one program differ: updates of the code, the mix of hardware, the input's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.synth.recurring.programs import Programs

DAY_S = 86_400.0

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
