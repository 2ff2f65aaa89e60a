"""Matching of jobs to kinds of machines and positions for the least mean completion time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from policies.base import FitName, Policy
from policies.baselines.kinds import Kinds, lengths
from policies.baselines.matching import matched, parts_taken
from policies.baselines.rounds import NONE, OVER, Active
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8
from sim.base.parameters import Count
from sim.engine.plan import Batch, Event, Plan, World


@dataclass
class Matched(Active):
    """Active jobs, with their run times at speed 1, s."""

    whole_s: F8 = field(default_factory=lambda: np.zeros(0))


@register("allox")
@dataclass(frozen=True)
class Allox(Policy):
    """Jobs are matched to workers and to positions from the end, for the least total of ends.

    AlloX (Le et al., *AlloX: compute allocation in hybrid clusters*, EuroSys 2020): the p-th job
    from the end on a worker delays itself and p - 1 others, so it costs p times its run time there;
    the matching of least cost is the best schedule. It is made anew when a job comes or goes, and
    the first job of each free worker starts. What runs goes on. Here a busy worker is free at its
    job's end; a job of several workers has its run time times their number, and one without room on
    any kind starts on all. The paper's progress for users who fall behind is left out.

    Attributes
    ----------
    window : int
        Waiting jobs that are matched at once, the first by submission.
    """

    fit: FitName = "skip"
    window: Count = 128

    events: ClassVar[Event] = Event.JOB_ARRIVED | OVER
    conserves_work: ClassVar[bool] = False

    @property
    def knows(self) -> Knows:
        """Know the durations of jobs."""
        return Knows(durations="true")

    def prepare(self, world: World, plan: Plan) -> Matched:
        """Let no job run before it is matched."""
        plan.set_jobs(runs_on=0)
        none = np.full(len(world.columns.job_submit), NONE, np.int64)
        kinds = Kinds.before(world, self.fit_resources)
        return Matched(kinds, none, whole_s=lengths(world.columns))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Match the waiting jobs anew; those without room on any kind start on all."""
        assert isinstance(memory, Matched)
        memory.follow(batch)
        rows, kinds = np.array(memory.rows, np.int64), memory.kinds
        has_started = world.view["started"][rows] > 0
        waiting, runs = rows[~has_started][: self.window], rows[has_started]
        if len(waiting) == 0:
            return
        own, by_kind = memory.option[runs], kinds.options(waiting)[:, -1] == 0
        option = np.where(by_kind, NONE, len(kinds.bits) - 1)
        end_s = world.view["start"][runs] + memory.whole_s[runs] / kinds.speed[runs, own]
        if by_kind.any():
            taken = parts_taken(kinds, runs, own, end_s - batch.now)
            jobs = waiting[by_kind]
            option[by_kind] = matched(kinds, jobs, memory.whole_s[jobs], taken)
        memory.set_options(plan, waiting, option)
