"""Orders of jobs in one queue: fifo, sjf, ljf, srpt, random, priority."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.estimates.by_duration import ByDuration
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I4, I8
from sim.engine.plan import Order, Plan, Queues, World


@register("fifo")
@dataclass(frozen=True)
class Fifo(Policy):
    """First in, first out: jobs in the order of their submission.

    The baseline that most studies quote speed-ups against, e.g. SLearn (NSDI 2022, §5.1.4).
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Order the one queue by submission."""
        plan.queues = Queues.make(1, order=Order.FIFO)


@register("sjf")
@dataclass(frozen=True)
class ShortestJobFirst(ByDuration):
    """Jobs in the order of their total size, the sum of their tasks' durations, true or expected.

    With true durations, the default, it is the clairvoyant order that SLearn (NSDI 2022, §5.1.1)
    approximates with estimates: jobs "are ordered based on their total estimated runtime, i.e.,
    mean task runtime × number of tasks".
    """

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Key each job by its size."""
        plan.set_jobs(key=world.columns.job_work)

    def order_by_estimates(self, world: World, plan: Plan, jobs: I4 | I8, work_s: F8) -> None:
        """Key each job by its expected size."""
        plan.set_jobs(jobs, key=work_s)


@register("ljf")
@dataclass(frozen=True)
class LongestJobFirst(ByDuration):
    """Longest job first, in the reverse order of total size: the mirror image of ``sjf``.

    Graham's longest processing time rule (Bounds on multiprocessing timing anomalies, 1969), job
    by job: good for the makespan, bad for the mean completion time.
    """

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Key each job by its negative size."""
        plan.set_jobs(key=-world.columns.job_work)

    def order_by_estimates(self, world: World, plan: Plan, jobs: I4 | I8, work_s: F8) -> None:
        """Key each job by its negative expected size."""
        plan.set_jobs(jobs, key=-work_s)


@register("srpt")
@dataclass(frozen=True)
class ShortestRemainingFirst(ByDuration):
    """Jobs in the order of the work of their unfinished tasks, without preemption of tasks.

    Schrage's rule (A proof of the optimality of the shortest remaining processing time
    discipline, 1968) as cluster schedulers use it: preemption at the ends of tasks. Work is true
    by default, an oracle; otherwise the expected work of the tasks that are left.
    """

    def prepare(self, world: World, plan: Plan) -> object:
        """Let the kernel keep the order, which changes with every task."""
        plan.queues = Queues.make(1, order=Order.REMAINING)
        return super().prepare(world, plan)


@register("random")
@dataclass(frozen=True)
class Random(Policy):
    """Jobs, and the stages of each job, in a random order that is drawn once from the run's seed.

    The baseline without information (DAGPS, MSR-TR-2016-19, §8.3, Table 5).
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key jobs and stages by random permutations."""
        rng = world.rng("policies.random")
        plan.set_jobs(key=rng.permutation(len(world.columns.job_submit)))
        plan.set_stages(key=rng.permutation(len(world.columns.stage_job)))


@register("priority")
@dataclass(frozen=True)
class Priority(Policy):
    """Jobs by their users' priority, highest first; equal priorities first come, first served.

    PRIO of Wing (OSDI 2020, §6): where the cluster has queues, each queue (organisation) orders
    its own jobs this way, inside its own share.
    """

    @property
    def knows(self) -> Knows:
        """Declared priorities."""
        return Knows(values="declared")

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative priority; the kernel breaks ties by row."""
        plan.set_jobs(key=-world.columns.job_priority)
