"""Least attained service in two dimensions, GPUs and time, in discrete queues with preemption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.base import FitName, Policy
from policies.baselines.served import Served
from policies.registry import register
from sim.base.arrays import F8, I4, I8
from sim.base.parameters import NotNegative, Positive
from sim.engine.plan import Batch, Event, Plan, Preemption, WhenPreempted, World


@register("tiresias")
@dataclass(frozen=True)
class Tiresias(Policy):
    """Jobs in queues of falling priority by GPUs × time that they have had; FIFO inside a queue.

    Discretized 2D-LAS of Tiresias (Gu et al., *Tiresias: a GPU cluster manager for distributed deep
    learning*, NSDI 2019, §3; run_sim.py of its repository): a job begins in the first queue and
    moves down one at each threshold. A gang that waits, or a job of one task, stops such ones of
    lower queues, without loss of work; tasks of other jobs end by themselves. Inside a queue go
    those that have run before, by first start, then by submission. No duration is known. Service is
    that of tasks × the most GPUs of any; of tasks without GPUs. `gittins` orders by indices.

    Attributes
    ----------
    thresholds_gpu_s : tuple of float
        Service at which a job leaves each queue but the last, ascending, GPU s.
    promote_knob : float
        A job that has waited since its last promotion, stopped, for so many times as long as it has
        run since then goes to the first queue, as if it had had nothing (PROMOTEKNOB); 0 for never.
    """

    fit: FitName = "skip"
    thresholds_gpu_s: Sequence[Positive] = (3250.0,)
    promote_knob: NotNegative = 0.0

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Thresholds; for promotions what starts and stops jobs, too."""
        if not self.promote_knob:
            return Event.SERVICE
        over = Event.JOB_DONE | Event.JOB_FAILED
        return Event.SERVICE | Event.JOB_ARRIVED | over | Event.FAULT | Event.TIMER

    def prepare(self, world: World, plan: Plan) -> Served:
        """Begin with all jobs in the first queue."""
        plan.preemption = Preemption()
        plan.set_jobs(when_preempted=int(WhenPreempted.SUSPEND))
        memory = Served.before(world)
        self._move(np.arange(len(memory.gpus)), memory.gpus * np.nan, memory, plan)
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Move jobs down that have crossed their threshold, and up that have waited for long."""
        assert isinstance(memory, Served)
        moved = batch.rows(Event.SERVICE)
        memory.queue[moved] += 1
        if self.promote_knob:
            up, plan.timer_s = memory.promote(batch, world, self.promote_knob)
            moved = np.append(moved, up)
        self._move(moved, world.view["start"][moved], memory, plan)

    def _move(self, jobs: I4 | I8, start_s: F8, memory: Served, plan: Plan) -> None:
        """Set what follows from the queues of some jobs, and from their first starts."""
        queue = memory.queue[jobs]
        until_gpu_s = np.array([*self.thresholds_gpu_s, np.inf])[queue]
        memory.place(plan, jobs, queue, start_s, until_gpu_s)
