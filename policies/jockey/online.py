"""Jockey with models that are refreshed while jobs run: planned in the paper (§5.6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.base import check_ranges
from policies.estimates.profile import Profile, Shape
from policies.jockey.control import Job, Running, whole_tokens
from policies.jockey.model import Effort, Model, simulated_model
from policies.jockey.policy import Jockey
from policies.registry import register
from sim.base.arrays import F8, I4, offsets
from sim.base.parameters import Count
from sim.engine.plan import World

MIN_PERIODS = 5
"""Minimum number of periods of progress before a model may be refreshed again."""
MIN_FACTOR, MAX_FACTOR = 0.25, 4.0
"""Range of the factor on task durations relative to training, in a refreshed model."""


@dataclass(eq=False)
class PaceCheck:
    """Comparison of a job's predicted and actual progress since its model was made."""

    since_s: float  # time of the model, s from the submission
    pace_s: float  # predicted time for the job's progress since then, s
    left_s: F8  # predicted time left at the last check, s
    tokens: int  # the job's tokens since the last check
    factor: float = 1.0  # of task durations in the model, relative to training


@register("jockey_online")
@dataclass(frozen=True)
class JockeyOnline(Jockey):
    """Jockey that simulates the rest of a job again once its progress differs from the prediction.

    Each period, the model's predicted time for the job's progress since the last period, with the
    tokens that it had, is added up. Once the elapsed time differs from that sum by more than
    `tolerance` of it, over at least five periods, the rest of the job is simulated as a job of its
    own, from the present state of its stages, with task durations scaled accordingly.

    Ferguson et al. (EuroSys 2012, §5.6) mention this as the solution for large prediction errors.

    Attributes
    ----------
    tolerance : float
        Tolerated relative difference between elapsed and predicted time.
    refresh_runs : int
        Number of simulated runs for each allocation of a refreshed model.
    """

    tolerance: float = 0.2
    refresh_runs: Count = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, tolerance=(1e-9, np.inf))

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Refresh the models that are off, then apply the control law."""
        for job in due:
            self._check_pace(job, now, world)
        super().allocate(memory, due, now, world)
        for job in due:
            watch = job.notes
            assert isinstance(watch, PaceCheck)
            running = int(world.view["running"][job.row])
            # spare tokens speed the job up as well
            watch.tokens = min(max(whole_tokens(job.allocation), running, 1), self.max_tokens)

    def _check_pace(self, job: Job, now: float, world: World) -> None:
        elapsed_s = now - job.submit_s
        left_s = job.model.left_s(job.done(world))
        watch = job.notes
        if not isinstance(watch, PaceCheck):
            job.notes = PaceCheck(elapsed_s, 0.0, left_s, 1)
            return
        watch.pace_s += float(watch.left_s[watch.tokens - 1] - left_s[watch.tokens - 1])
        watch.left_s = left_s
        elapsed_since_s = elapsed_s - watch.since_s
        is_off = abs(elapsed_since_s - watch.pace_s) > self.tolerance * max(watch.pace_s, 0.0)
        if elapsed_since_s >= MIN_PERIODS * self.period_s and is_off:
            slower = elapsed_since_s / max(watch.pace_s, elapsed_since_s / MAX_FACTOR)
            factor = float(np.clip(watch.factor * slower, MIN_FACTOR, MAX_FACTOR))
            job.model = self._refresh_model(job, world, factor)
            left_s = job.model.left_s(job.done(world))
            job.notes = PaceCheck(elapsed_s, 0.0, left_s, watch.tokens, factor)

    def _refresh_model(self, job: Job, world: World, factor: float) -> RemainderModel:
        left = np.array(world.view["stage_left"][job.stage0 : job.stage1], dtype=np.int32)
        profile, stages = remainder_profile(job.profile, left, np.full(len(left), factor))
        effort = Effort(self.refresh_runs, self.allocations)
        args = (profile, self.indicator, self.quantile, self.max_tokens, effort)
        model = simulated_model(*args, keep=False)  # of this run alone
        return RemainderModel(model, stages, left[stages] / job.n_tasks[stages])


def remainder_profile(profile: Profile, left: I4, factor: F8) -> tuple[Profile, I4]:
    """Return the profile of the rest of a job, and its stages.

    Finished stages are left out, with the edges from them. Over a one-to-one edge task i of the
    rest of the parent goes with task i of the rest of the child.
    """
    shape = profile.shape
    stages = np.flatnonzero(left > 0).astype(np.int32)
    new = np.full(len(left), -1, dtype=np.int32)
    new[stages] = np.arange(len(stages), dtype=np.int32)
    edge = (new[shape.parent] >= 0) & (new[shape.child] >= 0)
    rest = Shape(
        left[stages],
        new[shape.parent[edge]],
        new[shape.child[edge]],
        shape.kind[edge],
        shape.lag_s[stages] if len(shape.lag_s) else shape.lag_s,
    )
    width = np.diff(profile.sample0)
    stage = np.repeat(np.arange(len(left)), width)
    sample = left[stage] > 0
    part = left / shape.n_tasks
    remainder = dataclasses.replace(
        profile,
        shape=rest,
        sample0=offsets(width[stages]),
        run_s=(profile.run_s * factor[stage])[sample],
        init_s=(profile.init_s * factor[stage])[sample],
        n_failed=profile.n_failed[sample],
        work_s=(profile.work_s * part * factor)[stages],
        queued_s=(profile.queued_s * part * factor)[stages],
        longest_s=(profile.longest_s * factor)[stages],
        begin=profile.begin[stages],
        end=profile.end[stages],
    )
    return remainder, stages


@dataclass(frozen=True, eq=False)
class RemainderModel:
    """A model of the rest of a job, with the interface of a model of the whole job."""

    model: Model  # of the rest
    stages: I4  # the stages of the rest, in the job
    part: F8  # fraction of each stage that was left when the model was made

    @property
    def shortest_s(self) -> float:
        """See `policies.jockey.model.Model`: of the rest."""
        return self.model.shortest_s

    def left_s(self, done: F8) -> F8:
        """See `policies.jockey.model.Model`."""
        return self.model.left_s(1.0 - (1.0 - done[self.stages]) / self.part)
