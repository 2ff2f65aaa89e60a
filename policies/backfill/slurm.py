"""Slurm's scheduler: a main loop, and a backfill thread that plans all waiting jobs anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from policies.backfill.cycles import Cycles, cycle_options
from policies.backfill.estimates import expect_runs
from policies.estimates.by_duration import SOURCES
from policies.knows import Knows
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8, I4
from sim.base.errors import InputError
from sim.base.parameters import Between, NotNegative
from sim.engine.plan import Order, Plan, Queues, Replan, World

N_FACTORS = 1024
"""Drawn lengths of cycles, which are used in turn."""
_Count = Annotated[int, Between(0)]
_Seconds = Annotated[int, Between(1)]

CLOCK_S = 3600.0
"""Range of the clock at the begin: a multiple of all resolutions and windows that are in use, s."""


@register("slurm")
@dataclass(frozen=True)
class Slurm(Cycles):
    """Slurm's scheduler, modelled on version 22.05 (SchedMD, 2022); `fit` is ignored.

    Jobs start at its cycles, not at events. The main loop polls each second and starts jobs in
    order until one does not fit. The backfill thread plans all waiting jobs anew, in order: each
    gets nodes as early as run limits and earlier reservations allow, starts if that is now, and
    else reserves those nodes whole. A node is a machine, or a slot of a pool. Expected ends are
    taken together in windows, the later the coarser. Cycles begin at a phase that is drawn from the
    seed. Names in parentheses are Slurm's (`slurm.conf`, SchedulerParameters); the defaults are
    Slurm's as well.

    Nodes are compared by the tasks of a job that fit them. For one that asks for nodes
    (``one_per_node``) they are compared by their free CPUs, if it takes CPUs and memory alone: with
    GPUs Slurm looks at no more CPUs of a node than it takes there, so that all are equal.

    A job of several partitions is one entry of the queue, in Slurm one in each. Passes of the main
    loop take no time (max_sched_time).

    Attributes
    ----------
    backfill : bool
        False for the main loop alone (SchedulerType: sched/builtin, not sched/backfill).
    interval_s : float
        Time from the end of a cycle of the backfill thread to the next, s (bf_interval). It polls
        each second instead while nothing has changed since its last cycle.
    cycle_s, job_cycle_s : float
        Mean time that such a cycle takes, and more for each job that waits, s: none of Slurm's
        options. Each cycle's is drawn, exponentially. Some 0.0005 and 0.0002 s were measured.
    longest_cycle_s : float
        Time of the longest such cycle, s, of which backtests one step at a time take account; 0 if
        it is unknown.
    resolution_s : int
        Reservations begin and end at multiples of this, rounded down, s (bf_resolution).
    window_s : int
        Jobs that would start later than this get no reservation, s (bf_window, there in minutes).
    depth : int
        Number of jobs that a cycle of the backfill thread tries (bf_max_job_test), and steps of its
        table of reservations (bf_node_space_size).
    reserve : int
        Number of jobs of each partition that get a reservation; 0 for all
        (bf_job_part_count_reserve). Others start only if they can now.
    linear_s : int
        Growth of the window in which expected ends are taken together, s (bf_window_linear); 0 for
        30 s that double.
    main_depth : int
        Number of jobs that the main loop tries after an event (default_queue_depth).
    main_interval_s : int
        Time between two passes of the main loop over all jobs, s (sched_interval).
    main_delay_s : int
        Least time between two passes after events, s (batch_sched_delay).
    completing_s : float
        Time after a job's end in which nothing starts on its nodes, s: none of Slurm's options, but
        what its nodes take; some 0.02 s for one node and 0.1 s for 64 on one host were measured,
        an epilog takes longer.
    node_completing_s : float
        Further such time for each task of the job, s: its nodes report one after another.
    requeue_s : float
        Time for which a job that was stopped and requeued can't start again, s: the lifetime of
        its credentials (AuthInfo: cred_expire) and a second.
    clock_s : float or None
        Time of the scheduler's clock when the workload begins, s, of which the begins of
        reservations and windows are multiples; drawn from the seed by default.
    order : {"fcfs", "priority"}
        Order of the jobs: first come, first served (PriorityType: priority/basic), or the plan's
        keys, for a policy that sets these.
    knowledge : {"declared", "true"}
        Run times by which jobs are planned: their limits (a year without one), or the truth.
    """

    backfill: bool = True
    interval_s: Annotated[float, Between(1)] = 30.0
    cycle_s: NotNegative = 0.01
    job_cycle_s: NotNegative = 0.0
    longest_cycle_s: NotNegative = 0.0
    resolution_s: _Seconds = 60
    window_s: _Seconds = 86_400
    depth: Annotated[int, Between(2)] = 500
    reserve: _Count = 0
    linear_s: _Count = 0
    main_depth: _Count = 100
    main_interval_s: _Seconds = 60
    main_delay_s: _Count = 3
    completing_s: NotNegative = 0.1
    node_completing_s: NotNegative = 0.0
    requeue_s: NotNegative = 121.0
    clock_s: NotNegative | None = None
    order: Literal["fcfs", "priority"] = "fcfs"
    knowledge: Literal["declared", "true"] = "declared"

    conserves_work: ClassVar[bool] = False
    has_own_lag: ClassVar[bool] = True
    rigid_jobs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a window shorter than the resolution."""
        if self.window_s < self.resolution_s:
            raise InputError(
                f"policy slurm: window_s must be at least resolution_s, {self.resolution_s}, not "
                f"{self.window_s}"
            )

    @property
    def knows(self) -> Knows:
        """Run times, from the source that `knowledge` names."""
        return Knows(durations=SOURCES[self.knowledge])

    def prepare(self, world: World, plan: Plan) -> object:
        """Set the limit of each job, the options, and the phases of this seed."""
        columns = world.columns
        plan.queues = Queues.make(1, order=Order.KEY if self.order == "priority" else Order.FIFO)
        expect_runs(columns, plan, self.knowledge)
        n_tasks = columns.job_n_tasks.astype(np.float64)
        completing_s: F8 = self.completing_s + self.node_completing_s * n_tasks
        phase = world.rng("phases of Slurm's cycles")
        drawn_s = phase.uniform(0.0, CLOCK_S)
        lengths = world.rng("lengths of Slurm's cycles")
        factors: F8 = -maths.log1p(-lengths.random(N_FACTORS))
        options = cycle_options(self, columns, world.cluster)
        options["max_s"] = self.max_s or self.interval_s
        options["fits_by"] = _resource_by_node(world)
        plan.replan = Replan(
            **options,
            plans=self.backfill,
            interval_s=self.interval_s,
            cycle_s=self.cycle_s,
            job_cycle_s=self.job_cycle_s,
            cycle_factors=factors,
            resolution_s=self.resolution_s,
            window_s=self.window_s,
            linear_s=self.linear_s,
            depth=self.depth,
            reserved=self.reserve,
            main_depth=self.main_depth,
            main_interval_s=self.main_interval_s,
            main_delay_s=self.main_delay_s,
            completing_s=completing_s,
            requeue_s=self.requeue_s,
            clock_s=drawn_s if self.clock_s is None else self.clock_s % CLOCK_S,
            poll_phase_s=phase.uniform(),
            main_phase=math.floor(phase.uniform(0.0, self.main_interval_s)),
            plan_phase_s=phase.uniform(0.0, self.interval_s),
        )
        return None


def _resource_by_node(world: World) -> I4 | None:
    """Return the resource by which nodes are compared for each job, `Replan.fits_by`."""
    columns, known = world.columns, world.cluster.resources
    if "cpu" not in known:
        return None
    further = [k for k, name in enumerate(columns.resources) if name not in ("cpu", "mem")]
    stage_takes = (columns.stage_demand[:, further] > 0).any(axis=1)
    takes = np.logical_or.reduceat(stage_takes, columns.job_stage0[:-1])
    by_node = columns.job_one_per_node & ~takes
    return np.where(by_node, known.index("cpu"), -1).astype(np.int32)
