"""Tables of a workload and their row counts; `sim.workload.workload.Workload` is the facade."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, offsets
from sim.workload.schema import DEMAND_PREFIX, OPTIONAL_TABLES, TABLES, empty
from sim.workload.tables import values


class Tables:
    """Tables of a workload in normal form (`sim.workload.tables.normalise`); immutable."""

    jobs: pa.Table
    stages: pa.Table
    stage_edges: pa.Table
    job_edges: pa.Table
    downloads: pa.Table
    history: pa.Table
    training: pa.Table
    failures: pa.Table
    stage_duration_s: F8 | None
    meta: Mapping[str, Any]

    def __init__(
        self, tables: Mapping[str, pa.Table], stage_duration_s: F8 | None, meta: Mapping[str, Any]
    ) -> None:
        # called by this package only: normal tables, valid or about to be validated
        state = self.__dict__
        for name in (*TABLES, *OPTIONAL_TABLES):
            if name in tables:
                state[name] = tables[name]
        for name in OPTIONAL_TABLES:
            state.setdefault(name, empty(name))
        if stage_duration_s is not None:
            stage_duration_s.setflags(write=False)
        state["stage_duration_s"] = stage_duration_s
        state["meta"] = MappingProxyType(dict(meta))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a workload is immutable; {name!r} can't be set")

    @cached_property
    def tasks(self) -> pa.Table:
        """Table of tasks; expanded from `stage_duration_s` on first use if that is not None."""
        return self.task_rows(0, self.n_tasks)

    def task_rows(self, begin: int, end: int) -> pa.Table:
        """Return the rows `begin` to `end` of the table of tasks, without expanding the rest."""
        if "tasks" in self.__dict__:
            return self.tasks.slice(begin, end - begin)
        assert self.stage_duration_s is not None
        task0 = self.stage_task0
        first = int(np.searchsorted(task0, begin, side="right")) - 1
        last = int(np.searchsorted(task0, end, side="left"))
        inside = np.clip(task0[first : last + 1], begin, end)
        counts = inside[1:] - inside[:-1]
        stage = np.repeat(np.arange(first, last, dtype=np.int32), counts)
        return pa.table({"stage": stage, "duration_s": self.stage_duration_s[stage]})

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
