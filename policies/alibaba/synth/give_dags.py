"""Transform: DAGs for the jobs of a trace without dependencies (Tian et al., SoCC 2019, §7).

"With synthesized dependencies, we could extend many previously released traces": as many DAGs as
there are jobs are drawn, and assigned so that the mix of shapes is preserved as far as jobs have
enough tasks for them. Then a job's tasks, or its time, are divided among the stages of its DAG.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from policies.alibaba.synth.recorded_runs import Parts, RecordedRuns
from policies.alibaba.synth.shipped import load_tables
from sim.base.arrays import F8, I8, Mask, inverse, offsets, ranges, ranks
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.random import Stream, stream
from sim.dags import Graphs
from sim.dags.levels import longest_path_levels
from sim.synth.fitted.jobs import draw_attributes
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags, uniforms
from sim.transforms.parts import rebuild
from sim.workload.columns import job_n_tasks, job_stage0
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import names, take_rows, values, with_column
from sim.workload.workload import Workload

Cut = Literal["tasks", "time"]
Per = Literal["job", "program"]


@checked
def give_dags(
    workload: Workload,
    tables: str | Path | None = None,
    seed: int = 0,
    variant: str = "improved",
    cut: Cut | None = None,
    per: Per | None = None,
    demands: bool = False,
) -> Workload:
    """Assign fitted DAGs to jobs without dependencies; preserve work, widths and arrivals.

    One DAG per job (or program) is drawn, with the numbers of tasks and durations of its stages.
    The DAGs are assigned at random among the jobs with enough tasks, those that need most tasks
    first. A job that is left without one gets a copy of a DAG for which it has enough tasks; a job
    without enough tasks for any DAG is not changed.

    Cut by ``tasks``, every task is unchanged and belongs to one stage of the job: each stage has
    one task, and the others are divided in proportion to the drawn numbers of tasks. Cut by
    ``time``, each level of the DAG has as many tasks as the job had, divided in the same way; their
    duration is multiplied by the level's share of the time, which is proportional to the mean
    duration drawn for its stages. The total duration of a job's tasks is preserved. So a job cut by
    tasks is as wide as before if its stages run at the same time, and its critical path is longer;
    a job cut by time is not wider and its critical path is the same.

    Recorded runs of a program (``training``) are divided like its jobs: each recorded task keeps
    its wait and run time, after the end of the stages before. So policies can learn from them.

    Parameters
    ----------
    workload : Workload
        Workload without dependencies between stages. Stages of one job are merged if their demands
        are equal; otherwise the job is not changed.
    tables : path-like, optional
        File made by ``python -m sim fit``; by default the shipped tables of Alibaba's trace.
    seed : int
        Seed of all draws.
    variant : {"improved", "paper"}
        See `sim.synth.fitted.tian_algorithm2`.
    cut : {"tasks", "time"}, optional
        By default ``time`` if all tasks of a job start together (`min_tasks`), else ``tasks``.
    per : {"job", "program"}, optional
        ``program``: all jobs of a template get the same DAG, with enough tasks in each of them; by
        default if the workload has recorded runs, which are of a program.
    demands : bool
        Multiply the demands of a stage by its drawn ones over the mean of its job's tasks, for
        resources that the tables have too; no demand gets larger than the workload's largest.

    Raises
    ------
    InputError
        If there are dependencies between stages already (``rewire`` replaces them), or the tables
        can't be read.
    """
    if workload.stage_edges.num_rows:
        raise InputError(
            "the workload has dependencies between stages already, and give_dags is for workloads "
            "without; the transform rewire replaces dependencies",
            rule="dependencies already",
        )
    n_tasks = job_n_tasks(workload).astype(np.int64)
    by_time = np.full(workload.n_jobs, cut == "time")
    if cut is None:
        by_time = values(workload.jobs, "min_tasks") == n_tasks
    runs = RecordedRuns.from_workload(workload)
    group, first = _groups(workload, by_time, per or ("program" if len(runs.n_tasks) else "job"))
    dags = _Dags.draw(load_tables(tables), len(first), seed, variant)
    is_uniform, fewest = np.ones(len(first), bool), n_tasks[first]
    np.logical_and.at(is_uniform, group, _uniform_jobs(workload))
    np.minimum.at(fewest, group, n_tasks)
    owner, known = runs.first_job, runs.first_job >= 0
    np.minimum.at(fewest, group[owner[known]], runs.n_tasks[known])
    group_shape = np.full(len(first), -1)
    for is_timed, need in ((False, dags.graphs.job_n_stages), (True, dags.width)):
        groups = np.flatnonzero(is_uniform & (by_time[first] == is_timed))
        rng = stream(seed, "give_dags", "time" if is_timed else "tasks")
        assigned = assign_shapes(need[groups], fewest[groups], rng)
        group_shape[groups] = np.where(assigned >= 0, groups[assigned], -1)
    shape = group_shape[group]
    transform = {
        "give_dags": int((shape >= 0).sum()),
        "unchanged": int((shape < 0).sum()),
        "cut by time": int((by_time & (shape >= 0)).sum()),
        "seed": int(seed),
    }
    selected = np.flatnonzero(known & (shape[owner] >= 0))
    job = owner[selected]
    training = runs.cut(selected, dags.divide(shape[job], runs.n_tasks[selected], by_time[job]))
    return _cut(workload, dags, shape, by_time, transform, demands, training)


def assign_shapes(need: I8, n_tasks: I8, rng: Stream) -> I8:
    """Assign shapes to as many jobs, each with at least the tasks it needs; -1 for none."""
    pool: list[int] = []
    assigned = np.full(len(n_tasks), -1, dtype=np.int64)
    waiting = np.argsort(n_tasks, kind="stable").tolist()
    by_need = np.argsort(need, kind="stable")
    u_job, u_shape = rng.random((2, len(n_tasks)))
    for i, shape in enumerate(by_need[::-1].tolist()):
        while waiting and n_tasks[waiting[-1]] >= need[shape]:
            pool.append(waiting.pop())
        if pool:
            pick = int(u_job[i] * len(pool))
            pool[pick], pool[-1] = pool[-1], pool[pick]
            assigned[pool.pop()] = shape
    left = np.flatnonzero(assigned < 0)
    n_fit = np.searchsorted(need[by_need], n_tasks[left], side="right")
    other = by_need[np.minimum((u_shape[left] * n_fit).astype(np.int64), len(need) - 1)]
    assigned[left] = np.where(n_fit > 0, other, -1)
    return assigned


class _Dags:
    """DAGs with drawn attributes of their stages, which are in order of their levels."""

    def __init__(
        self, graphs: Graphs, level: I8, n_tasks: F8, duration_s: F8, demands: dict[str, F8]
    ) -> None:
        self.graphs, self.level, self.n_tasks, self.demands = graphs, level, n_tasks, demands
        key = graphs.stage_job * (int(level.max()) + 1) + level
        first = np.append(True, np.diff(key) != 0)
        self.level_number = np.cumsum(first) - 1  # of all levels of all DAGs
        size = np.bincount(self.level_number)
        self.width = np.maximum.reduceat(size[self.level_number], graphs.job_stage0[:-1])
        mean = (np.bincount(self.level_number, duration_s) / size)[self.level_number]
        total = np.bincount(graphs.stage_job, np.where(first, mean, 0.0))[graphs.stage_job]
        n_levels = np.bincount(graphs.stage_job, first)[graphs.stage_job]
        self.share = np.where(total > 0, mean / np.where(total > 0, total, 1.0), 1.0 / n_levels)

    @classmethod
    def draw(cls, tables: Tables, n: int, seed: int, variant: str) -> _Dags:
        """Draw `n` DAGs."""
        sizes = tables.n_stages.draw(uniforms(seed, "n_stages", n)).astype(np.int64)
        structure = synthesize_dags(tables, sizes, seed, variant)
        stages = draw_attributes(tables, structure.graph, seed, joint=tables.has_joint)
        level = longest_path_levels(structure.graph).astype(
            np.int64
        )  # stages start with their level
        order = np.lexsort((level, structure.graph.stage_job))
        new_row = inverse(order)
        graphs = Graphs.from_edges(
            structure.graph.job_n_stages,
            new_row[structure.graph.edge_parent],
            new_row[structure.graph.edge_child],
        )
        weight, duration_s = (stages[name][order] for name in ("n_tasks", "duration_s"))
        demands = {name: stages[name][order] for name in stages if name.startswith(DEMAND_PREFIX)}
        return cls(graphs, level[order], weight.astype(np.float64), duration_s, demands)

    def take(self, rows: I8) -> tuple[Graphs, I8]:
        """Return the selected DAGs, and the rows of their stages among all."""
        stage0 = self.graphs.job_stage0
        return self.graphs.take(rows), ranges(stage0[rows], stage0[rows + 1])

    def divide(self, rows: I8, total: I8, is_timed: Mask) -> Parts:
        """Divide the tasks of n jobs, `total` of each, among the stages of the DAGs `rows`, (n,).

        `is_timed` marks the jobs that are cut by time.
        """
        graphs, stage = self.take(rows)
        job = graphs.stage_job
        # a cell is a group of stages among which a job's tasks are divided: all, or one level's
        timed = is_timed[job]
        is_first = np.append(True, np.diff(job) != 0)[: len(stage)]
        is_first[1:] |= timed[1:] & (np.diff(self.level_number[stage]) != 0)
        cell = np.cumsum(is_first) - 1
        n_tasks = _divide(total[job][is_first], cell, self.n_tasks[stage])
        before = np.cumsum(n_tasks) - n_tasks
        begin = before - before[is_first][cell]
        return Parts(graphs, stage, n_tasks, begin, np.where(timed, self.share[stage], 1.0))


def _groups(workload: Workload, by_time: Mask, per: Per) -> tuple[I8, I8]:
    """Return the group of each job, which has one DAG, (J,), and the first job of each group."""
    number = np.arange(workload.n_jobs)
    if per == "job":
        return number, number
    code = values(workload.jobs, "template").astype(np.int64)
    is_named = np.array([bool(name) for name in names(workload.jobs, "template")])[code]
    key = np.where(is_named, 2 * code + by_time, -1 - number)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return ranks(first)[group.ravel()], np.sort(first)


def _uniform_jobs(workload: Workload) -> Mask:
    """Return the jobs of which all stages have equal demands and other columns."""
    owner = values(workload.stages, "job")
    is_uniform = np.ones(workload.n_jobs, dtype=bool)
    first = job_stage0(workload)[:-1][owner]
    for name in workload.stages.column_names:
        if name not in ("job", "name", "n_tasks"):
            column = workload.stages[name].chunk(0)
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            code = coded.indices.fill_null(-1).to_numpy()
            is_uniform[owner[code != code[first]]] = False
    return is_uniform


def _cut(
    workload: Workload,
    dags: _Dags,
    shape: I8,
    by_time: Mask,
    transform: dict[str, int],
    demands: bool,
    training: pa.Table,
) -> Workload:
    """Divide the jobs that have a shape into its stages."""
    old0 = job_stage0(workload)
    has_shape = shape >= 0
    total = job_n_tasks(workload).astype(np.int64)[has_shape]
    parts = dags.divide(shape[has_shape], total, by_time[has_shape])
    graphs = parts.graphs
    n_new = np.where(has_shape, 0, np.diff(old0))
    n_new[has_shape] = graphs.job_n_stages
    job = np.repeat(np.arange(workload.n_jobs), n_new)
    is_new = has_shape[job]
    task0 = offsets(job_n_tasks(workload).astype(np.int64))
    n_tasks = np.empty(len(job), dtype=np.int64)
    begin = np.empty(len(job), dtype=np.int64)
    factor = np.ones(len(job))
    old_rows = ranges(old0[:-1][~has_shape], old0[1:][~has_shape])
    n_tasks[~is_new] = values(workload.stages, "n_tasks")[old_rows]
    begin[~is_new] = workload.stage_task0[old_rows]
    n_tasks[is_new] = parts.n_tasks
    begin[is_new] = task0[job[is_new]] + parts.begin
    factor[is_new] = parts.factor

    source = old0[:-1][job]
    source[~is_new] = old_rows
    stages = take_rows(workload.stages, source)
    stages = with_column(stages, "job", job.astype(np.int32))
    stages = with_column(stages, "n_tasks", n_tasks.astype(np.int32))
    stage_number = np.arange(len(job)) - np.repeat(offsets(n_new)[:-1], n_new)
    old_names = workload.stages["name"].to_pylist()
    new_names = [
        f"S{k + 1}" if m else old_names[s]
        for k, m, s in zip(stage_number, is_new, source, strict=True)
    ]
    new_rows = np.flatnonzero(is_new)
    if demands:
        for name in dags.demands.keys() & set(stages.column_names):
            demand = _spread_demand(values(stages, name), dags.demands[name], parts, new_rows)
            stages = with_column(stages, name, demand)
    return rebuild(
        workload, transform, _one_duration(workload, source, factor), True, False,
        stages=with_column(stages, "name", new_names),
        tasks=None if _is_plain(workload) else _tasks(workload, begin, n_tasks, factor),
        stage_edges={"parent": new_rows[graphs.edge_parent], "child": new_rows[graphs.edge_child]},
        training=training,
    )  # fmt: skip


def _divide(total: I8, cell: I8, weight: F8) -> I8:
    """Divide each cell's total among its parts: one to each, and the rest by weight, rounded."""
    size = np.bincount(cell)
    rest = (total - size)[cell]
    exact = rest * weight / np.bincount(cell, weight)[cell]
    whole = np.floor(exact).astype(np.int64)
    missing = total - size - np.bincount(cell, whole).astype(np.int64)
    order = np.lexsort((whole - exact, cell))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - (np.cumsum(size) - size)[cell[order]]
    return 1 + whole + (rank < missing[cell])


def _spread_demand(demand: F8, drawn: F8, parts: Parts, rows: I8) -> F8:
    """Multiply the demands of new stages by the drawn ones over the mean of their job's tasks."""
    job, weight = parts.graphs.stage_job, parts.n_tasks.astype(np.float64)
    stage_drawn = drawn[parts.stage]
    mean = np.bincount(job, stage_drawn * weight) / np.bincount(job, weight)
    spread = demand.copy()
    spread[rows] *= stage_drawn / mean[job]
    capped: F8 = np.minimum(spread, demand.max(initial=0.0))
    return capped


def _is_plain(workload: Workload) -> bool:
    """Return whether jobs have one stage with equal tasks, which needs no table of tasks."""
    return workload.stage_duration_s is not None and workload.n_stages == workload.n_jobs


def _one_duration(workload: Workload, source: I8, factor: F8) -> F8 | None:
    if not _is_plain(workload):
        return None
    assert workload.stage_duration_s is not None
    return workload.stage_duration_s[source] * factor


def _tasks(workload: Workload, begin: I8, n_tasks: I8, factor: F8) -> dict[str, NDArray[Any]]:
    """Return the tasks of the new stages: those of the old ones from `begin` on, scaled."""
    stage = np.repeat(np.arange(len(begin), dtype=np.int32), n_tasks)
    duration_s = workload.columns.task_duration[ranges(begin, begin + n_tasks)]
    return {"stage": stage, "duration_s": duration_s * factor[stage]}
