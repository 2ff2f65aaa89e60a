"""Tables of a workload and their row counts; `sim.workload.workload.Workload` is the facade."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, offsets, ranges
from sim.workload.runs import Runs, find_runs, one_a_stage
from sim.workload.schema import DEMAND_PREFIX, OPTIONAL_TABLES, TABLES, empty
from sim.workload.tables import values


class Tables:
    """Tables of a workload in normal form (`sim.workload.tables.normalise`); immutable.

    Either a table of tasks is stored, or runs of like tasks are, and the table is made of them.
    """

    jobs: pa.Table
    stages: pa.Table
    stage_edges: pa.Table
    job_edges: pa.Table
    downloads: pa.Table
    history: pa.Table
    training: pa.Table
    failures: pa.Table
    in_runs: bool
    meta: Mapping[str, Any]

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        durations: F8 | Runs | None,
        meta: Mapping[str, Any],
    ) -> None:
        # called by this package only: normal tables, valid or about to be validated
        state = self.__dict__
        for name in (*TABLES, *OPTIONAL_TABLES):
            if name in tables:
                state[name] = tables[name]
        for name in OPTIONAL_TABLES:
            state.setdefault(name, empty(name))
        state["in_runs"] = durations is not None
        if isinstance(durations, Runs):
            state["runs"] = durations.freeze()
            if durations.one_a_stage:
                state["stage_task0"] = durations.task0
        elif durations is not None:  # one a stage
            state["runs"] = one_a_stage(durations, self.stage_task0)
        state["meta"] = MappingProxyType(dict(meta))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a workload is immutable; {name!r} can't be set")

    @cached_property
    def runs(self) -> Runs:
        """Runs of like tasks; found in the table of tasks if that is stored."""
        return find_runs(values(self.tasks, "duration_s"), self.stage_task0)

    @property
    def stage_duration_s(self) -> F8 | None:
        """Duration of every task of each stage, (G,) s; None if tasks of a stage may differ."""
        return self.runs.duration_s if self.in_runs and self.runs.one_a_stage else None

    def stage_tasks_s(self, stages: I8 | slice) -> F8:
        """Return the durations of the tasks of some stages, stage by stage."""
        if self.in_runs:
            return self.runs.expand(stages)
        task0, duration_s = self.stage_task0, values(self.tasks, "duration_s")
        if isinstance(stages, slice):
            assert stages.step is None
            return duration_s[task0[:-1][stages][0] : task0[1:][stages][-1]]
        return duration_s[ranges(task0[stages], task0[stages + 1])]

    @cached_property
    def tasks(self) -> pa.Table:
        """Table of tasks; expanded from `runs` on first use if it is not stored."""
        return self.task_rows(0, self.n_tasks)

    def task_rows(self, begin: int, end: int) -> pa.Table:
        """Return the rows `begin` to `end` of the table of tasks, without expanding the rest."""
        if "tasks" in self.__dict__:
            return self.tasks.slice(begin, end - begin)
        stage = _expand(self.stage_task0, begin, end)
        run = stage if self.runs.one_a_stage else _expand(self.runs.task0, begin, end)
        return pa.table({"stage": stage, "duration_s": self.runs.duration_s[run]})

    def stored_tables(self) -> dict[str, pa.Table]:
        """Return the stored tables, without an expanded table of tasks."""
        tables = {n: self.__dict__[n] for n in (*TABLES, *OPTIONAL_TABLES) if n in self.__dict__}
        if self.in_runs:
            tables.pop("tasks", None)
        return tables

    def stored_durations(self) -> F8 | Runs | None:
        """Return the runs, as one duration a stage if that is enough; None if a table is stored."""
        if not self.in_runs:
            return None
        return self.runs.duration_s if self.runs.one_a_stage else self.runs

    @cached_property
    def stage_task0(self) -> I8:
        """First task of each stage, and the number of tasks: (G+1,) int64."""
        first = offsets(values(self.stages, "n_tasks"))
        first.setflags(write=False)
        return first

    @property
    def n_jobs(self) -> int:
        """Number of jobs J."""
        return int(self.jobs.num_rows)

    @property
    def n_stages(self) -> int:
        """Number of stages G."""
        return int(self.stages.num_rows)

    @property
    def n_tasks(self) -> int:
        """Number of tasks T."""
        return int(self.stage_task0[-1])

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the R resources that tasks demand, sorted."""
        columns = self.stages.column_names
        return tuple(c.removeprefix(DEMAND_PREFIX) for c in columns if c.startswith(DEMAND_PREFIX))

    @property
    def quantum(self) -> Mapping[str, float]:
        """Size of one quantum of each resource, in the resource's unit."""
        quanta: Mapping[str, float] = self.meta["quantum"]
        return quanta

    def __repr__(self) -> str:
        """Show name and sizes."""
        name = self.meta.get("name", "unnamed")
        counts = ((self.n_jobs, "job"), (self.n_stages, "stage"), (self.n_tasks, "task"))
        sizes = ", ".join(f"{n:,} {noun}{'s' * (n != 1)}" for n, noun in counts)
        return f"<{type(self).__name__} {name}: {sizes}; {', '.join(self.resources)}>"


def _expand(task0: I8, begin: int, end: int) -> I4:
    """Return the groups of the tasks `begin` to `end`, of groups that begin at `task0`."""
    first = int(np.searchsorted(task0, begin, side="right")) - 1
    last = int(np.searchsorted(task0, end, side="left"))
    inside = np.clip(task0[first : last + 1], begin, end)
    counts = inside[1:] - inside[:-1]
    return np.repeat(np.arange(first, last, dtype=np.int32), counts)
