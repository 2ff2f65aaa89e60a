"""Job profiles (§4.1, §4.2): the DAG of a job, and statistics of its stages from earlier runs.

Symbols of the paper: T_s is the execution time of all tasks of stage s, Q_s their queueing, l_s the
longest task, L_s the longest path after the stage, t_s^b and t_s^e its relative begin and end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, offsets
from sim.base.errors import InputError
from sim.workload.columns import Columns


@dataclass(frozen=True, eq=False)
class Shape:
    """A job of S stages and E edges."""

    n_tasks: I4  # tasks of each stage
    parent: I4  # stages, by their index in the job
    child: I4
    kind: I1  # 0 barrier, 1 one-to-one (`sim.workload.schema.EDGE_KINDS`)
    # time from the end of its last barrier parent to the opening of each stage, s; empty: none
    lag_s: F8 = field(default_factory=lambda: np.empty(0))

    @property
    def first_task(self) -> I8:
        """First task of each stage, and the number of tasks: (S+1,) int64."""
        return offsets(self.n_tasks)

    def longest_after(self, length_s: F8) -> F8:
        """Return the longest path after each stage, where stage s takes ``length_s[s]``: (S,), s.

        L_s of §4.1: the stage itself does not count.
        """
        after = np.zeros(len(self.n_tasks))
        order = np.argsort(-self._depth()[self.parent], kind="stable")  # the last levels first
        for e in order.tolist():
            p, c = self.parent[e], self.child[e]
            after[p] = max(after[p], length_s[c] + after[c])
        return after

    def _depth(self) -> I4:
        """Return the number of stages in the longest chain before each stage, (S,)."""
        depth = np.zeros(len(self.n_tasks), dtype=np.int32)
        for _ in range(len(depth)):
            deeper = depth.copy()
            np.maximum.at(deeper, self.child, depth[self.parent] + 1)
            if (deeper == depth).all():
                break
            depth = deeper
        return depth


def job_shape(columns: Columns, job: int) -> Shape:
    """Return the shape of the job in row `job`."""
    g0, g1 = (int(g) for g in columns.job_stage0[job : job + 2])
    e0, e1 = int(columns.edge0[g0]), int(columns.edge0[g1])
    degree = np.diff(columns.edge0[g0 : g1 + 1])
    lag_s = columns.stage_lag[g0:g1]
    return Shape(
        np.diff(columns.stage_task0[g0 : g1 + 1]).astype(np.int32),
        np.repeat(np.arange(g1 - g0, dtype=np.int32), degree),
        (columns.edge_child[e0:e1] - g0).astype(np.int32),
        columns.edge_kind[e0:e1],
        lag_s if lag_s.any() else lag_s[:0],
    )


@dataclass(frozen=True, eq=False)
class Records:
    """The tasks of one or more runs of a job, N of them, each by the attempt that succeeded."""

    run: I4  # the run, the stage's index within the job, the task's within the stage
    stage: I4
    task: I4
    ready_s: F8  # ready, start and finish of the task, s from the submission of the run
    start_s: F8
    finish_s: F8
    init_s: F8  # initialisation, part of the time from start to finish, s
    n_failed: I4  # attempts that failed before


@dataclass(frozen=True, eq=False)
class Profile:
    """Statistics of a job of S stages; samples of all runs are pooled, by stage."""

    shape: Shape  # the job's stages and edges
    sample0: I8  # samples of stage s are the entries ``sample0[s]`` to ``sample0[s+1]``
    # the distributions of run time, without initialisation, and of initialisation latency, s
    run_s: F8
    init_s: F8
    n_failed: I4  # the distribution of how many attempts of a task failed
    # T_s and Q_s: execution time of all tasks of the stage, and their initialisation (which Table 3
    # counts as queueing, not as work), optionally with the time that ready tasks waited, s; tasks
    # of a stage with a lag queue for it
    work_s: F8
    queued_s: F8
    longest_s: F8  # l_s: execution time of the stage's longest task, s
    # t_s^b and t_s^e: start and end of the stage, as fractions of the job's duration
    begin: F8
    end: F8

    @cached_property
    def after_s(self) -> F8:
        """L_s: the longest path from the end of each stage to the end of the job, (S,), s."""
        return self.shape.longest_after(self.longest_s)

    @property
    def critical_path_s(self) -> float:
        """The longest path through the job, s."""
        return float((self.longest_s + self.after_s).max())

    @cached_property
    def token_s(self) -> F8:
        """Token seconds of the tasks of each stage, without failures: (S,)."""
        total_s = np.add.reduceat(self.run_s + self.init_s, self.sample0[:-1])
        return np.asarray(total_s / np.diff(self.sample0) * self.shape.n_tasks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its content, hex."""
        sha = hashlib.sha256()
        shape = self.shape
        for array in (
            *(shape.n_tasks, shape.parent, shape.child, shape.kind),
            *(self.sample0, self.run_s, self.init_s, self.n_failed),
            *(self.work_s, self.queued_s, self.longest_s, self.begin, self.end),
        ):
            sha.update(f"{array.dtype} {array.shape}\n".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        sha.update(shape.lag_s.tobytes())  # nothing without lags
        return sha.hexdigest()


def build_profile(
    shape: Shape, records: Records, name: str = "the job", waits: bool = False
) -> Profile:
    """Build the profile of a job from one or more of its runs.

    Q_s counts initialisation, the lag of the stage and, with `waits`, the time that tasks waited
    for tokens before (a recorded wait has the lag in it).

    Totals are means per recorded task times the job's present number of tasks, so that a run with
    slightly more or fewer tasks in a stage, or with lost records, can be used.
    """
    n_stages = len(shape.n_tasks)
    _check(records, n_stages, name)
    order = np.lexsort((records.task, records.run, records.stage))
    stage, run = records.stage[order], records.run[order]
    ready, start = records.ready_s[order], records.start_s[order]
    finish, init = records.finish_s[order], records.init_s[order]
    count = np.bincount(stage, minlength=n_stages)
    sample0 = offsets(count)
    first = sample0[:-1]
    run_s = finish - start - init
    begin, end = _relative(stage, run, start, finish, n_stages)
    per_task = shape.n_tasks / count
    queued = np.add.reduceat((start - ready) * waits + init, first) * per_task
    if len(shape.lag_s) and not waits:
        queued += shape.lag_s * shape.n_tasks
    return Profile(
        shape,
        sample0,
        run_s,
        init,
        records.n_failed[order].astype(np.int32),
        np.add.reduceat(run_s, first) * per_task,
        queued,
        np.maximum.reduceat(run_s, first),
        begin,
        end,
    )


def _relative(stage: I4, run: I4, start: F8, finish: F8, n_stages: int) -> tuple[F8, F8]:
    """Return mean starts and ends of stages over runs, as fractions of a run's duration."""
    runs, run_index = np.unique(run, return_inverse=True)
    shape = (len(runs), n_stages)
    begin, end = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(begin, (run_index, stage), start)
    np.maximum.at(end, (run_index, stage), finish)
    seen = np.isfinite(begin)
    whole = np.maximum(end.max(axis=1, keepdims=True), 1e-300)
    n = seen.sum(axis=0)
    return (
        np.where(seen, begin / whole, 0.0).sum(axis=0) / n,
        np.where(seen, end / whole, 0.0).sum(axis=0) / n,
    )


def _check(records: Records, n_stages: int, name: str) -> None:
    if len(records.stage) and not 0 <= records.stage.min() <= records.stage.max() < n_stages:
        stage = records.stage.max() if records.stage.max() >= n_stages else records.stage.min()
        raise InputError(
            f"a training record of {name} is of stage {stage}; the job has stages 0 to "
            f"{n_stages - 1}: its plan has changed, so train on a run of the new one"
        )
    missing = np.flatnonzero(np.bincount(records.stage, minlength=n_stages) == 0)
    if len(missing):
        shown = ", ".join(str(s) for s in missing[:5].tolist())
        raise InputError(
            f"the training records of {name} lack {len(missing)} of its {n_stages} stages "
            f"({shown}): a profile needs at least one recorded task of every stage"
        )
    run = records.finish_s - records.start_s - records.init_s
    wait = records.start_s - records.ready_s
    tolerance_s = 1e-6
    valid = (
        (run >= -tolerance_s)
        & (wait >= -tolerance_s)
        & (records.init_s >= 0)
        & (records.n_failed >= 0)
    )
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        raise InputError(
            f"training record {row} of {name} is out of order: ready {records.ready_s[row]:g}, "
            f"start {records.start_s[row]:g}, finish {records.finish_s[row]:g}, initialisation "
            f"{records.init_s[row]:g} s, {records.n_failed[row]} failures; times must ascend, "
            "initialisation fit between start and finish, and no number be negative"
        )
