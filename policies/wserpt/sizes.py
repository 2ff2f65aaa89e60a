"""Sizes of jobs: expected task durations by stage, from history, pilots, the run, or the truth."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from policies.estimates.by_duration import SOURCES
from policies.estimates.durations import Declared, Durations, Recorded
from policies.estimates.learnt import learn_durations
from policies.estimates.posterior import Posterior
from policies.estimates.priors import Priors
from policies.estimates.stage_profiles import StageProfiles
from policies.knows import Source
from policies.slearn.pilots import n_pilots
from sim.base.arrays import I4
from sim.engine.plan import Batch, Event, Plan, World

SizesName = Literal["both", "history", "pilots", "profiles", "run", "recorded", "declared", "true"]


class Sizes(Protocol):
    """Keeper of the plan's expected task durations."""

    def refresh(self, batch: Batch, plan: Plan) -> I4:
        """Update the expected durations; return the jobs that changed."""

    def pilots(self, job: int) -> int:
        """Return the number of tasks that a job starts alone, to learn its size; 0 for none."""


def source(name: SizesName) -> Source:
    """Return the declaration that follows from where sizes come from."""
    return SOURCES[name] if name in ("true", "declared") else "learnt"


def make_sizes(
    name: SizesName, world: World, plan: Plan, first_guess_s: float, refresh_s: float
) -> Sizes:
    """Return the sizes of one run, and set those known before it."""
    columns = world.columns
    if name == "true":
        return Known()
    if name in ("declared", "recorded"):
        known: Durations = Declared(columns) if name == "declared" else Recorded(columns)
        expected_s = known.expect(np.arange(len(columns.stage_job)), 0.0)
        plan.set_stages(expected_s=np.where(np.isnan(expected_s), first_guess_s, expected_s))
        return Known()
    if name in ("profiles", "run"):
        profiles = StageProfiles(columns, first_guess_s, ad_hoc="user", recorded=name == "profiles")
        learn_durations(profiles, plan, 5.0, refresh_s)
        return Known()
    priors = None if name == "pilots" else Priors(columns.features, columns)
    posterior = Posterior(world, plan, priors, first_guess_s)
    return Learnt(world, posterior, samples=name != "history")


class Known:
    """Sizes that do not change, or that the run learns: nothing to do."""

    def refresh(self, batch: Batch, plan: Plan) -> I4:
        """Return the jobs that have arrived."""
        return batch.rows(Event.JOB_ARRIVED)

    def pilots(self, job: int) -> int:
        """Need none."""
        return 0


UNCERTAIN = 0.16440195389316542
"""Variance of a prior's logarithm above which pilots run: log(1.5)², a typical error of half."""

LEAST_WIDTH = 4
"""Tasks of the narrowest job that has pilots: one of fewer costs more time than it saves."""

PERCENT = 3.0
"""Pilots as a percentage of a stage's tasks: SLearn's first ratio (NSDI 2022, §5.1.2)."""


class Learnt:
    """Priors from similar runs, refined by finished tasks; pilots where they are uncertain.

    A job has pilots if its first stage is wide and history does not know it.
    """

    def __init__(self, world: World, posterior: Posterior, *, samples: bool) -> None:
        columns = world.columns
        self._posterior, self._samples = posterior, samples
        has_parents = (columns.stage_n_barrier + columns.stage_n_o2o) > 0
        rows = np.where(has_parents, len(has_parents), np.arange(len(has_parents)))
        self._first: list[int] = np.minimum.reduceat(rows, columns.job_stage0[:-1]).tolist()
        self._n_tasks: list[int] = columns.stage_n_tasks.tolist()
        self._gang: list[int] = columns.job_min_tasks.tolist()

    def refresh(self, batch: Batch, plan: Plan) -> I4:
        """See `Sizes`."""
        return self._posterior.refresh(batch, plan)

    def pilots(self, job: int) -> int:
        """See `Sizes`."""
        first = self._first[job]
        width = self._n_tasks[first]
        if not self._samples or width < LEAST_WIDTH or self._gang[job] > 0:
            return 0
        if self._posterior.variance[first] <= UNCERTAIN:
            return 0
        return n_pilots(width, PERCENT)
