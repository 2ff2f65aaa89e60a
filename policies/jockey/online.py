"""Jockey whose model is refreshed while the job runs: beyond the paper, which plans it (§5.6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.base import check_ranges
from policies.jockey.control import Job, Running, whole_tokens
from policies.jockey.model import Effort, Model, simulated_model
from policies.jockey.policy import Jockey
from policies.jockey.profile import Profile, Shape
from policies.registry import register
from sim.base.arrays import F8, I4, offsets
from sim.base.parameters import Count
from sim.engine.plan import World

LOOKS = 5
"""Periods of which progress is compared before a model may be refreshed again."""
NEAREST, FARTHEST = 0.25, 4.0
"""A rest is never taken to go more than so many times as fast, or as slow, as in training."""


@dataclass(eq=False)
class Watch:
    """What a job was predicted to do since its model was made, and what it did."""

    since_s: float  # when the model was made, s from the submission
    pace_s: float  # time that the predicted job would have taken for what the job did since, s
    left_s: F8  # what the model said was left at the last look, s
    tokens: int  # how many tokens the job had from then on
    factor: float = 1.0  # how many times as long as in training the model takes tasks to be


@register("jockey_online")
@dataclass(frozen=True)
class JockeyOnline(Jockey):
    """Jockey that simulates anew what is left of a job whose progress is not as predicted.

    At every look the time that the model gives to what the job did since the last one, with the
    tokens that it then held, adds to its pace. Once the time that went by differs from that by
    more than `tolerance` of it, over five periods at least, what is left of the job is simulated
    as a job of its own, from the present state of its stages, with tasks as many times as long.

    Ferguson et al. (EuroSys 2012, §5.6) name this as what to do where predictions err much.

    Attributes
    ----------
    tolerance : float
        How far the pace may be off, as a fraction of it.
    refresh_runs : int
        How many simulated runs of each allocation a refreshed model is made of.
    """

    tolerance: float = 0.2
    refresh_runs: Count = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, tolerance=(1e-9, np.inf))

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Refresh the models that are off, then go by the control law."""
        for job in due:
            self._look(job, now, world)
        super().allocate(memory, due, now, world)
        for job in due:
            watch = job.notes
            assert isinstance(watch, Watch)
            running = int(world.view["running"][job.row])
            # spare tokens that it holds speed it up as well
            watch.tokens = min(max(whole_tokens(job.allocation), running, 1), self.max_tokens)

    def _look(self, job: Job, now: float, world: World) -> None:
        elapsed_s = now - job.submit_s
        left_s = job.model.left_s(job.done(world))
        watch = job.notes
        if not isinstance(watch, Watch):
            job.notes = Watch(elapsed_s, 0.0, left_s, 1)
            return
        watch.pace_s += float(watch.left_s[watch.tokens - 1] - left_s[watch.tokens - 1])
        watch.left_s = left_s
        took_s = elapsed_s - watch.since_s
        off = abs(took_s - watch.pace_s) > self.tolerance * max(watch.pace_s, 0.0)
        if took_s >= LOOKS * self.period_s and off:
            slower = took_s / max(watch.pace_s, took_s / FARTHEST)
            factor = float(np.clip(watch.factor * slower, NEAREST, FARTHEST))
            job.model = self._refreshed(job, world, factor)
            left_s = job.model.left_s(job.done(world))
            job.notes = Watch(elapsed_s, 0.0, left_s, watch.tokens, factor)

    def _refreshed(self, job: Job, world: World, factor: float) -> Rest:
        left = np.array(world.view["stage_left"][job.stage0 : job.stage1], dtype=np.int32)
        profile, kept = rest_of(job.profile, left, np.full(len(left), factor))
        effort = Effort(self.refresh_runs, self.allocations)
        given = (profile, self.indicator, self.quantile, self.max_tokens, effort)
        model = simulated_model(*given, keep=False)  # of this run alone
        return Rest(model, kept, left[kept] / job.n_tasks[kept])


def rest_of(profile: Profile, left: I4, factor: F8) -> tuple[Profile, I4]:
    """Return the profile of what is left, and the stages it is made of.

    Stages that are done are left out, with the edges from them. Of two stages joined one to one
    task i of what is left of the one goes with task i of what is left of the other.
    """
    shape = profile.shape
    kept = np.flatnonzero(left > 0).astype(np.int32)
    new = np.full(len(left), -1, dtype=np.int32)
    new[kept] = np.arange(len(kept), dtype=np.int32)
    edge = (new[shape.parent] >= 0) & (new[shape.child] >= 0)
    rest = Shape(left[kept], new[shape.parent[edge]], new[shape.child[edge]], shape.kind[edge])
    width = np.diff(profile.sample0)
    stage = np.repeat(np.arange(len(left)), width)
    sample = left[stage] > 0
    part = left / shape.n_tasks
    made = dataclasses.replace(
        profile,
        shape=rest,
        sample0=offsets(width[kept]),
        run_s=(profile.run_s * factor[stage])[sample],
        init_s=(profile.init_s * factor[stage])[sample],
        n_failed=profile.n_failed[sample],
        work_s=(profile.work_s * part * factor)[kept],
        queued_s=(profile.queued_s * part * factor)[kept],
        longest_s=(profile.longest_s * factor)[kept],
        begin=profile.begin[kept],
        end=profile.end[kept],
    )
    return made, kept


@dataclass(frozen=True, eq=False)
class Rest:
    """A model of what was left of a job, that answers for the whole job."""

    model: Model  # of the rest
    kept: I4  # the stages of the rest, in the job
    part: F8  # what fraction of each was left when the model was made

    @property
    def shortest_s(self) -> float:
        """See `policies.jockey.model.Model`: of the rest."""
        return self.model.shortest_s

    def left_s(self, done: F8) -> F8:
        """See `policies.jockey.model.Model`."""
        return self.model.left_s(1.0 - (1.0 - done[self.kept]) / self.part)
