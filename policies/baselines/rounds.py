"""Rounds: at each, jobs are chosen to run on kinds of machines until the next."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from policies.base import FitName, Policy
from policies.baselines.kinds import SLACK, Kinds
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Positive
from sim.engine.plan import Batch, Event, Plan, Preemption, Right, WhenPreempted, World

NONE = -1
OVER = Event.JOB_DONE | Event.JOB_FAILED


@dataclass
class Active:
    """Jobs that are submitted and not over, and the option of `Kinds` that each has.

    Attributes
    ----------
    rows : list of int
        Rows of jobs, in the order of submission.
    option : (J,) int64
        The option by which each job runs or waits to run; NONE for none.
    """

    kinds: Kinds
    option: I8
    rows: list[int] = field(default_factory=list)

    def follow(self, batch: Batch) -> None:
        """Take the jobs that came and went."""
        over = {*batch.rows(Event.JOB_DONE).tolist(), *batch.rows(Event.JOB_FAILED).tolist()}
        if over:
            self.rows = [j for j in self.rows if j not in over]
        self.rows += [j for j in batch.rows(Event.JOB_ARRIVED).tolist() if j not in over]

    def set_options(self, plan: Plan, rows: I8, option: I8) -> None:
        """Let jobs run by an option alone, in the order of `rows`, or not at all."""
        bits = np.where(option == NONE, 0, self.kinds.bits[option])
        changed = self.option[rows] != option
        self.option[rows] = option
        plan.set_jobs(rows, key=np.arange(len(rows), dtype=np.float64))
        plan.set_jobs(rows[changed], runs_on=bits[changed])


@dataclass
class Round(Active):
    """Active jobs, with the time that each has run by each option.

    Attributes
    ----------
    since : float
        Time up to which `ran_s` counts, s.
    ran_s : (J, C) float64
        Time by option, s.
    """

    since: float = 0.0
    ran_s: F8 = field(default_factory=lambda: np.zeros((0, 0)))

    def run_until(self, now: float, world: World) -> tuple[I8, I8]:
        """Count the time up to `now`; return the jobs that run, and their options."""
        rows = np.array(self.rows, np.int64)
        runs = rows[(world.view["running"][rows] > 0) & (self.option[rows] != NONE)]
        self.ran_s[runs, self.option[runs]] += now - self.since
        self.since = now
        return runs, self.option[runs]


@dataclass(frozen=True)
class Rounds(Policy, ABC):
    """Base of policies by rounds, as Gavel has them (Narayanan et al., OSDI 2020, §5).

    At each round every job gets one kind of machines, or none, and keeps it until the next. A job
    that keeps its kind goes on; one that loses it stops. Where no job is there, the next round
    begins with the next job; room that becomes free within a round waits for its end. Jobs that no
    kind has room for run on all kinds together. Room is counted by kind: what does not fit its
    machines waits.

    Attributes
    ----------
    round_s : float
        Length of a round, s.
    when : {"suspend", "requeue"}
        What becomes of the work of a job that stops: none is lost, or what its own checkpoints
        (``checkpoint_s``) did not save.
    """

    fit: FitName = "skip"
    round_s: Positive = 360.0
    when: Literal["suspend", "requeue"] = "suspend"

    events: ClassVar[Event] = Event.JOB_ARRIVED | OVER | Event.TIMER
    conserves_work: ClassVar[bool] = False

    def prepare(self, world: World, plan: Plan) -> Round:
        """Let no job run before a round begins."""
        if self.preemption is not None:
            raise InputError(
                f"policy {self.name}: jobs stop between rounds, and policy.preemption says another "
                "way; leave it out"
            )
        plan.preemption = Preemption(Right.RUNS_ON)
        when = WhenPreempted.SUSPEND if self.when == "suspend" else WhenPreempted.REQUEUE
        plan.set_jobs(runs_on=0, when_preempted=int(when))
        kinds = Kinds.before(world, self.fit_resources)
        n_jobs = len(world.columns.job_submit)
        none = np.full(n_jobs, NONE, np.int64)
        return Round(kinds, none, ran_s=np.zeros((n_jobs, len(kinds.bits))))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Begin a round, if it is time."""
        assert isinstance(memory, Round)
        memory.follow(batch)
        if not memory.rows:
            plan.timer_s = math.inf
            return
        if plan.timer_s == math.inf:  # a tick has set it so, too
            memory.run_until(batch.now, world)
            rows = np.array(memory.rows, np.int64)
            order, option = self.choose(memory, rows, batch.now, world)
            memory.set_options(plan, order, option)
            plan.timer_s = batch.now + self.round_s

    @abstractmethod
    def choose(self, memory: Round, rows: I8, now: float, world: World) -> tuple[I8, I8]:
        """Return the active jobs `rows` in the order of their starts, and the option of each."""


def take(kinds: Kinds, pairs: list[tuple[int, int]]) -> dict[int, int]:
    """Return the options of jobs: each pair of job and option in turn, if there is room for it."""
    left = [1.0] * kinds.takes.shape[1]
    takes = [np.flatnonzero(row).tolist() for row in kinds.takes]
    chosen: dict[int, int] = {}
    for j, c in pairs:
        share = float(kinds.share[j, c])
        if j in chosen or any(left[k] + SLACK < share for k in takes[c]):
            continue
        chosen[j] = c
        for k in takes[c]:
            left[k] -= share
    return chosen


def in_order(rows: I8, chosen: dict[int, int]) -> tuple[I8, I8]:
    """Return jobs, those with an option first, and their options."""
    order = [*chosen, *(j for j in rows.tolist() if j not in chosen)]
    return np.array(order, np.int64), np.array([chosen.get(j, NONE) for j in order], np.int64)
