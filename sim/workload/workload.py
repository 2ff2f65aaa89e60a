"""The workload: what is submitted when, as tables and as columns for the kernel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.workload import columns as _columns
from sim.workload.columns import Columns
from sim.workload.schema import DEFAULT_QUANTUM, DEMAND_PREFIX, OPTIONAL, TABLES, empty
from sim.workload.tables import TableLike, normalise, values

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster

__all__ = ["Columns", "Workload"]


class Workload:
    """Jobs, their stages, tasks and dependencies; immutable.

    Build one with `from_tables`, `from_jobs`, `read`, `sim.read_trace` or `sim.synthesize`. The
    tables have the columns of `sim.workload.schema`; `columns` gives the same as arrays for the
    kernel.

    Tasks that all last the same within each stage need no table of their own: `stage_duration_s`
    holds one number a stage, and `tasks` expands it when somebody asks. Such a workload equals
    its expanded twin in digest, in columns and in the bytes it writes.

    Attributes
    ----------
    jobs, stages, stage_edges, job_edges, downloads : pyarrow.Table
        See `sim.workload.schema`; every column is one chunk.
    history : pyarrow.Table
        Jobs that are not simulated and that policies may learn from; often without rows.
    training : pyarrow.Table
        Tasks of earlier runs of the jobs' templates, to learn from too; often without rows.
    failures : pyarrow.Table
        Which attempts of which tasks fail, and when; often without rows.
    stage_duration_s : (G,) float64 or None
        How long each task of a stage lasts, s, where that is all there is to say.
    meta : mapping of str to JSON-able values
        ``name``, ``quantum`` (of each resource), ``report`` (what a loader dropped, by rule), ...
        Only the quanta are part of the content, that is, of the digest.
    """

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
        self,
        tables: Mapping[str, pa.Table],
        stage_duration_s: F8 | None,
        meta: Mapping[str, Any],
    ) -> None:
        # for this package alone: normal tables, valid or about to be validated
        state = self.__dict__
        for name in (*TABLES, *OPTIONAL):
            if name in tables:
                state[name] = tables[name]
        for name in OPTIONAL:
            state.setdefault(name, empty(name))
        if stage_duration_s is not None:
            stage_duration_s.setflags(write=False)
        state["stage_duration_s"] = stage_duration_s
        state["meta"] = MappingProxyType(dict(meta))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a workload is immutable; {name!r} can't be set")

    @classmethod
    def from_tables(
        cls,
        jobs: TableLike,
        stages: TableLike,
        tasks: TableLike | None = None,
        stage_edges: TableLike | None = None,
        job_edges: TableLike | None = None,
        downloads: TableLike | None = None,
        history: TableLike | None = None,
        training: TableLike | None = None,
        failures: TableLike | None = None,
        meta: Mapping[str, Any] | None = None,
        validate: bool = True,
    ) -> Workload:
        """Build a workload from tables.

        Parameters
        ----------
        jobs, stages, tasks, stage_edges, job_edges, downloads : pyarrow.Table or mapping
        history, training, failures : pyarrow.Table or mapping
            Columns of `sim.workload.schema`; those with a default may be left out. Without `tasks`,
            `stages` needs a column ``duration_s``: what each of the stage's tasks lasts, s.
            Without any demand column every task demands one ``cpu``.
        meta : mapping, optional
            See the class; ``quantum`` defaults to 1e-6 for every resource.
        validate : bool
            Leave at True, unless the rows come from a valid workload.

        Raises
        ------
        InputError
            Naming table, row and rule (`sim.workload.validate`).
        """
        given = {
            "jobs": jobs,
            "stages": stages,
            "tasks": tasks,
            "stage_edges": stage_edges,
            "job_edges": job_edges,
            "downloads": downloads,
            "history": history,
            "training": training,
            "failures": failures,
        }
        tables = {n: empty(n) if t is None else normalise(n, t) for n, t in given.items()}
        duration_s = None
        if tasks is None:
            del tables["tasks"]
            tables["stages"], duration_s = _without_duration(tables["stages"])
        elif "duration_s" in tables["stages"].column_names:
            raise InputError(
                "stages has a column 'duration_s' beside a table of tasks; give one of the two",
                rule="duration given twice",
            )
        tables["stages"] = _with_demand(tables["stages"])
        workload = cls(tables, duration_s, {**(meta or {}), "quantum": _quanta(tables, meta)})
        if validate:
            from sim.workload.validate import validate as check

            check(workload)
        return workload

    @classmethod
    def from_jobs(cls, jobs: Iterable[Mapping[str, Any]]) -> Workload:
        """Build a small workload by hand; see `sim.workload.from_jobs.from_jobs`."""
        from sim.workload.from_jobs import from_jobs

        return from_jobs(jobs)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Workload:
        """Read what `write` wrote; see `sim.workload.folder.read`."""
        from sim.workload.folder import read

        return read(folder)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder of Parquet files; see `sim.workload.folder.write`."""
        from sim.workload.folder import write

        write(self, folder)

    @cached_property
    def tasks(self) -> pa.Table:
        """The table of tasks (expanded on first use where `stage_duration_s` says it all)."""
        whole = self.task_rows(0, self.n_tasks)
        if "columns" in self.__dict__:  # share its numbers
            duration = pa.array(self.columns.task_duration)
            whole = whole.set_column(1, "duration_s", duration)
        return whole

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
    def columns(self) -> Columns:
        """The workload as read-only arrays (see `sim.workload.columns.Columns`)."""
        return _columns.build(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, hex: the same however the workload was made or loaded."""
        from sim.workload.digest import digest

        return digest(self)

    @cached_property
    def stage_task0(self) -> I8:
        """First task of each stage, and the number of tasks: (G+1,) int64."""
        first = _columns.offsets(values(self.stages, "n_tasks"))
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
        found: Mapping[str, float] = self.meta["quantum"]
        return found

    def with_history(self, history: TableLike | None) -> Workload:
        """Return the same workload with another history (`schema.HISTORY`); None for none.

        Raises
        ------
        InputError
            As `from_tables`, of the new table.
        """
        return self._with_optional("history", history)

    def with_training(self, training: TableLike | None) -> Workload:
        """Return the same workload with other earlier runs (`schema.TRAINING`), or none.

        Raises
        ------
        InputError
            As `from_tables`, of the new table.
        """
        return self._with_optional("training", training)

    def with_failures(self, failures: TableLike | None) -> Workload:
        """Return the same workload with other failures (`sim.workload.schema.FAILURES`), or none.

        Raises
        ------
        InputError
            As `from_tables`, of the new table.
        """
        return self._with_optional("failures", failures)

    def _with_optional(self, name: str, table: TableLike | None) -> Workload:
        from sim.workload.validate_optional import validate_optional

        kept = {n: self.__dict__[n] for n in (*TABLES, *OPTIONAL) if n in self.__dict__}
        if self.stage_duration_s is not None:
            kept.pop("tasks", None)
        kept[name] = empty(name) if table is None else normalise(name, table)
        workload = type(self)(kept, self.stage_duration_s, self.meta)
        validate_optional(workload)
        return workload

    def slice_time(self, begin_s: float, end_s: float) -> Workload:
        """Keep the jobs submitted in [begin, end); see `sim.workload.transform.slice_time`."""
        from sim.workload.transform import slice_time

        return slice_time(self, begin_s, end_s)

    def take(self, job_rows: ArrayLike) -> Workload:
        """Keep some jobs; see `sim.workload.transform.take`."""
        from sim.workload.transform import take

        return take(self, job_rows)

    def scale_load(self, load: float, cluster: Cluster) -> Workload:
        """Stretch arrival times to a wished offered load; see `transform.scale_load`."""
        from sim.workload.transform import scale_load

        return scale_load(self, load, cluster)

    def offered_load(self, cluster: Cluster) -> dict[str, float]:
        """Return the offered load of each resource; see `sim.workload.transform.offered_load`."""
        from sim.workload.transform import offered_load

        return offered_load(self, cluster)

    def __repr__(self) -> str:
        """Name and sizes."""
        name = self.meta.get("name", "unnamed")
        return f"<Workload {name}: {self.n_jobs} jobs, {self.n_stages} stages>"

    def __getstate__(self) -> dict[str, Any]:
        """Ship every buffer once: tables, and of the columns what is no view of a table."""
        state = dict(self.__dict__)
        state["meta"] = dict(self.meta)
        state.pop("stage_task0", None)
        if self.stage_duration_s is not None:
            state.pop("tasks", None)
        built = state.pop("columns", None)
        if built is not None:
            shared = _columns.shared_with_tables(self)
            mine = _columns.arrays_of(built)
            state["derived"] = {k: v for k, v in mine.items() if k not in shared}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put the views together again."""
        derived = state.pop("derived", None)
        state["meta"] = MappingProxyType(state["meta"])
        if state["stage_duration_s"] is not None:
            state["stage_duration_s"].setflags(write=False)
        self.__dict__.update(state)
        if derived is not None:
            views = _columns.shared_with_tables(self)
            self.__dict__["columns"] = _columns.assemble(self, {**views, **derived})


def _without_duration(stages: pa.Table) -> tuple[pa.Table, F8]:
    if "duration_s" not in stages.column_names:
        raise InputError(
            "there is no table of tasks, and stages has no column 'duration_s' to stand for it",
            rule="missing table",
        )
    column = stages["duration_s"].chunk(0)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"stages.duration_s must be numbers, not {column.type}", rule="wrong type")
    duration = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return stages.drop_columns(["duration_s"]), np.ascontiguousarray(duration)


def _with_demand(stages: pa.Table) -> pa.Table:
    if any(c.startswith(DEMAND_PREFIX) for c in stages.column_names):
        return stages
    return stages.append_column(DEMAND_PREFIX + "cpu", pa.array(np.ones(stages.num_rows)))


def _quanta(tables: Mapping[str, pa.Table], meta: Mapping[str, Any] | None) -> dict[str, float]:
    given = dict((meta or {}).get("quantum", {}))
    names = [c.removeprefix(DEMAND_PREFIX) for c in tables["stages"].column_names]
    resources = [n for n, c in zip(names, tables["stages"].column_names, strict=True) if n != c]
    return {r: float(given.get(r, DEFAULT_QUANTUM)) for r in resources}
