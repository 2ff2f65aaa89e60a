"""Published policies of GPU clusters, in the vocabulary that any package has.

Discretised 2D-LAS (Tiresias: Gu et al., NSDI 2019, §3) and heterogeneity-aware order and placement
(the shape of Gavel: Narayanan et al., OSDI 2020). Fragmentation gradient descent (Weng et al., ATC
2023) is `policies.placing`'s fgd. `tests/policies/test_peers.py` has examples by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies import Knows, Policy
from sim.plan import Batch, Choice, Event, Machine, Plan, Preemption, WhenPreempted, World


@dataclass(frozen=True)
class TwoDimensionalLas(Policy):
    """Least attained service, GPUs × time, in queues of falling priority; FIFO inside a queue.

    A job enters queue 0 and moves down one queue at each threshold. A job that waits stops running
    ones of lower queues, whole gangs, without loss of work. No duration is known. Tiresias also
    lets a job that has waited for long start in queue 0 again (PROMOTEKNOB), which is left out: a
    policy reads neither attained service nor when a job was stopped. Tasks of a job take the same
    number of GPUs, as the kernel counts service in task seconds.

    Attributes
    ----------
    thresholds_gpu_s : tuple of float
        Attained service at which a job leaves each queue but the last, ascending, GPU s.
    """

    fit: str = "skip"  # type: ignore[assignment]
    thresholds_gpu_s: Sequence[float] = (3600.0,)
    events = Event.SERVICE

    def prepare(self, world: World, plan: Plan) -> tuple[NDArray, NDArray]:
        """Start all jobs in queue 0; return the queue of each, and the GPUs of its tasks."""
        columns, resource = world.columns, world.columns.resources.index("gpu")
        gpus = columns.stage_demand_f[columns.job_stage0[:-1], resource]
        queue = np.zeros(len(gpus), np.int64)
        plan.preemption = Preemption()
        plan.set_jobs(when_preempted=int(WhenPreempted.SUSPEND))
        self._move(np.arange(len(gpus)), queue, gpus, plan)
        return queue, gpus

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Move jobs that have crossed their threshold down one queue."""
        queue, gpus = memory  # type: ignore[misc]
        jobs = batch.rows(Event.SERVICE)
        queue[jobs] += 1
        self._move(jobs, queue, gpus, plan)

    def _move(self, jobs: NDArray, queue: NDArray, gpus: NDArray, plan: Plan) -> None:
        # the kernel counts task seconds: of a job's tasks, each of the same number of GPUs
        limit = np.array([*self.thresholds_gpu_s, np.inf])[queue[jobs]] / gpus[jobs]
        level = -queue[jobs].astype(np.float64)
        key = queue[jobs] * len(queue) + jobs
        plan.set_jobs(jobs, key=key, service_at=limit, preempt_level=level, preempts_below=level)


@dataclass(frozen=True)
class SensitiveFirst(Policy):
    """The jobs that lose most on slow machines first, each on the fastest that has room.

    A greedy assignment for the largest sum of normalised throughputs, which Gavel finds by a linear
    program, and realises in rounds (`policies.baselines.max_min`). Here a job keeps its machines.

    Attributes
    ----------
    by_speed : bool
        False: first come, first served, and placement alone looks at speeds.
    """

    fit: str = "skip"  # type: ignore[assignment]
    by_speed: bool = True
    knows = Knows()

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its least speed over its greatest."""
        plan.choice = Choice(Machine.FASTEST)
        if self.by_speed:
            speed = world.columns.stage_speed[world.columns.job_stage0[:-1]]
            speed = np.column_stack([speed, np.ones(len(speed))])  # of classes without a column
            plan.set_jobs(key=speed.min(axis=1) / speed.max(axis=1))
