"""A model of a job, simulated or by Amdahl's law: what is left now under each allocation (§4.1)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from policies.jockey.indicators import NAMES, Indicator, indicator
from policies.jockey.job_simulator import (
    Copies,
    Remaining,
    allocations,
    level_of,
    remaining_of,
    resample,
)
from policies.jockey.profile import Profile
from sim.base import disk_cache
from sim.base.arrays import F8, I8


class Model(Protocol):
    """What is predicted of a job of S stages."""

    @property
    def shortest_s(self) -> float:
        """The shortest time in which the job can be done, s."""

    def left_s(self, done: F8) -> F8:
        """Return what is left at the fractions `done` (S,), under 1 to A tokens: (A,), s."""


@dataclass(frozen=True, eq=False)
class Amdahl:
    """Serial and parallel work that is left by Amdahl's law."""

    profile: Profile
    max_tokens: int

    @property
    def shortest_s(self) -> float:
        """See `Model`: the critical path."""
        return self.profile.critical_path_s

    def left_s(self, done: F8) -> F8:
        """See `Model`."""
        return amdahl_s(self.profile, done, self.max_tokens)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated runs of resampled copies (`policies.jockey.job_simulator`)."""

    profile: Profile  # what the copies are drawn from
    indicator: Indicator  # what progress is
    remaining: Remaining  # c(p, a)
    quantile: float  # which quantile of it is looked up
    max_tokens: int  # a
    shortest_s: float  # how long the fastest of the copies takes where tokens are unlimited, s

    def left_s(self, done: F8) -> F8:
        """See `Model`."""
        left_s: F8 = self.table[level_of(float(self.indicator.progress(done)))]
        return left_s

    def left_by_run_s(self, done: F8) -> F8:
        """Return what is left under each of the simulated allocations in each run: (A, R), s."""
        return self.remaining.by_run(level_of(float(self.indicator.progress(done))))

    @cached_property
    def table(self) -> F8:
        """What is left by level of progress and allocation, s."""
        return self.remaining.quantile(self.quantile, self.max_tokens)


@dataclass(frozen=True)
class Effort:
    """How much is simulated for a model."""

    runs: int = 100  # r, how many copies run with each allocation
    allocations: int = 20  # how many allocations are simulated


def simulated_model(
    profile: Profile, name: str, quantile: float, max_tokens: int, effort: Effort, keep: bool = True
) -> Simulated:
    """Return the model by simulation, which is made once: in this process, and for all if kept."""
    key = (profile.digest, name, max_tokens, effort)
    if key not in _MADE:
        made_from = disk_cache.digest(
            profile.digest, name, max_tokens, effort.runs, effort.allocations
        )

        def make(_: int = 0) -> disk_cache.Arrays:
            return _simulated(profile, name, max_tokens, effort)

        found = disk_cache.get_or_compute(__name__, [made_from], make)[0] if keep else make()
        chosen = indicator(name, profile, (found["begin"], found["end"]))
        left = Remaining(found["tokens"], found["left_s"])
        _MADE[key] = (chosen, left, float(found["shortest_s"]))
        if len(_MADE) > _KEPT:
            _MADE.popitem(last=False)
    _MADE.move_to_end(key)
    chosen, left, shortest_s = _MADE[key]
    return Simulated(profile, chosen, left, quantile, max_tokens, shortest_s)


def _simulated(profile: Profile, name: str, max_tokens: int, effort: Effort) -> disk_cache.Arrays:
    copies = resample(profile, effort.runs)
    start_s, finish_s = copies.run(copies.duration_s.shape[1])
    begin, end = _typical(copies, start_s, finish_s)
    chosen = indicator(name, profile, (begin, end))
    left = remaining_of(copies, chosen, allocations(max_tokens, effort.allocations))
    shortest_s = np.array(finish_s.max(axis=1).min())
    return {
        "begin": begin, "end": end, "tokens": left.tokens, "left_s": left.left_s,
        "shortest_s": shortest_s,
    }  # fmt: skip


def predict_progress(
    profile: Profile, done: F8, tokens: I8, quantile: float, max_tokens: int, effort: Effort
) -> dict[str, tuple[F8, F8]]:
    """Return, by indicator, the progress of a job and what is left of it, s, at N instants.

    The fractions `done` (N, S) of finished tasks and the allocation `tokens` (N,) are those of the
    instants.
    """
    held = np.clip(tokens, 1, max_tokens) - 1
    by_indicator = {}
    for name in NAMES:
        model = simulated_model(profile, name, quantile, max_tokens, effort)
        progress = model.indicator.progress(done)
        level = np.array([level_of(float(p)) for p in progress], dtype=np.int64)
        by_indicator[name] = (progress, model.table[level, held])
    return by_indicator


def serial_s(profile: Profile, done: F8) -> float:
    """Return S_t: the longest of (1 - f_s) l_s + L_s over the unfinished stages, s; 0 if none."""
    left = np.where(done < 1.0, (1.0 - done) * profile.longest_s + profile.after_s, 0.0)
    return float(left.max())


def parallel_s(profile: Profile, done: F8) -> float:
    """Return P_t = Σ (1 - f_s) T_s, s: as printed, the work on the critical path included."""
    return float(((1.0 - done) * profile.work_s).sum())


def amdahl_s(profile: Profile, done: F8, max_tokens: int) -> F8:
    """Return what is left by Amdahl's law, S_t + P_t / a, for a of 1 to A tokens: (A,), s."""
    tokens = np.arange(1, max_tokens + 1)
    return np.asarray(serial_s(profile, done) + parallel_s(profile, done) / tokens)


def _typical(copies: Copies, start_s: F8, finish_s: F8) -> tuple[F8, F8]:
    """Return the mean over runs of when each stage begins and ends, over the run's duration."""
    first = copies.profile.shape.first_task[:-1]
    whole = np.maximum(finish_s.max(axis=1, keepdims=True), 1e-300)
    begin = np.minimum.reduceat(start_s, first, axis=1) / whole
    end = np.maximum.reduceat(finish_s, first, axis=1) / whole
    return begin.mean(axis=0), end.mean(axis=0)


_KEPT: Final = 64
_MADE: OrderedDict[tuple[str, str, int, Effort], tuple[Indicator, Remaining, float]] = OrderedDict()
"""What was simulated in this process, the last used last: it depends on nothing but its key."""
