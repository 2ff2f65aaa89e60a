"""DAGs for the jobs of a trace that tells of no dependencies (Tian et al., SoCC 2019, §7).

"With synthesized dependencies, we could extend many previously released traces": as many DAGs as
there are jobs are drawn, and dealt out so that the drawn mix of shapes survives as far as jobs have
tasks enough for them. Then a job's tasks, or its time, are cut into the stages of its DAG.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask, inverse, offsets, ranges
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.random import Stream, stream
from sim.dags import Graphs
from sim.dags.levels import longest_path_levels
from sim.synth.alibaba2018.shipped import tables_of
from sim.synth.fitted.jobs import draw_attributes
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags, uniforms
from sim.transforms.parts import rebuilt
from sim.workload.columns import job_n_tasks, job_stage0
from sim.workload.tables import take_rows, values, with_column
from sim.workload.workload import Workload

Cut = Literal["tasks", "time"]


@checked
def give_dags(
    workload: Workload,
    tables: str | Path | None = None,
    seed: int = 0,
    variant: str = "improved",
    cut: Cut | None = None,
) -> Workload:
    """Give jobs without dependencies DAGs of a fitted shape; keep work, widths and arrivals.

    DAGs are drawn from the tables, one for each job, with the numbers of tasks and durations of
    their stages. They are dealt out at random among the jobs that have tasks enough, those that
    need most tasks first; a job for which none is left gets another of those it has enough for, and
    one that has not enough for any stays as it is.

    Cut by ``tasks``, every task stays as it is and belongs to one stage of the job: the stages have
    one task each, and the rest in proportion to the tasks that were drawn for them. Cut by
    ``time``, as many tasks run on each level of the DAG as the job had, shared out in the same way,
    and each lasts as long as before times the level's share of the time, which is in proportion to
    the mean of the durations drawn for its stages. Summed up over a job, tasks last as long as
    before. So a job cut by tasks is as wide as before where its stages run at once, and takes
    longer by itself; cut by time it is no wider and takes as long.

    Parameters
    ----------
    workload : Workload
        Of jobs without dependencies between stages. Stages of one job become one if they demand
        the same; if not, the job stays as it is.
    tables : path-like, optional
        A file made by ``python -m sim fit``; left out, the shipped tables of Alibaba's trace.
    seed : int
        Seed of all draws.
    variant : {"improved", "paper"}
        See `sim.synth.fitted.tian_algorithm2`.
    cut : {"tasks", "time"}, optional
        Left out: ``time`` where all tasks of a job start together (`min_tasks`), else ``tasks``.

    Raises
    ------
    InputError
        If stages depend on each other already (``rewire`` replaces dependencies), or the
        tables can't be read.
    """
    if workload.stage_edges.num_rows:
        raise InputError(
            "the workload has dependencies between stages; the transform rewire replaces them, "
            "give_dags is for workloads without",
            rule="dependencies already",
        )
    dags = _Dags.drawn(tables_of(tables), workload.n_jobs, seed, variant)
    n_tasks = job_n_tasks(workload).astype(np.int64)
    by_time = np.full(workload.n_jobs, cut == "time")
    if cut is None:
        by_time = values(workload.jobs, "min_tasks") == n_tasks
    shape = np.full(workload.n_jobs, -1)
    like = _like_stages(workload)
    for timed, need in ((False, dags.graphs.job_n_stages), (True, dags.width)):
        jobs = np.flatnonzero(like & (by_time == timed))
        rng = stream(seed, "give_dags", "time" if timed else "tasks")
        dealt = deal(need[jobs], n_tasks[jobs], rng)
        shape[jobs] = np.where(dealt >= 0, jobs[dealt], -1)
    transform = {
        "give_dags": int((shape >= 0).sum()),
        "as they were": int((shape < 0).sum()),
        "cut by time": int((by_time & (shape >= 0)).sum()),
        "seed": int(seed),
    }
    return _cut(workload, dags, shape, by_time, transform)


def deal(need: I8, room: I8, rng: Stream) -> I8:
    """Deal shapes out to as many jobs, each at most as large as the job's room; -1 for none."""
    pool: list[int] = []
    found = np.full(len(room), -1, dtype=np.int64)
    waiting = np.argsort(room, kind="stable").tolist()
    by_need = np.argsort(need, kind="stable")
    lot, again = rng.random((2, len(room)))
    for at, shape in enumerate(by_need[::-1].tolist()):
        while waiting and room[waiting[-1]] >= need[shape]:
            pool.append(waiting.pop())
        if pool:
            place = int(lot[at] * len(pool))
            pool[place], pool[-1] = pool[-1], pool[place]
            found[pool.pop()] = shape
    left = np.flatnonzero(found < 0)
    fits = np.searchsorted(need[by_need], room[left], side="right")
    other = by_need[np.minimum((again[left] * fits).astype(np.int64), len(need) - 1)]
    found[left] = np.where(fits > 0, other, -1)
    return found


class _Dags:
    """DAGs with what was drawn for their stages, and with stages in order of their levels."""

    def __init__(self, graphs: Graphs, level: I8, n_tasks: F8, duration_s: F8) -> None:
        self.graphs, self.level, self.n_tasks = graphs, level, n_tasks
        key = graphs.stage_job * (int(level.max()) + 1) + level
        first = np.append(True, np.diff(key) != 0)
        self.level_of = np.cumsum(first) - 1  # of all levels of all DAGs
        size = np.bincount(self.level_of)
        self.width = np.maximum.reduceat(size[self.level_of], graphs.job_stage0[:-1])
        mean = (np.bincount(self.level_of, duration_s) / size)[self.level_of]
        total = np.bincount(graphs.stage_job, np.where(first, mean, 0.0))[graphs.stage_job]
        n_levels = np.bincount(graphs.stage_job, first)[graphs.stage_job]
        self.share = np.where(total > 0, mean / np.where(total > 0, total, 1.0), 1.0 / n_levels)

    @classmethod
    def drawn(cls, tables: Tables, n: int, seed: int, variant: str) -> _Dags:
        """Draw `n` of them."""
        sizes = tables.n_stages.draw(uniforms(seed, "n_stages", n)).astype(np.int64)
        made = synthesize_dags(tables, sizes, seed, variant)
        stages = draw_attributes(tables, made.graph, seed, joint=tables.has_joint)
        level = longest_path_levels(made.graph).astype(np.int64)  # a stage starts as its level does
        order = np.lexsort((level, made.graph.stage_job))
        place = inverse(order)
        graphs = Graphs.from_edges(
            made.graph.job_n_stages, place[made.graph.edge_parent], place[made.graph.edge_child]
        )
        weight, duration_s = (stages[name][order] for name in ("n_tasks", "duration_s"))
        return cls(graphs, level[order], weight.astype(np.float64), duration_s)

    def take(self, rows: I8) -> tuple[Graphs, I8]:
        """Return some of the DAGs, and the rows of their stages among all."""
        stage0 = self.graphs.job_stage0
        return self.graphs.take(rows), ranges(stage0[rows], stage0[rows + 1])


def _like_stages(workload: Workload) -> Mask:
    """Tell of which jobs all stages have the same demands, and whatever else stages have."""
    owner = values(workload.stages, "job")
    like = np.ones(workload.n_jobs, dtype=bool)
    first = job_stage0(workload)[:-1][owner]
    for name in workload.stages.column_names:
        if name not in ("job", "name", "n_tasks"):
            column = workload.stages[name].chunk(0)
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            code = coded.indices.fill_null(-1).to_numpy()
            like[owner[code != code[first]]] = False
    return like


def _cut(
    workload: Workload, dags: _Dags, shape: I8, by_time: Mask, transform: dict[str, int]
) -> Workload:
    """Cut the jobs that have a shape into its stages."""
    old0 = job_stage0(workload)
    given = shape >= 0
    graphs, row = dags.take(shape[given])
    n_new = np.where(given, 0, np.diff(old0))
    n_new[given] = graphs.job_n_stages
    job = np.repeat(np.arange(workload.n_jobs), n_new)
    mine = given[job]
    task0 = offsets(job_n_tasks(workload).astype(np.int64))
    n_tasks = np.empty(len(job), dtype=np.int64)
    begin = np.empty(len(job), dtype=np.int64)
    factor = np.ones(len(job))
    kept = ranges(old0[:-1][~given], old0[1:][~given])
    n_tasks[~mine] = values(workload.stages, "n_tasks")[kept]
    begin[~mine] = workload.stage_task0[kept]
    # a cell is what shares a job's tasks out: its stages, or those of one level
    timed = by_time[job[mine]]
    of_cell = np.append(True, np.diff(job[mine]) != 0)[: len(row)]
    of_cell[1:] |= timed[1:] & (np.diff(dags.level_of[row]) != 0)
    cell = np.cumsum(of_cell) - 1
    tasks = np.diff(task0)[job[mine]]
    n_tasks[mine] = _shared_out(tasks[of_cell], cell, dags.n_tasks[row])
    before = np.cumsum(n_tasks[mine]) - n_tasks[mine]
    begin[mine] = task0[job[mine]] + before - before[of_cell][cell]
    factor[mine] = np.where(timed, dags.share[row], 1.0)

    source = old0[:-1][job]
    source[~mine] = kept
    stages = take_rows(workload.stages, source)
    stages = with_column(stages, "job", job.astype(np.int32))
    stages = with_column(stages, "n_tasks", n_tasks.astype(np.int32))
    place = np.arange(len(job)) - np.repeat(offsets(n_new)[:-1], n_new)
    old = workload.stages["name"].to_pylist()
    names = [f"S{k + 1}" if m else old[s] for k, m, s in zip(place, mine, source, strict=True)]
    where = np.flatnonzero(mine)
    return rebuilt(
        workload, transform, _one_duration(workload, source, factor), True,
        stages=with_column(stages, "name", names),
        tasks=None if _is_plain(workload) else _tasks(workload, begin, n_tasks, factor),
        stage_edges={"parent": where[graphs.edge_parent], "child": where[graphs.edge_child]},
    )  # fmt: skip


def _shared_out(total: I8, cell: I8, weight: F8) -> I8:
    """Share out each cell's total, one to each part and the rest by weight, to whole numbers."""
    size = np.bincount(cell)
    rest = (total - size)[cell]
    exact = rest * weight / np.bincount(cell, weight)[cell]
    whole = np.floor(exact).astype(np.int64)
    missing = total - size - np.bincount(cell, whole).astype(np.int64)
    order = np.lexsort((whole - exact, cell))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - (np.cumsum(size) - size)[cell[order]]
    return 1 + whole + (rank < missing[cell])


def _is_plain(workload: Workload) -> bool:
    """Tell whether jobs have one stage whose tasks are alike, which needs no table of tasks."""
    return workload.stage_duration_s is not None and workload.n_stages == workload.n_jobs


def _one_duration(workload: Workload, source: I8, factor: F8) -> F8 | None:
    if not _is_plain(workload):
        return None
    assert workload.stage_duration_s is not None
    return workload.stage_duration_s[source] * factor


def _tasks(workload: Workload, begin: I8, n_tasks: I8, factor: F8) -> dict[str, NDArray[Any]]:
    """Return the tasks of the new stages: those of the old ones from `begin` on, cut short."""
    stage = np.repeat(np.arange(len(begin), dtype=np.int32), n_tasks)
    lasts = workload.columns.task_duration[ranges(begin, begin + n_tasks)]
    return {"stage": stage, "duration_s": lasts * factor[stage]}
