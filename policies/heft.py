"""Heterogeneous earliest finish time, on machines that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from policies.base import Policy
from policies.dagps.board import Board, Placed, placed
from policies.dagps.dag import F8, I8, Dag, demand_quanta, one_job, read_only
from policies.dagps.offline import stage_profile
from policies.registry import register
from sim.plan import Plan, World

if TYPE_CHECKING:
    from numpy.typing import NDArray


@register("heft")
@dataclass(frozen=True)
class Heft(Policy):
    """Stages in the order of each job's HEFT schedule.

    Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for
    heterogeneous computing*, IEEE TPDS 13(3), 2002. Tasks by falling upward rank (the longest path
    of mean durations to the job's end; data moves for free here), each at the earliest time at
    which a machine has room for it, holes included. Machines differ in nothing but what is free
    on them, so this is made for each job with all machines its own; the run follows its order.

    Attributes
    ----------
    fit : {"strict", "skip", "pack"}
        "skip" by default: what fills a hole in the schedule may pass what waits for room.
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": what
        begins first in its job's own schedule goes first, whatever its job.
    """

    fit: Literal["strict", "skip", "pack"] = "skip"
    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by the begin of its first task, and order its tasks by theirs."""
        c = world.columns
        demand, capacity = demand_quanta(c, world.cluster)
        duration, begin = stage_profile(c), np.empty(len(c.task_duration))
        for job in range(len(c.job_submit)):
            t0, t1 = c.stage_task0[c.job_stage0[job : job + 2]]
            begin[t0:t1] = heft_schedule(one_job(c, demand, job, duration), capacity).begin
        stage = np.repeat(np.arange(len(c.stage_job)), np.diff(c.stage_task0))
        inside = np.lexsort((begin, stage)) - c.stage_task0[stage]
        plan.task_order = inside.astype(np.int32)
        plan.set_stages(key=np.minimum.reduceat(begin, c.stage_task0[:-1]))
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(c.job_submit)))


def heft_schedule(dag: Dag, capacity: I8) -> Placed:
    """Schedule a DAG on machines of its own by HEFT.

    Parameters
    ----------
    dag : Dag
        Whose tasks each last as long as the others of their stage.
    capacity : (M, R) int64
        What each machine has, quanta.
    """
    rank = upward_rank(dag)[dag.task_stage]
    board = Board(dag, capacity, rank)
    whole = np.zeros(len(dag.duration), dtype=np.int32)
    space = board.place(whole, 0, False, board.empty, 0, np.inf)
    assert space is not None  # there is no limit
    return placed(space)


def upward_rank(dag: Dag) -> F8:
    """Return the longest path from each stage to the end of the job, (G,) s."""
    from sim.kernels.paths import tails

    profile = np.maximum.reduceat(dag.duration, dag.task0[:-1])
    group = np.zeros(len(dag.order), dtype=np.int64)
    given: list[NDArray[np.generic]] = [dag.order, group, dag.edge0, dag.edge_child]
    given += [dag.edge_kind, dag.task0, profile, dag.duration]
    rank: F8 = tails(*[read_only(array) for array in given])
    return rank
