"""The online half of DAGPS (§5): many DAGs on the machines of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from policies.base import Policy, check_ranges
from policies.dagps.build_schedule import MAX_CANDIDATES, Candidates, build_schedule
from policies.dagps.dag import stage_profile
from policies.dagps.offline_order import OfflineOrder, followed_order, offline_order
from policies.registry import register
from policies.sharing import queue_each
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.parameters import Between, Count, Share
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import stage_demands
from sim.engine.plan import Batch, Event, Plan, World
from sim.engine.plan.queues import MAX_BUNDLE, Packing
from sim.workload.columns import Columns, task_homes
from sim.workload.workload import Workload


class StageProfiles:
    """The average of a stage's tasks, learnt while jobs run (DAGPS, MSR-TR-2016-19, §7.1).

    A stage is the same in every run of its template: the stage of the same place in the job. What
    it is expected to last is the mean over the tasks of the runs that have finished it; where
    there is none, over those of all stages that have finished so far; before the first of all, a
    guess. Its own finished tasks refine that, which counts as `prior_tasks` tasks of it.
    """

    def __init__(self, columns: Columns, first_guess_s: float, prior_tasks: float) -> None:
        self._stage_class = _classes(columns)
        n = int(self._stage_class.max(initial=-1)) + 1
        self._work, self._tasks = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._mean = np.full(n, np.nan)
        self._all_work = self._all_tasks = 0.0
        self._size = np.diff(columns.stage_task0)
        self._guess, self._prior = first_guess_s, prior_tasks

    def learn(self, stages: NDArray[Any], view: Mapping[str, NDArray[Any]]) -> None:
        """Add the runs of `stages`, which have finished, to what is known of their like."""
        of = self._stage_class[stages]
        work, tasks = view["stage_done_work"][stages], self._size[stages]
        for i, done_s, n in zip(of.tolist(), work.tolist(), tasks.tolist(), strict=True):
            self._work[i] += done_s  # one by one: several may be of one class
            self._tasks[i] += n
            self._all_work += done_s
            self._all_tasks += n
        self._mean[of] = self._work[of] / self._tasks[of]

    def expect(self, stages: NDArray[Any], view: Mapping[str, NDArray[Any]] | None = None) -> F8:
        """Return what a task of each of `stages` is expected to last, (n,) s."""
        of = self._stage_class[stages]
        mean = self._all_work / self._all_tasks if self._all_tasks else self._guess
        prior: F8 = self._mean[of]
        prior[np.isnan(prior)] = mean
        if view is None:
            return prior
        done = self._size[stages] - view["stage_left"][stages]
        work = prior * self._prior + view["stage_done_work"][stages]
        refined: F8 = work / (self._prior + done)
        return refined


def _classes(columns: Columns) -> I8:
    """Give stages of one template and one place in the job one number, (G,).

    Jobs without a template have no like.
    """
    n_stages = len(columns.stage_job)
    template = columns.job_template[columns.stage_job].astype(np.int64)
    unnamed = np.array([name == "" for name in columns.template_names], dtype=bool)
    alone = unnamed[template] if len(unnamed) else np.ones(n_stages, dtype=bool)
    place = np.arange(n_stages) - columns.job_stage0[columns.stage_job]
    group = np.where(alone, -1 - columns.stage_job.astype(np.int64), template)
    pairs = np.stack([group, place], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


NO_BOUND = 1e300
"""A finite bound, so that groups compete by score, which no deficit reaches."""


@register("dagps")
@dataclass(frozen=True)
class Dagps(Policy):
    """Each machine takes the tasks of greatest perfScore; no group is owed more than a bound.

    Grandl et al., *Do the hard stuff first: scheduling dependent computations in data-analytics
    clusters* (DAGPS, Graphene), MSR-TR-2016-19, §5 and Fig. 8, §7: a task's score is its place in
    the offline order (`policies.dagps.build_schedule`) of what is left of its job times how well it
    fills the machine, less what its job's remaining work counts. `sim.engine.plan.queues` defines
    it, with bundling, overbooking and deficit counters. Remaining work is the L1 norm of demands,
    as fractions of a machine, times the seconds that tasks are expected to last. Demands are known,
    as a task's container states them; durations are profiles, one a stage (§7.1, §8.2.1). With a
    `fit` other than "pack" jobs go first come, first served, and the offline order holds inside
    each.

    A job that is the only one has nothing to be weighed against: where nothing speaks against it,
    its best list is followed instead of scores (`candidates`).

    Attributes
    ----------
    m : float
        Weight of remaining work beside the other scores, averages taken out; the paper recommends
        0.2, of a range from 0.1 to 0.3 (§8.5).
    order_weight : float
        How much the place in the offline order counts against tasks of other jobs: priority is
        1 - order_weight · (1 - priScore). 1 is the paper's; with 0 the order holds inside a stage
        alone.
    priority : {"remaining", "printed"}
        Whether priScore is of what is left of the job: how many of its tasks come after this one in
        the offline order, over how many others have not started, at most 1 (the master of a job
        keeps telling its pending work and preferred order, §7, Fig. 4); or falls from 1 for the
        first task of the job to 0 for its last, once and for all (§5). That lets new jobs overtake
        those about to end (docs/decisions/0013-what-is-left.md).
    srpt : {"pending", "unfinished"}
        Whether remaining work is of tasks that have not started, as printed, or of those that run,
        too.
    rp : float
        Remote penalty: factor of a task's score on a machine that it does not prefer (§8.5).
    kappa : float
        How unfair to be, as a fraction of the cluster, inf for no bound; the paper gives no value.
    fairness : {"slots", "drf"}
        Whether groups share in tasks or in dominant shares.
    groups : {"queue", "user"}
        Between whom, by the workload's queues (the cluster's, if it has any) or its users.
    bundle : int
        Of how many of the best tasks that fit a machine the best set is taken (§7.2).
    overbook : bool
        Whether fungible resources are overbooked where that gains more than it costs.
    max_candidates : int
        How many sets of troublesome tasks the offline half tries for each part of a DAG.
    candidates : {"more", "paper"}
        Which schedules the offline half tries: the paper's alone, where no resource is overbooked;
        or also such that share what is fungible, and those of list scheduling (beyond the paper);
        then the only job of a workload follows the best list task by task, with the fungible
        resources shared if that list shares them, unless `order_weight` is below 1 or `fit` or
        `fit_resources` say how to place.
    profiles : {"history", "stage"}
        What tasks are expected to last: what earlier runs of the template did on average, refined
        by what has finished of the stage itself; or the true mean of each stage.
    refresh_s : float
        Time between refinements, s.
    first_guess_s : float
        What tasks are expected to last before any stage has finished, s.
    prior_tasks : float
        How many of its own tasks weigh as much as what earlier runs say.
    """

    fit: Literal["strict", "skip", "pack"] = "pack"
    m: Annotated[float, Between(0, 1e6)] = 0.3
    order_weight: Share = 1.0
    priority: Literal["remaining", "printed"] = "remaining"
    srpt: Literal["pending", "unfinished"] = "pending"
    rp: Share = 0.8
    kappa: float = 0.1
    fairness: Literal["slots", "drf"] = "slots"
    groups: Literal["queue", "user"] = "queue"
    bundle: Annotated[int, Between(1, MAX_BUNDLE)] = 16
    overbook: bool = True
    max_candidates: Count = MAX_CANDIDATES
    candidates: Candidates = "more"
    profiles: Literal["history", "stage"] = "history"
    refresh_s: float = 10.0
    first_guess_s: Annotated[float, Between(1e-9, 1e12)] = 30.0
    prior_tasks: Annotated[float, Between(1e-9, 1e12)] = 5.0

    events = Event.JOB_ARRIVED | Event.TIMER

    def __post_init__(self) -> None:
        check_ranges(self, kappa=(0, np.inf), refresh_s=(1e-3, np.inf))

    def prepare(self, world: World, plan: Plan) -> _Running:
        """Order the tasks offline, weigh the stages, and set up the groups."""
        columns, cluster = world.columns, world.cluster
        follows = self._follows(columns)
        if follows:
            order, plan.fit_resources = followed_order(
                columns, cluster, max_candidates=self.max_candidates, overbook=self.overbook
            )
        else:
            order = self._order(columns, cluster)
        plan.task_order = order.task_order
        rebased = self.priority == "remaining" and not follows
        plan.task_priority = tasks_after(columns, order.pri_score) if rebased else order.pri_score
        plan.set_stages(key=1 - order.stage_pri)
        plan.task_prefers = task_homes(columns, len(cluster.capacity))
        queue_each(self.groups, world, plan)
        share = stage_demands(columns, cluster) / _machine(cluster)
        dominant = np.maximum(share.max(axis=1), 1e-9)
        by_slots = self.fairness == "slots"
        plan.set_stages(weight=share.sum(axis=1), cost=1.0 if by_slots else dominant)
        size = _slots(world) if by_slots else float(cluster.total[0] / _machine(cluster)[0])
        plan.packing = Packing(
            remaining=self.m,
            order=self.order_weight,
            rebased=rebased,
            pending=self.srpt == "pending",
            remote=self.rp,
            bundle=self.bundle,
            overbook=self.overbook,
            unfairness=min(self.kappa * size, NO_BOUND),
        )
        if follows:
            plan.packing = Packing(aligned=False, remote=self.rp)
        known = StageProfiles(columns, self.first_guess_s, self.prior_tasks)
        stages = np.arange(len(columns.stage_job))
        if self.profiles == "stage":
            plan.set_stages(expected_s=stage_profile(columns)[columns.stage_task0[:-1]])
        else:
            plan.set_stages(expected_s=known.expect(stages))
        return _Running(known, np.zeros(len(columns.stage_job), dtype=bool))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Learn from what has finished, and refine what the jobs that run are expected to need."""
        assert isinstance(memory, _Running)
        if self.profiles == "stage":
            return
        columns = world.columns
        memory.learn(world)
        jobs = batch.row[batch.row >= 0]
        if len(jobs):
            stages = ranges(columns.job_stage0[jobs], columns.job_stage0[jobs + 1])
            memory.open[stages] = True
        if len(jobs) < len(batch.row):  # a timer: all anew
            stages = memory.open.nonzero()[0]
            of_stage = columns.stage_job[stages]
            jobs = of_stage[:1]
            if len(stages) > 1:  # once each: they ascend
                jobs = np.append(jobs, of_stage[1:][of_stage[1:] > of_stage[:-1]])
        if len(jobs):
            expected = memory.known.expect(stages, world.view)
            plan.set_stages(stages, jobs=jobs, expected_s=expected)
            plan.timer_s = min(plan.timer_s, batch.now + self.refresh_s)

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return the makespan of the one job's offline schedule, its tasks' durations known, s.

        As in the paper's simulations (§8.3); what runs on a cluster has a profile a stage (§8.2.1).
        """
        return build_schedule(
            workload, cluster, max_candidates=self.max_candidates, candidates=self.candidates
        ).makespan_s

    def _follows(self, columns: Columns) -> bool:
        """Tell whether tasks go by a list alone."""
        is_alone = len(columns.job_submit) == 1
        is_free = self.fit == "pack" and not self.fit_resources and self.order_weight == 1
        return is_alone and is_free and self.candidates == "more"

    def _order(self, columns: Columns, cluster: Cluster) -> OfflineOrder:
        return offline_order(
            columns, cluster, max_candidates=self.max_candidates, candidates=self.candidates
        )


def tasks_after(columns: Columns, pri_score: F8) -> F8:
    """Count, for each task, those of its job that come after it in the offline order, (T,)."""
    n_tasks = np.diff(columns.stage_task0[columns.job_stage0])
    after: F8 = np.rint(pri_score * (np.repeat(n_tasks, n_tasks) - 1))
    return after


@dataclass(frozen=True)
class _Running:
    """What a run has learnt, and which stages of the jobs that have come were not done yet."""

    known: StageProfiles
    open: Mask

    def learn(self, world: World) -> None:
        """Learn from the stages that have finished since the last look."""
        stages = self.open.nonzero()[0]
        done = stages[world.view["stage_left"][stages] == 0]
        if len(done):
            self.known.learn(done, world.view)
            self.open[done] = False


def _machine(cluster: Cluster) -> F8:
    """Return what a machine has; one slot of a pool."""
    return cluster.capacity[0] if not cluster.unit else np.ones(1)


def _slots(world: World) -> float:
    """Count how many average tasks of the workload the cluster holds at once."""
    columns, cluster = world.columns, world.cluster
    if cluster.unit:
        return float(cluster.total[0])
    n_tasks = np.diff(columns.stage_task0)
    mean = maths.dot(n_tasks, stage_demands(columns, cluster)) / n_tasks.sum()
    asked = mean > 0
    if not asked.any():
        return float(n_tasks.sum())
    return max(1.0, float((cluster.capacity[:, asked] / mean[asked]).min(axis=1).sum()))
