"""Gittins index of the service that jobs have had, in two dimensions, GPUs and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from policies.base import FitName, Policy
from policies.baselines.served import Indexed, Served
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I8
from sim.base.parameters import Positive
from sim.engine.plan import Batch, Event, Plan, Preemption, WhenPreempted, World


@register("gittins")
@dataclass(frozen=True)
class Gittins(Policy):
    """Jobs by the chance to end within the next quantum of GPUs × time, over what it would take.

    2D-Gittins of Tiresias (Gu et al., *Tiresias: a GPU cluster manager for distributed deep
    learning*, NSDI 2019, §3; ``gittins`` in run_sim.py of its repository): of the services S of
    jobs that are longer than the service a that a job has had, P(S - a ≤ Δ) / E[min(S - a, Δ)],
    where the repository's code adds S in place of S - a. Taken anew after each quantum Δ; the
    greatest goes first, and a gang that waits, or a job of one task, stops such ones of a lesser
    index, without loss of work. Beyond all S it is 0. Service and equal ones are as in `tiresias`.

    Attributes
    ----------
    quantum_gpu_s : float
        Δ, GPU s.
    distribution : {"ended", "true"}
        Jobs whose services are known: those that have ended (up to a sixteenth of them later), or
        all of the workload.
    """

    fit: FitName = "skip"
    quantum_gpu_s: Positive = 3250.0
    distribution: Literal["ended", "true"] = "ended"

    events: ClassVar[Event] = Event.SERVICE | Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED

    @property
    def knows(self) -> Knows:
        """The distribution of true durations, or nothing."""
        return Knows(durations="true" if self.distribution == "true" else "nothing")

    def prepare(self, world: World, plan: Plan) -> Indexed:
        """Rank jobs by the services that are known before the run."""
        plan.preemption = Preemption()
        plan.set_jobs(when_preempted=int(WhenPreempted.SUSPEND))
        memory = Indexed(**vars(Served.before(world)))
        if self.distribution == "true":
            memory.learn(world.columns.job_work * memory.gpus, self.quantum_gpu_s)
            plan.events = Event.SERVICE
        self._rank(np.arange(len(memory.gpus)), memory.gpus * np.nan, memory, plan)
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Rank jobs that come or have had a quantum; all that are there if more is known."""
        assert isinstance(memory, Indexed)
        memory.queue[batch.rows(Event.SERVICE)] += 1
        memory.follow(batch)
        ended = batch.rows(Event.JOB_DONE)
        if memory.learn(world.view["done_work"][ended] * memory.gpus[ended], self.quantum_gpu_s):
            jobs = np.array(memory.rows, np.int64)
        else:
            moved = [batch.rows(kind) for kind in (Event.SERVICE, Event.JOB_ARRIVED)]
            jobs = np.unique(np.concatenate(moved)).astype(np.int64)
        self._rank(jobs, world.view["start"][jobs], memory, plan)

    def _rank(self, jobs: I8, start_s: F8, memory: Indexed, plan: Plan) -> None:
        """Set what follows from the quanta that some jobs have had, and from their first starts."""
        n_had = memory.queue[jobs]
        rank = memory.ranks[np.minimum(n_had, len(memory.ranks) - 1)]
        until_gpu_s = self.quantum_gpu_s * (n_had + 1).astype(np.float64)
        memory.place(plan, jobs, rank, start_s, until_gpu_s)
