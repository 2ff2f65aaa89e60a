"""Workload: jobs, stages, tasks and dependencies, as tables and as columns for the kernel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.workload import columns as _columns
from sim.workload import folder as _folder
from sim.workload import transform
from sim.workload.columns import Columns
from sim.workload.folder import digest
from sim.workload.from_jobs import tables_from_jobs
from sim.workload.history import Features
from sim.workload.inflow import Inflow, inflow
from sim.workload.paths import submit_span_s
from sim.workload.record import Tables
from sim.workload.releases import Releases
from sim.workload.run_table import runs_from_table
from sim.workload.runs import Runs, find_runs, one_a_stage
from sim.workload.schema import COUNT, empty
from sim.workload.tables import (
    TableLike,
    normalise,
    resource_quanta,
    split_duration,
    values,
    with_demand,
)
from sim.workload.unknown_columns import report_unused_columns
from sim.workload.validate import validate as _validate
from sim.workload.validate import validate_optional


class Workload(Tables):
    """Jobs, their stages, tasks and dependencies; immutable.

    Build one with `from_tables`, `from_jobs`, `read`, `sim.read_trace` or `sim.synthesize`. The
    tables have the columns of `sim.workload.schema`; `columns` holds them as arrays for the kernel.

    Where tasks are alike no table of them need be stored: `runs` holds the number and duration of
    each run of like tasks, and `tasks` expands them on first use. Such a workload equals the
    expanded one in digest, in columns and in the bytes it writes.

    Attributes
    ----------
    jobs, stages, stage_edges, job_edges, downloads : pyarrow.Table
        See `sim.workload.schema`; every column is one chunk.
    history : pyarrow.Table
        Past jobs, not simulated, that policies can learn from; often without rows.
    training : pyarrow.Table
        Tasks of earlier runs of the jobs' templates, to learn from too; often without rows.
    failures : pyarrow.Table
        Failing attempts of tasks, and their times; often without rows.
    in_runs : bool
        True if runs of like tasks are stored, False if the table of tasks is.
    stage_duration_s : (G,) float64 or None
        Duration of every task of each stage, s; None if runs are not stored or a stage has several.
    meta : mapping of str to JSON-able values
        ``name``, ``quantum`` (of each resource), ``report`` (rows that a loader dropped, by rule),
        ``resolution_s`` (of a log's times, s), ... Only the quanta are part of the content, that
        is, of the digest.
    """

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
            Columns of `sim.workload.schema`; columns with a default are optional. Without `tasks`,
            `stages` needs a column ``duration_s``: the duration of each of the stage's tasks, s.
            A row of `tasks` with a ``count`` stands for that many like tasks.
            Without any demand column every task demands one ``cpu``.
        meta : mapping, optional
            See the class; ``quantum`` defaults to 1e-6 for every resource. Unknown columns whose
            names resemble the schema's are counted in ``report``, ``columns_unused``.
        validate : bool
            False only for rows of a valid workload.

        Raises
        ------
        InputError
            With table, row and rule (`sim.workload.validate`).
        """
        inputs = {
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
        tables = {n: empty(n) if t is None else normalise(n, t) for n, t in inputs.items()}
        meta = report_unused_columns(meta, inputs)
        durations: F8 | Runs | None = None
        if tasks is None:
            del tables["tasks"]
            tables["stages"], durations = split_duration(tables["stages"])
        elif "duration_s" in tables["stages"].column_names:
            raise InputError(
                "stages has a column 'duration_s' beside a table of tasks; give one of the two",
                rule="duration given twice",
            )
        elif COUNT.name in tables["tasks"].column_names:
            n_tasks = values(tables["stages"], "n_tasks")
            durations = runs_from_table(tables.pop("tasks"), n_tasks)
        tables["stages"] = with_demand(tables["stages"])
        meta = {**meta, "quantum": resource_quanta(tables["stages"], meta)}
        workload = cls(tables, durations, meta)
        if validate:
            _validate(workload)
        return workload

    @classmethod
    def from_jobs(cls, jobs: Iterable[Mapping[str, Any]]) -> Workload:
        """Build a small workload from dicts written by hand.

        Parameters
        ----------
        jobs : iterable of dict
            One dict a job, in any order; jobs are sorted by ``submit_s``, and equal times stay in
            the order of the input. ``submit_s`` and ``stages`` are required. ``submit_s`` is in
            seconds, or a date and time in all jobs: then second 0 is the earliest, and
            ``meta["zero"]`` says when and in which time zone that is. ``job_id``
            defaults to ``"job-<i>"`` with the dict's index in the list; ``template``, ``user``,
            ``queue`` ("default"), ``priority`` (0), ``deadline_s`` (None: none; relative to
            submit_s), ``new_deadline_s`` and ``new_deadline_at_s`` (a new deadline and the time of
            the change), ``requested_s`` (None; the user's limit on the running time; 0 is no limit
            and becomes None), ``preempts`` (True; it may preempt others), ``checkpoint_s`` (None;
            time between two checkpoints), ``restart_s`` (0), ``partition`` ("gpu|long": sets of
            machines in which it may run; "": the default one), ``reservation`` (""; the
            advance reservation in which alone it runs), ``n_nodes`` (0: one for each slot),
            ``exclusive`` (False; true: its tasks take whole machines), ``one_per_node`` (False;
            true: no two of its tasks share one, where nodes are chosen as in Slurm),
            ``topology_required`` and ``topology_preferred`` ("": levels in one domain of which a
            gang is, `sim.cluster.topology`), ``min_tasks`` (0: no gang), ``width_min`` (0: not
            elastic), ``speedup`` ("": as many as places) and ``reconfigure_s`` (0; None: its width
            is fixed at its start) of an elastic job (`sim.workload.elastic`), whose ``min_tasks``
            is its ``width_min``, ``input_mode`` ("none") and ``poll_lag_s`` (0 s) default to the
            schema's defaults.
            ``inputs`` is a list of the ``job_id`` of other jobs whose output the job requires, or a
            dict of job_id to kind ("hard" or "soft"). ``after`` is a dict of kind of dependency to
            such a list, or to a dict of job_id to delay (s): ``{"afterok": ["a"], "after": {"b":
            60.0}}``; ``after_needs`` ("all", or "any"), ``begin_s`` (None) and ``singleton``
            (False) say the rest of when it is eligible (`sim.workload.releases`).
            ``downloads`` is a list of times (s). Jobs and stages can have the
            features ``application``, ``job_name`` and ``requested`` (strings).

            ``stages`` is a list of dicts: ``durations_s`` (one number a task) is required;
            ``name`` defaults to ``"stage-<i>"`` and is unique within the job; ``demand`` (default
            ``{"cpu": 1.0}``) is the demand of each task, and ``request`` what it asks for, where
            that is more (`sim.cluster.requests`); ``parents`` is a list of names of stages
            of the same job, for edges of kind "barrier", or a dict of name to kind of edge, e.g.
            ``{"map": "one_to_one"}``; ``runs_on`` has the classes of machines that can run its
            tasks (``"T4|A100"``; "": any), and ``speed`` their speed on machines of a class, e.g.
            ``{"A100": 2.0}``: there the durations are divided by 2.

        Raises
        ------
        InputError
            On an unknown or missing key, a missing parent or input, or a broken rule of the schema
            (`sim.workload.validate`).

        Examples
        --------
        >>> reads = {"name": "map", "durations_s": [3.0, 4.0], "demand": {"cpu": 1, "mem": 2}}
        >>> joins = {"name": "reduce", "durations_s": [5.0], "parents": ["map"]}
        >>> Workload.from_jobs([{"submit_s": 0.0, "stages": [reads, joins]}]).n_tasks
        3
        """
        return cls.from_tables(**tables_from_jobs(jobs))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Workload:
        """Read a folder that `write` wrote.

        Raises
        ------
        InputError
            If a file is missing, unreadable, of another write, or breaks a rule of the schema.
        """
        with _folder.naming_the_file(folder):
            return cls.from_tables(**_folder.read(folder))

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder of Parquet files, one a table; see `sim.workload.folder.write`."""
        _folder.write(self, folder, self.digest)

    @cached_property
    def tasks(self) -> pa.Table:
        """Table of tasks; expanded from `runs` on first use if it is not stored."""
        whole = self.task_rows(0, self.n_tasks)
        if "columns" in self.__dict__:  # share its numbers
            duration = pa.array(self.columns.task_duration)
            whole = whole.set_column(1, "duration_s", duration)
        return whole

    @cached_property
    def runs(self) -> Runs:
        """Runs of like tasks (`sim.workload.runs`); found in the table of tasks if that is stored.

        Its arrays are those of `columns`, if these exist.
        """
        if "columns" not in self.__dict__:
            return find_runs(values(self.tasks, "duration_s"), self.stage_task0)
        c = self.columns
        return Runs(c.stage_run0, c.run_task0, c.run_duration)

    @cached_property
    def columns(self) -> Columns:
        """The workload as read-only arrays (see `sim.workload.columns.Columns`)."""
        return _columns.build(self)

    @cached_property
    def origin_s(self) -> float:
        """Time at which the clock of its runs begins, s (`sim.workload.transform.origin_s`)."""
        return transform.origin_s(values(self.jobs, "submit_s")) if self.n_jobs else 0.0

    @cached_property
    def on_own_clock(self) -> Workload:
        """The same workload with times counted from `origin_s`, and the calendar of before."""
        if not self.origin_s:
            return self
        own = transform.counted_from(transform.with_calendar(self), self.origin_s)
        features = Features(own.jobs, own.stages, own.history)
        releases = Releases(own.jobs, own.job_edges)
        submit_s = values(own.jobs, "submit_s")
        changed = {"job_submit": submit_s, "features": features, "releases": releases}
        own.__dict__["columns"] = _columns.replaced(self.columns, **changed)
        return own

    @cached_property
    def inflow(self) -> Inflow:
        """Cumulative work on an unlimited cluster while jobs arrive (`sim.workload.inflow`)."""
        return inflow(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, hex: independent of how the workload was built or loaded."""
        return digest(self)

    def with_history(self, history: TableLike | None) -> Workload:
        """Return the same workload with another history (`schema.HISTORY`); None for none.

        Raises
        ------
        InputError
            As `from_tables`, of the new table.
        """
        return self._with_optional("history", history)

    def with_meta(self, more: Mapping[str, Any]) -> Workload:
        """Return the same workload with more entries in `meta`."""
        return type(self)(self.stored_tables(), self.stored_durations(), {**self.meta, **more})

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
        other = {name: empty(name) if table is None else normalise(name, table)}
        workload = type(self)(self.stored_tables() | other, self.stored_durations(), self.meta)
        validate_optional(workload)
        return workload

    def take(self, job_rows: ArrayLike) -> Workload:
        """Select jobs; their order and times stay the same.

        Parameters
        ----------
        job_rows : array_like of int or bool
            Rows of jobs, or a mask of all of them.

        Raises
        ------
        InputError
            If no job is left, or a row is out of range or repeated.
        """
        return transform.take(self, job_rows)

    def slice_time(self, begin_s: float, end_s: float) -> Workload:
        """Select the jobs submitted in [begin, end), and shift times so that begin becomes 0.

        Raises
        ------
        InputError
            If there are none.
        """
        return transform.slice_time(self, begin_s, end_s)

    def counted_from(self, zero_s: float) -> Workload:
        """Return the same workload with times counted from `zero_s`."""
        return transform.counted_from(self, zero_s)

    def mean_load(self, cluster: transform.Capacity) -> dict[str, float]:
        """Return the mean offered load: work submitted per second and unit of capacity.

        For each resource of the cluster this is Σ duration × request over all tasks, divided by
        capacity × the time over which jobs are submitted: last submission minus first (or, if all
        jobs are submitted at one instant, their longest critical path:
        `sim.workload.paths.submit_span_s`). A task requests its demand, if nothing else is known.
        Requests count in whole quanta, as in the kernel. In a pool of slots a task takes one slot.

        Raises
        ------
        InputError
            If the workload demands a resource that the cluster lacks.
        """
        return transform.mean_load(self, cluster, self._span_s())

    def scale_load(self, load: float, cluster: transform.Capacity) -> Workload:
        """Scale arrival times so that the bottleneck's mean load becomes `load`.

        The first job keeps its time; every other is submitted at
        ``first + factor × (submit - first)``, with ``factor`` the current `mean_load` of the
        bottleneck over `load`. Downloads move along; the history is unchanged. The relative
        spacing of arrivals, hence the shape of bursts, is preserved (Jajoo et al., NSDI 2022,
        §4.3: "we adjust the arrival time of the jobs so that the average cluster load matches").

        Raises
        ------
        InputError
            If the load is not positive, there is no work, or all jobs are submitted at one instant.
        """
        return transform.scale_load(self, load, cluster, self._span_s())

    def _span_s(self) -> float:
        submit = values(self.jobs, "submit_s")
        return float(submit[-1] - submit[0]) or submit_span_s(self.columns)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle every buffer once: tables, and the columns that are no views of a table."""
        state = dict(self.__dict__)
        state["meta"] = dict(self.meta)
        state.pop("stage_task0", None)
        state.pop("runs", None)
        state.pop("on_own_clock", None)
        if self.in_runs:
            state.pop("tasks", None)
        state["durations"] = self.stored_durations()
        built = state.pop("columns", None)
        if built is not None:
            state["derived"] = _columns.not_shared(built, _columns.shared_with_tables(self))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the columns from the tables' buffers and the pickled arrays."""
        derived, durations = state.pop("derived", None), state.pop("durations")
        state["meta"] = MappingProxyType(state["meta"])
        self.__dict__.update(state)
        if isinstance(durations, Runs):
            self.__dict__["runs"] = durations.freeze()
        elif durations is not None and derived is None:
            self.__dict__["runs"] = one_a_stage(durations, self.stage_task0)
        elif durations is not None:
            runs = Runs(derived["stage_run0"], derived["run_task0"], durations)
            self.__dict__["runs"] = runs.freeze()
        if derived is not None:
            views = _columns.shared_with_tables(self)
            self.__dict__["columns"] = _columns.assemble(self, {**views, **derived})
