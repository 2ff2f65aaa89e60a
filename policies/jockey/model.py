"""A model of a job: the time that is left at its present state, under each allocation."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from policies.jockey import amdahl
from policies.jockey.copies import Copies, resample
from policies.jockey.indicators import Indicator, indicator
from policies.jockey.profile import Profile
from policies.jockey.remaining import Remaining, allocations, level_of, simulated
from sim.base.arrays import F8


class Model(Protocol):
    """What is predicted of a job of S stages."""

    @property
    def shortest_s(self) -> float:
        """The shortest time in which the job can be done, s."""

    def left_s(self, done: F8) -> F8:
        """Return what is left at the fractions `done` (S,), under 1 to A tokens: (A,), s."""


@dataclass(frozen=True, eq=False)
class Amdahl:
    """Serial and parallel work that is left (`policies.jockey.amdahl`)."""

    profile: Profile
    max_tokens: int

    @property
    def shortest_s(self) -> float:
        """See `Model`: the critical path."""
        return self.profile.critical_path_s

    def left_s(self, done: F8) -> F8:
        """See `Model`."""
        return amdahl.remaining_s(self.profile, done, self.max_tokens)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated runs of resampled copies (`policies.jockey.remaining`)."""

    profile: Profile  # what the copies are drawn from
    indicator: Indicator  # what progress is
    remaining: Remaining  # c(p, a)
    quantile: float  # which quantile of it is looked up
    max_tokens: int  # a
    shortest_s: float  # how long the fastest of the copies takes where tokens are unlimited, s

    def left_s(self, done: F8) -> F8:
        """See `Model`."""
        found: F8 = self.table[level_of(float(self.indicator.progress(done)))]
        return found

    def left_by_run_s(self, done: F8) -> F8:
        """Return what is left under 1 to A tokens in each simulated run: (A, R), s."""
        level = level_of(float(self.indicator.progress(done)))
        return self.remaining.by_run(level, self.max_tokens)

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
    profile: Profile, name: str, quantile: float, max_tokens: int, effort: Effort
) -> Simulated:
    """Return the model by simulation; what was simulated once in this process is not again."""
    key = (profile.digest, name, max_tokens, effort)
    if key not in _MADE:
        copies = resample(profile, effort.runs)
        start_s, finish_s = copies.run(copies.duration_s.shape[1])
        whole_s = finish_s.max(axis=1)
        chosen = indicator(name, profile, _typical(copies, start_s, finish_s))
        grid = allocations(max_tokens, effort.allocations)
        _MADE[key] = (chosen, simulated(copies, chosen, grid), float(whole_s.min()))
        if len(_MADE) > _KEPT:
            _MADE.popitem(last=False)
    _MADE.move_to_end(key)
    chosen, remaining, shortest_s = _MADE[key]
    return Simulated(profile, chosen, remaining, quantile, max_tokens, shortest_s)


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
