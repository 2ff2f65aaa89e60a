"""Models of a job, simulated or by Amdahl's law: time left under each allocation (§4.1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from policies.estimates.profile import Profile
from policies.jockey.indicators import NAMES, Indicator, indicator
from policies.jockey.job_simulator import (
    Copies,
    Remaining,
    Runs,
    allocations,
    progress_level,
    resample,
    simulate_remaining,
)
from sim.base import disk_cache
from sim.base.arrays import F8, I8


class Model(Protocol):
    """Predictor of the time left of a job of S stages."""

    @property
    def shortest_s(self) -> float:
        """The shortest time in which the job can be done, s."""

    def left_s(self, done: F8) -> F8:
        """Return the time left at the fractions `done` (S,), under 1 to A tokens: (A,), s."""


@dataclass(frozen=True, eq=False)
class Amdahl:
    """Amdahl's law: the serial work left, plus the parallel work left over the tokens."""

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

    profile: Profile  # that the copies are drawn from
    indicator: Indicator  # of progress
    remaining: Remaining  # C(p, a)
    quantile: float  # of C(p, a)
    max_tokens: int  # A
    shortest_s: float  # time of the fastest copy with unlimited tokens, s

    def left_s(self, done: F8) -> F8:
        """See `Model`."""
        left_s: F8 = self.table[self.level(done)]
        return left_s

    def level(self, done: F8) -> int:
        """Return the level of progress at the fractions `done`."""
        return progress_level(float(self.indicator.progress(done)))

    def left_by_run_s(self, done: F8) -> F8:
        """Return the time left under each simulated allocation in each run: (A, R), s."""
        return self.remaining.by_run(self.level(done))

    @cached_property
    def table(self) -> F8:
        """Time left by level of progress and allocation, s."""
        return self.remaining.quantile(self.quantile, self.max_tokens)


@dataclass(frozen=True)
class Effort:
    """Numbers of simulated runs and allocations of a model."""

    runs: int = 100  # R, copies that run with each allocation
    allocations: int = 20  # simulated allocations


def simulated_model(
    profile: Profile, name: str, quantile: float, max_tokens: int, effort: Effort, keep: bool = True
) -> Simulated:
    """Return the model by simulation, which is made once: in this process, and for all if kept."""
    key = (profile.digest, name, max_tokens, effort)
    if key not in _MODELS:
        digest = disk_cache.digest(
            profile.digest, name, max_tokens, effort.runs, effort.allocations
        )

        def simulate(_: int = 0) -> disk_cache.Arrays:
            return _simulated(profile, name, max_tokens, effort)

        arrays = disk_cache.get_or_compute(__name__, [digest], simulate)[0] if keep else simulate()
        progress_indicator = indicator(name, profile, (arrays["begin"], arrays["end"]))
        left = Remaining(arrays["tokens"], arrays["left_s"])
        _MODELS[key] = (progress_indicator, left, float(arrays["shortest_s"]))
        if len(_MODELS) > _MAX_MODELS:
            _MODELS.popitem(last=False)
    _MODELS.move_to_end(key)
    progress_indicator, left, shortest_s = _MODELS[key]
    return Simulated(profile, progress_indicator, left, quantile, max_tokens, shortest_s)


def _simulated(profile: Profile, name: str, max_tokens: int, effort: Effort) -> disk_cache.Arrays:
    copies = resample(profile, effort.runs)
    runs = copies.run(copies.duration_s.shape[1])
    begin, end = _typical(copies, runs)
    progress_indicator = indicator(name, profile, (begin, end))
    left = simulate_remaining(
        copies, progress_indicator, allocations(max_tokens, effort.allocations)
    )
    shortest_s = np.array(runs.finish_s.max(axis=1).min())
    return {
        "begin": begin, "end": end, "tokens": left.tokens, "left_s": left.left_s,
        "shortest_s": shortest_s,
    }  # fmt: skip


def predict_progress(
    profile: Profile,
    done: F8,
    tokens: I8,
    quantile: float,
    max_tokens: int,
    effort: Effort,
    names: Sequence[str] = NAMES,
) -> dict[str, tuple[F8, F8]]:
    """Return, by indicator, the progress of a job and its predicted time left, s, at N instants.

    `done` (N, S) are the fractions of finished tasks and `tokens` (N,) the allocations at these
    instants.
    """
    column = np.clip(tokens, 1, max_tokens) - 1
    by_indicator = {}
    for name in names:
        model = simulated_model(profile, name, quantile, max_tokens, effort)
        progress = model.indicator.progress(done)
        level = np.array([progress_level(float(p)) for p in progress], dtype=np.int64)
        by_indicator[name] = (progress, model.table[level, column])
    return by_indicator


def serial_s(profile: Profile, done: F8) -> float:
    """Return S_t: the longest of (1 - f_s) l_s + L_s over the unfinished stages, s; 0 if none."""
    left = np.where(done < 1.0, (1.0 - done) * profile.longest_s + profile.after_s, 0.0)
    return float(left.max())


def parallel_s(profile: Profile, done: F8) -> float:
    """Return P_t = Σ (1 - f_s) T_s, s: as printed, the work on the critical path included."""
    return float(((1.0 - done) * profile.work_s).sum())


def amdahl_s(profile: Profile, done: F8, max_tokens: int) -> F8:
    """Return the time left by Amdahl's law, S_t + P_t / a, for a of 1 to A tokens: (A,), s."""
    tokens = np.arange(1, max_tokens + 1)
    return np.asarray(serial_s(profile, done) + parallel_s(profile, done) / tokens)


def _typical(copies: Copies, runs: Runs) -> tuple[F8, F8]:
    """Return mean begins and ends of stages over runs, as fractions of a run's duration."""
    first = copies.profile.shape.first_task[:-1]
    whole = np.maximum(runs.finish_s.max(axis=1, keepdims=True), 1e-300)
    begin = np.minimum.reduceat(runs.start_s, first, axis=1) / whole
    end = np.maximum.reduceat(runs.finish_s, first, axis=1) / whole
    return begin.mean(axis=0), end.mean(axis=0)


_MAX_MODELS: Final = 64
_MODELS: OrderedDict[tuple[str, str, int, Effort], tuple[Indicator, Remaining, float]] = (
    OrderedDict()
)
"""LRU cache of simulated models in this process; a model depends on its key alone."""
