"""Order of the stages and tasks inside a job, set when it arrives."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from policies.dagps.offline_order import OrdersAtArrival
from policies.estimates.durations import Truth
from policies.estimates.paths import expected_tails_s
from sim.base.arrays import F8, I8, ranges
from sim.engine.plan import Plan, World

OrderName = Literal["given", "path", "dagps"]


class Order(Protocol):
    """Order inside jobs."""

    def arrive(self, job: int, plan: Plan) -> None:
        """Order the stages, and if the plan has priorities the tasks, of a job that arrives."""


def make_order(name: OrderName, world: World) -> Order:
    """Return the order inside the jobs of one run."""
    if name == "given":
        return Given()
    return LongestPath(world) if name == "path" else Offline(world)


class Given:
    """The order of the rows."""

    def arrive(self, job: int, plan: Plan) -> None:
        """Do nothing."""


class LongestPath:
    """The longest expected path to the end of the job first (critical path, Graham 1966)."""

    def __init__(self, world: World) -> None:
        columns = self._columns = world.columns
        parent = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.edge0))
        is_next = columns.edge_child == parent + 1
        is_chained = np.zeros(len(columns.stage_job), dtype=np.bool_)
        is_chained[parent[is_next]] = True
        is_chained[columns.job_stage0[1:] - 1] = True
        branches = np.bincount(columns.stage_job, ~is_chained, len(columns.job_submit)) > 0
        self._branches: list[bool] = branches.tolist()
        self._true_s = Truth(columns)

    def arrive(self, job: int, plan: Plan) -> None:
        """See `Order`; chains have one order alone."""
        if not self._branches[job]:
            return
        columns = self._columns
        first, last = columns.job_stage0[job : job + 2].tolist()
        expected_s = plan.stages["expected_s"]
        if np.isnan(expected_s[first]):
            expected_s = self._true_s.expect(np.arange(len(expected_s)))
        _, tail_s = expected_tails_s(columns, expected_s, np.array([job]))
        stages = np.arange(first, last)
        plan.set_stages(stages, jobs=[job], key=-tail_s)
        if plan.task_priority is not None:
            set_after(columns.stage_n_tasks[stages], tail_s, columns.stage_task0[first], plan)


class Offline:
    """DAGPS's offline order (`policies.dagps.offline_order`), of the durations expected then."""

    def __init__(self, world: World) -> None:
        self._orders = OrdersAtArrival(world.columns, world.cluster)
        self._columns, self._view = world.columns, world.view
        self._true_s = Truth(world.columns)

    def arrive(self, job: int, plan: Plan) -> None:
        """See `Order`."""
        if self._orders.in_order[job]:
            return
        stages, tasks = self._orders.rows(job)
        expected_s: F8 = plan.stages["expected_s"][stages]
        if np.isnan(expected_s).any():
            expected_s = self._true_s.expect(stages)
        same = self._columns.job_template == self._columns.job_template[job]
        n_runs = 1 + int(np.count_nonzero(np.isfinite(self._view["finish"][same])))
        order = self._orders.order(job, expected_s, n_runs)
        plan.set_stages(stages, jobs=[job], key=1 - order.stage_pri)
        if plan.task_priority is not None:
            n_after = np.rint(order.pri_score * (len(order.pri_score) - 1))
            plan.set_tasks(tasks, order=order.task_order, priority=n_after)


def set_after(n_tasks: I8, tail_s: F8, task0: int, plan: Plan) -> None:
    """Set the priority of a job's tasks: the number of tasks after each, by falling `tail_s`."""
    by_path = np.argsort(-tail_s, kind="stable")
    position = np.empty(int(n_tasks.sum()))
    begin = np.cumsum(n_tasks) - n_tasks
    rows = ranges(begin[by_path], begin[by_path] + n_tasks[by_path])
    position[rows] = np.arange(len(position))
    plan.set_tasks(slice(task0, task0 + len(position)), priority=len(position) - 1 - position)
