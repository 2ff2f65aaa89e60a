"""The six progress indicators (§4.2, §5.4): the state of a job as one number from 0 to 1.

Each is a function of f_s, the fraction of finished tasks of stage s, and of a profile. They come in
two forms: a weighted sum of the f_s, or the minimum over unfinished stages of a line in f_s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np

from policies.estimates.profile import Profile
from sim.base import maths
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError, unknown

Name = Literal["totalworkWithQ", "totalwork", "vertexfrac", "cp", "minstage", "minstage-inf"]
NAMES: Final = ("totalworkWithQ", "totalwork", "vertexfrac", "cp", "minstage", "minstage-inf")

_TOLERANCE = 1e-9
"""Progress this close below a level counts as that level, because sums of weights round."""


class Indicator(Protocol):
    """Progress of a job of S stages."""

    def progress(self, done: F8) -> F8:
        """Return the progress at the fractions `done` (..., S) of finished tasks: (...)."""

    def reached(self, finish_s: F8, order: I4, n_tasks: I4, levels: F8) -> F8:
        """Return the times at which runs first reach each level of progress, ascending: (R, K), s.

        `finish_s` (R, T) are the ends of tasks and `order` (R, T) their order, by row where equal.
        """


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """Σ w_s f_s, with weights (S,) that add up to 1."""

    weights: F8

    def progress(self, done: F8) -> F8:
        """See `Indicator`."""
        return np.asarray(maths.dot(done, self.weights))

    def reached(self, finish_s: F8, order: I4, n_tasks: I4, levels: F8) -> F8:
        """See `Indicator`."""
        from policies.jockey.kernels.levels import weighted_levels  # compiled: slow to import

        weight = np.repeat(self.weights / n_tasks, n_tasks)
        times_s = np.zeros((len(finish_s), len(levels)))
        above = levels > 0
        reached_s = np.empty((len(finish_s), int(above.sum())))
        weighted_levels(finish_s, order, weight, levels[above] - _TOLERANCE, reached_s)
        times_s[:, above] = reached_s
        return times_s


@dataclass(frozen=True, eq=False)
class MinStage:
    """The minimum of low_s + f_s (high_s - low_s) over unfinished stages; 1 without any."""

    low: F8  # progress of a stage before it begins, and when it is done
    high: F8

    def progress(self, done: F8) -> F8:
        """See `Indicator`."""
        line = self.low + done * (self.high - self.low)
        minimum = np.where(done < 1.0, line, 1.0).min(axis=-1)
        return np.asarray(np.clip(minimum, 0.0, 1.0))

    def reached(self, finish_s: F8, order: I4, n_tasks: I4, levels: F8) -> F8:
        """See `Indicator`: the last stage to reach a level decides."""
        from policies.jockey.kernels.levels import stage_levels  # compiled: slow to import

        need = np.array([self._need(s, n, levels) for s, n in enumerate(n_tasks.tolist())])
        times_s = np.empty((len(finish_s), len(levels)))
        stage = np.repeat(np.arange(len(n_tasks), dtype=np.int32), n_tasks)
        stage_levels(finish_s, order, stage, need, times_s)
        return times_s

    def _need(self, s: int, n: int, levels: F8) -> I8:
        """Return the number of tasks of stage `s` that must be done for each level."""
        rise = self.high[s] - self.low[s]
        missing = levels - _TOLERANCE - self.low[s]
        if rise <= 0:
            return np.where(missing > 0, n, 0)
        need: I8 = np.clip(np.ceil(missing / rise * n), 0, n).astype(np.int64)
        return need


def indicator(name: str, profile: Profile, unlimited: tuple[F8, F8] | None = None) -> Indicator:
    """Build a progress indicator."""
    if name not in NAMES:
        raise InputError(unknown("progress indicator", name, NAMES))
    if name == "cp":
        whole = max(profile.critical_path_s, 1e-300)
        after = profile.after_s / whole
        return MinStage(1.0 - after - profile.longest_s / whole, 1.0 - after)
    if name == "minstage":
        return MinStage(profile.begin, profile.end)
    if name == "minstage-inf":
        assert unlimited is not None
        return MinStage(*unlimited)
    n_tasks = profile.shape.n_tasks.astype(np.float64)
    weights = {
        "totalworkWithQ": profile.work_s + profile.queued_s,
        "totalwork": profile.work_s,
        "vertexfrac": n_tasks,
    }[name]
    if weights.sum() <= 0:  # no task took any time
        weights = n_tasks
    return WeightedSum(weights / weights.sum())
