"""Heterogeneous earliest finish time, on machines that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policies.base import Policy
from policies.dagps.board import Board, Placed, placed
from policies.dagps.dag import Dag, read_only
from policies.dagps.offline import stage_profile
from policies.registry import register
from sim.base.arrays import F8, I1, I4, I8
from sim.engine.plan import Plan, World
from sim.workload.paths import topological_order


@register("heft")
@dataclass(frozen=True)
class Heft(Policy):
    """Stages by falling upward rank, each task in the first hole that it fits.

    Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for
    heterogeneous computing*, IEEE TPDS 13(3), 2002. The upward rank is the longest path of mean
    durations to the job's end; data moves for free here. Machines differ in nothing but what is
    free on them, so that the earliest finish is the earliest start, and what may pass those that
    wait for room is put where insertion would put it. The key of a whole stage can't say that one
    of its tasks fills a hole and the others do not, so the run is keyed by rank and not by the
    begins of the schedule that HEFT writes down in advance; `heft_schedule` builds that.

    Attributes
    ----------
    fit : {"strict", "skip", "pack"}
        "skip" by default, which stands for insertion.
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": the
        highest rank goes first, whatever its job.
    """

    fit: Literal["strict", "skip", "pack"] = "skip"
    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by its negative rank."""
        c = world.columns
        given = (topological_order(c), c.edge0, c.edge_child, c.edge_kind, c.stage_task0)
        plan.set_stages(key=-upward_rank(*given, stage_profile(c)))
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(c.job_submit)))


def heft_schedule(dag: Dag, capacity: I8) -> Placed:
    """Schedule a DAG on machines of its own by HEFT."""
    given = (dag.order, dag.edge0, dag.edge_child, dag.edge_kind, dag.task0)
    rank = upward_rank(*given, dag.duration)
    board = Board(dag, capacity, rank[dag.task_stage])
    whole = np.zeros(len(dag.duration), dtype=np.int32)
    space = board.place(whole, 0, False, board.empty, 0, np.inf)
    assert space is not None  # there is no limit
    return placed(space)


def upward_rank(order: I8, edge0: I8, edge_child: I4, edge_kind: I1, task0: I8, duration: F8) -> F8:
    """Return the longest path from each stage to the end of its job, (G,) s."""
    from sim.workload.kernels.paths import tails

    profile, group = duration[task0[:-1]], np.zeros(len(order), dtype=np.int64)
    given: list[NDArray[Any]] = [order, group, edge0, edge_child]
    given += [edge_kind, task0, profile, duration]
    rank: F8 = tails(*[read_only(array) for array in given])
    return rank
